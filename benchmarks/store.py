r"""How fast history is stored and read: `python -m benchmarks.store`.

Belongs here: rows a second through `PlanStore`, beside psql's `\copy` of the same rows into the
same tables, in turns; printing, and writing store.json. Does not: the questions asked of a long
history (`history`).

Everything runs on a Postgres of its own, which is gone afterwards.
"""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.table import Table

from benchmarks import history
from fairlead.sandbox.postgres import Postgres, psql_path
from fairlead.store import PlanDraft, PlanStore, create_store_engine
from fairlead.store.bulk import with_constants
from fairlead.store.migrate import upgrade
from fairlead.wire.document import MemberShare
from tests.stored import record_decision

RESULTS = Path(__file__).with_name("store.json")
ROUNDS = 3
GROUPS, EACH = 100, 10_000  # of one snapshot of lag
TOPICS, IN_TOPIC, MEMBERS = 20, 50_000, 500  # of one plan
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
_FRACTIONS = ("balance_score", "lag_max", "lag_mean", "lag_lower_bound", "gap", "topic_spread")
METRICS: dict[str, Any] = {
    **dict.fromkeys(("count_min", "count_max", "kept", "moved", "placed"), 1),
    **dict.fromkeys(_FRACTIONS, 1.0),
}


@dataclass(frozen=True)
class Writing:
    """Rows a second, medians; `share` is ours over psql's."""

    what: str
    rows: int
    rows_per_s: float
    psql_rows_per_s: float
    share: float


def main() -> None:
    """Measure, print and write store.json."""
    console = Console(width=120)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            url = server.url("fairlead")
            upgrade(url)
            engine = create_store_engine(url)
            store = PlanStore(engine)
            console.log("storing lag and plans")
            writings = [
                measure_lag(store, url, Path(folder)),
                measure_moves(store, url, Path(folder)),
            ]
            console.log(f"filling {history.ROWS:,} rows of lag")
            readings = history.measure(engine)
            engine.dispose()
        finally:
            server.stop()
    results = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "writing": [asdict(one) for one in writings],
        "reading": [asdict(one) for one in readings],
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print_tables(console, writings, readings)


def measure_lag(store: PlanStore, url: str, folder: Path) -> Writing:
    """Store snapshots of a fleet by `PlanStore.record_lag`."""
    file = folder / "lag.csv"

    def ours(turn: int) -> Callable[[], object]:
        rows = lag_rows(turn)
        return lambda: store.record_lag(rows)

    def theirs(turn: int) -> Callable[[], object]:
        rows = lag_rows(turn)
        rows = rows.rename_columns({"group": "group_id"}).drop_columns("snapshot_id")
        return copying(rows, "fairlead_raw.partition_lag", url, file)

    store.record_lag(lag_rows(2 * ROUNDS))  # both sides find the day made, and pages warm
    return compare("lag of a snapshot", GROUPS * EACH, ours, theirs)


def measure_moves(store: PlanStore, url: str, folder: Path) -> Writing:
    """Store plans that move everything by `PlanStore.record_decision`, document and all."""
    moves, file = move_rows(), folder / "moves.csv"

    def ours(turn: int) -> Callable[[], object]:
        plan = draft(f"ours-{turn}", moves)
        return lambda: record_decision(store, plan)

    def theirs(turn: int) -> Callable[[], object]:
        group = f"psql-{turn}"
        record_decision(store, draft(group, moves.slice(0, 0)))  # what the moves refer to
        rows = with_constants(moves, {"group_id": group, "version": 1})
        return copying(rows, "fairlead_raw.moved_partition", url, file)

    return compare("moves of a plan", moves.num_rows, ours, theirs)


def compare(
    what: str,
    rows: int,
    ours: Callable[[int], Callable[[], object]],
    theirs: Callable[[int], Callable[[], object]],
) -> Writing:
    """Time both sides in turns; each function prepares a turn, and returns what is timed."""
    taken = [
        (seconds(ours(2 * number)), seconds(theirs(2 * number + 1))) for number in range(ROUNDS)
    ]
    ours_s, theirs_s = (statistics.median(one) for one in zip(*taken, strict=True))
    return Writing(
        what=what,
        rows=rows,
        rows_per_s=round(rows / ours_s),
        psql_rows_per_s=round(rows / theirs_s),
        share=round(theirs_s / ours_s, 3),
    )


def seconds(action: Callable[[], object]) -> float:
    """Time one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def copying(rows: pa.Table, table: str, url: str, file: Path) -> Callable[[], object]:
    r"""Write rows to a file for psql; return what lets it `\copy` them."""
    pa.csv.write_csv(rows, file, pa.csv.WriteOptions(include_header=False, quoting_style="needed"))
    copy = rf"\copy {table} ({', '.join(rows.column_names)}) FROM '{file}' (FORMAT csv)"
    command = [str(psql_path()), url, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", copy]
    return lambda: subprocess.run(command, check=True)


def lag_rows(turn: int) -> pa.Table:
    """Return a snapshot of all groups, an hour after the one of the turn before."""
    size = GROUPS * EACH
    random = np.random.default_rng(turn)
    lag, end = random.integers(0, 10**6, size), random.integers(10**9, 10**10, size)
    return pa.table(
        {
            "snapshot_id": pa.repeat(f"s{turn}", size),
            "snapshot_at": pa.repeat(
                pa.scalar(NEW_YEAR + timedelta(hours=turn), pa.timestamp("us", "UTC")), size
            ),
            "group": np.repeat([f"group-{number}" for number in range(GROUPS)], EACH),
            "topic": pa.repeat("orders.created", size),
            "partition": np.tile(np.arange(EACH, dtype=np.int32), GROUPS),
            "member": np.tile([f"orders-{p % 50}" for p in range(EACH)], GROUPS),
            "begin_offset": end // 2,
            "end_offset": end,
            "committed_offset": end - lag,
            "lag": lag,
            "arrival_rate": random.random(size) * 1_000,
            "consumption_rate": random.random(size) * 1_000,
            "time_lag_s": random.random(size) * 60,
            "status": pa.repeat("OK", size),
        }
    )


def move_rows() -> pa.Table:
    """Return a move of every partition of a plan."""
    owner = np.arange(IN_TOPIC) % MEMBERS
    names = np.array([f"orders-{number}" for number in range(MEMBERS)])
    size = TOPICS * IN_TOPIC
    return pa.table(
        {
            "topic": np.repeat([f"t{number}" for number in range(TOPICS)], IN_TOPIC),
            "partition": np.tile(np.arange(IN_TOPIC, dtype=np.int32), TOPICS),
            "previous_member": np.tile(names[(owner + 1) % MEMBERS], TOPICS),
            "member": np.tile(names[owner], TOPICS),
            "weight": np.random.default_rng(0).random(size) * 10**6,
            "reason": pa.repeat("orders-1 is the heaviest", size),
        }
    )


def draft(group: str, moves: pa.Table) -> PlanDraft:
    """Return a plan of all partitions, in shares that are no ranges."""
    topics = [f"t{number}" for number in range(TOPICS)]
    numbers = np.arange(IN_TOPIC, dtype=np.int32)
    return PlanDraft(
        group=group,
        snapshot_id="s",
        snapshot_at=NEW_YEAR,
        reason="the heaviest member gets lighter",
        assignor="sticky-lag-aware",
        predicted=METRICS,
        moves=moves,
        expires_at=None,
        partition_counts=dict.fromkeys(topics, IN_TOPIC),
        members={
            f"orders-{number}": MemberShare(
                tuple(topics), dict.fromkeys(topics, numbers[number::MEMBERS])
            )
            for number in range(MEMBERS)
        },
        weights=dict.fromkeys(topics, numbers.astype(np.float64)),
    )


def print_tables(
    console: Console, writings: list[Writing], readings: list[history.Reading]
) -> None:
    """Print what was measured."""
    table = Table(title=r"Storing, beside psql's \copy (goal: half of it)", title_justify="left")
    for heading in ("what", "rows", "rows a second", "psql", "share"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for one in writings:
        figures = (f"{one.rows:,}", f"{one.rows_per_s:,.0f}", f"{one.psql_rows_per_s:,.0f}")
        table.add_row(one.what, *figures, f"{one.share:.0%}")
    console.print(table)
    title = f"Questions at {history.ROWS:,} rows of lag (goal: 0.5 s)"
    table = Table(title=title, title_justify="left")
    for heading in ("question", "rows", "seconds"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for reading in readings:
        table.add_row(reading.question, f"{reading.rows:,}", f"{reading.seconds:.4f}")
    console.print(table)


if __name__ == "__main__":
    main()

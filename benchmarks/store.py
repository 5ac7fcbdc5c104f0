r"""Speed of storing and reading history: `python -m benchmarks.store`.

Belongs here: rows per second that `PlanStore` stores, compared with psql's `\copy` of equal rows
into the same tables; printing, and writing store.json. Belongs elsewhere: queries on a long history
(`history`).

Everything runs on a temporary Postgres.
"""

import statistics
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from benchmarks import harness, history
from benchmarks.harness import Bench, in_turns, seconds
from benchmarks.plans import draft
from benchmarks.services import folder, postgres
from fairlead.domain.records import PlanDraft
from fairlead.sandbox.postgres import psql_path
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from tests.stored import record_decision

RESULTS = Path(__file__).with_name("store.json")
GROUPS, EACH = 100, 10_000  # snapshot of lag: groups, and partitions per group
TOPICS, IN_TOPIC, MEMBERS = 20, 50_000, 500  # plan: topics, partitions per topic, members
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Writing:
    """Median rows per second; `share` is the rate of `PlanStore` divided by that of psql."""

    what: str
    rows: int
    rows_per_s: float
    psql_rows_per_s: float
    share: float


def main() -> None:
    """Measure, print and write store.json."""
    with (
        harness.measuring(harness.parser(__doc__, rounds=3), RESULTS) as bench,
        folder() as place,
        postgres() as server,
    ):
        url, rounds = server.url("fairlead"), bench.options.rounds
        engine = create_store_engine(url)
        store = PlanStore(engine)
        bench.log("storing lag and plans")
        writings = [
            measure_lag(store, url, place / "lag.csv", rounds),
            measure_moves(store, url, place / "moves.csv", rounds),
        ]
        bench.log(f"filling {history.ROWS:,} rows of lag")
        readings = history.measure(engine)
        engine.dispose()
        bench.write(
            {
                "writing": [asdict(writing) for writing in writings],
                "reading": [asdict(reading) for reading in readings],
            }
        )
        show(bench, writings, readings)


def measure_lag(store: PlanStore, url: str, file: Path, rounds: int) -> Writing:
    """Measure how fast `PlanStore.record_lag` stores the lag of a fleet."""

    def ours(turn: int) -> Callable[[], object]:
        rows = lag_rows(turn)
        return lambda: store.record_lag(rows)

    def theirs(turn: int) -> Callable[[], object]:
        rows = lag_rows(turn)
        rows = rows.rename_columns({"group": "group_id"}).drop_columns("snapshot_id")
        return copying(rows, "fairlead_raw.partition_lag", url, file)

    store.record_lag(lag_rows(2 * rounds))  # warm-up for PlanStore and for psql
    return compare("lag of a snapshot", GROUPS * EACH, ours, theirs, rounds)


def measure_moves(store: PlanStore, url: str, file: Path, rounds: int) -> Writing:
    """Measure how fast plans that move all partitions are stored, with their documents."""
    moves = move_rows()

    def ours(turn: int) -> Callable[[], object]:
        plan = everything(f"ours-{turn}", moves)
        return lambda: record_decision(store, plan)

    def theirs(turn: int) -> Callable[[], object]:
        group = f"psql-{turn}"
        # The moves that psql copies refer to a plan, so store a plan without moves first.
        record_decision(store, everything(group, moves.slice(0, 0)))
        rows = moves.append_column("group_id", pa.repeat(group, moves.num_rows))
        rows = rows.append_column("version", pa.repeat(1, moves.num_rows))
        return copying(rows, "fairlead_raw.moved_partition", url, file)

    return compare("moves of a plan", moves.num_rows, ours, theirs, rounds)


def compare(
    what: str,
    rows: int,
    ours: Callable[[int], Callable[[], object]],
    theirs: Callable[[int], Callable[[], object]],
    rounds: int,
) -> Writing:
    """Time `PlanStore` (`ours`) and psql (`theirs`) alternately.

    `ours` and `theirs` prepare rows, and return the function to time. Each call of `ours` and
    `theirs` gets another number.
    """
    ours_s, theirs_s = map(
        statistics.median,
        in_turns(
            rounds,
            lambda number: seconds(ours(2 * number)),
            lambda number: seconds(theirs(2 * number + 1)),
        ),
    )
    return Writing(
        what=what,
        rows=rows,
        rows_per_s=round(rows / ours_s),
        psql_rows_per_s=round(rows / theirs_s),
        share=round(theirs_s / ours_s, 3),
    )


def copying(rows: pa.Table, table: str, url: str, file: Path) -> Callable[[], object]:
    r"""Write rows to a file for psql; return a function that loads the file with `\copy`."""
    pa.csv.write_csv(rows, file, pa.csv.WriteOptions(include_header=False, quoting_style="needed"))
    copy = rf"\copy {table} ({', '.join(rows.column_names)}) FROM '{file}' (FORMAT csv)"
    command = [str(psql_path()), url, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", copy]
    return lambda: subprocess.run(command, check=True)


def lag_rows(turn: int) -> pa.Table:
    """Return lag rows of all groups. Rows of `turn` are an hour later than those of `turn` - 1."""
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
    """Return moves of all partitions of a plan."""
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


def everything(group: str, moves: pa.Table) -> PlanDraft:
    """Return a plan of all partitions, in which no member's share is a contiguous range."""
    counts = {f"t{number}": IN_TOPIC for number in range(TOPICS)}
    numbers = np.arange(IN_TOPIC, dtype=np.int32)
    owned = {
        f"orders-{number}": dict.fromkeys(counts, numbers[number::MEMBERS])
        for number in range(MEMBERS)
    }
    return draft(group, counts, owned, moves)


def show(bench: Bench, writings: list[Writing], readings: list[history.Reading]) -> None:
    """Print the measurements."""
    bench.show(
        r"Storing, beside psql's \copy (goal: half of it)",
        ("what", "rows", "rows a second", "psql", "share"),
        (
            (
                writing.what,
                f"{writing.rows:,}",
                f"{writing.rows_per_s:,}",
                f"{writing.psql_rows_per_s:,}",
                f"{writing.share:.0%}",
            )
            for writing in writings
        ),
    )
    bench.show(
        f"Questions at {history.ROWS:,} rows of lag (goal: 0.5 s)",
        ("question", "rows", "seconds"),
        ((reading.question, f"{reading.rows:,}", f"{reading.seconds:.4f}") for reading in readings),
    )


if __name__ == "__main__":
    main()

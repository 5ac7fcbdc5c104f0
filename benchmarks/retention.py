"""Whether a database that has been in use for long is as fast as on its first day.

`python -m benchmarks.retention --groups 4000`. Two databases on a Postgres of their own, which is
gone afterwards: one after its first day, one after ninety days of which retention has left thirty.
Of both the same is asked, in turns: what a planning run reads and writes of all groups, what
monitoring and `fairlead groups` read, and the queries of docs/sql.md, read from the page.

Belongs here: what is asked, timing, printing, and writing retention.json. Does not: the rows
(`retention_fill`).
"""

import argparse
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine, text

from benchmarks.retention_fill import FIRST_DAY, LAST, RETAINED, Size, fill
from benchmarks.store import METRICS
from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.records import Findings, SeenAdoption
from fairlead.sandbox.postgres import Postgres
from fairlead.store import NoPlan, PlanDraft, PlanStore, create_store_engine
from fairlead.store.engine import transaction
from fairlead.store.migrate import upgrade
from fairlead.store.monitoring import DecisionCounts, read_all_groups
from fairlead.store.reading import read_decisions, read_groups, read_history, read_lag
from fairlead.store.trend import lag_trend
from fairlead.wire.document import MemberShare

RESULTS: Final = Path(__file__).with_name("retention.json")
PAGE: Final = Path(__file__).parents[1] / "docs/sql.md"
QUERY: Final = re.compile(
    r"^## (?P<title>[^\n]+)|```sql\n(?P<code>.*?)```", re.MULTILINE | re.DOTALL
)
ROUNDS: Final = 7
GOAL: Final = 1.5
AT_ONCE: Final = 500
#: The dates and groups that the page asks about, and those that are filled.
ASKED: Final = (
    ("now.day = '2026-01-07'", "now.day = '2026-01-06'"),
    ("'2026-01-05'", "'2026-01-06'"),
    ("'orders'", "'g7'"),
    ("'billing'", "'g8'"),
)

Action = Callable[[PlanStore, list[str], int], object]


@dataclass(frozen=True)
class Comparison:
    """Medians of both databases, in seconds; rows of the answer, where it is one."""

    what: str
    first_day_s: float
    retained_s: float
    ratio: float
    first_day_rows: int | None = None
    retained_rows: int | None = None


def main() -> None:
    """Measure, print and write retention.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=1, help="of each group")
    arguments = parser.parse_args()
    console = Console(width=140)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            engines = [
                prepare(server, size, arguments.groups, arguments.partitions, console)
                for size in (FIRST_DAY, RETAINED)
            ]
            results = measure(engines, arguments.groups, arguments.partitions, console)
            for engine in engines:
                engine.dispose()
        finally:
            server.stop()
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show(console, results)


def prepare(server: Postgres, size: Size, groups: int, partitions: int, console: Console) -> Engine:
    """Make a database, and fill it."""
    name = f"after_{size.days}"
    began = time.perf_counter()
    with create_store_engine(server.url("fairlead")).connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.execute(text(f"CREATE DATABASE {name}"))
    url = server.url("fairlead").replace("/fairlead?", f"/{name}?")
    upgrade(url)
    fill(url, size, groups=groups, partitions=partitions)
    console.log(f"{name}: filled in {time.perf_counter() - began:.0f} s")
    return create_store_engine(url)


def measure(
    engines: list[Engine], groups: int, partitions: int, console: Console
) -> dict[str, Any]:
    """Ask both databases for everything."""
    names = [f"g{number}" for number in range(1, groups + 1)]
    planning = []
    for what, action in PLANNING.items():
        planning.append(compare(what, action, engines, names))
        console.log(f"{what}: {planning[-1].ratio:.2f}")
    questions = [ask(title, code, engines) for title, code in page_queries()]
    with transaction(engines[1]) as connection:
        sizes = connection.execute(
            text(
                "SELECT history, count(*) AS days, sum(bytes) AS bytes"
                " FROM fairlead.history_days() GROUP BY history ORDER BY history"
            )
        ).mappings()
        histories = {row["history"]: dict(row) | {"bytes": int(row["bytes"])} for row in sizes}
        total = connection.scalar(text("SELECT pg_database_size(current_database())"))
    return {
        "how": f"python -m benchmarks.retention --groups {groups} --partitions {partitions};"
        f" medians of {ROUNDS} turns, after one that is not counted",
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "first day": asdict(FIRST_DAY),
        "retained": asdict(RETAINED),
        "groups": groups,
        "partitions a group": partitions,
        "bytes retained": int(total or 0),
        "histories": histories,
        "planning": [asdict(one) for one in planning],
        "questions": [asdict(one) for one in questions],
    }


def compare(what: str, action: Action, engines: list[Engine], names: list[str]) -> Comparison:
    """Time an action on both databases, in turns."""
    stores = [PlanStore(engine) for engine in engines]
    taken: list[list[float]] = [[], []]
    for turn in range(ROUNDS + 1):
        for place, store in enumerate(stores):
            began = time.perf_counter()
            action(store, names, turn)
            taken[place].append(time.perf_counter() - began)
    first, retained = (statistics.median(times[1:]) for times in taken)
    return Comparison(what, round(first, 5), round(retained, 5), round(retained / first, 2))


def ask(title: str, code: str, engines: list[Engine]) -> Comparison:
    """Time a query of the page on both databases, in turns."""
    taken: list[list[float]] = [[], []]
    rows = [0, 0]
    for _ in range(ROUNDS + 1):
        for place, engine in enumerate(engines):
            with transaction(engine) as connection:
                began = time.perf_counter()
                rows[place] = len(connection.execute(text(code)).all())
                taken[place].append(time.perf_counter() - began)
    first, retained = (statistics.median(times[1:]) for times in taken)
    return Comparison(title, round(first, 5), round(retained, 5), round(retained / first, 2), *rows)


def page_queries() -> list[tuple[str, str]]:
    """Return the queries of docs/sql.md, under their headings, for the groups that are filled."""
    found, title = [], ""
    for match in QUERY.finditer(PAGE.read_text()):
        if match["title"]:
            title = match["title"]
            continue
        code = match["code"]
        for theirs, ours in ASKED:
            code = code.replace(theirs, ours)
        found.append((title, code.replace(":", r"\:")))
    return found


def look_at(turn: int) -> datetime:
    """Return when a planning run takes its snapshot: after all that are filled."""
    return LAST + timedelta(seconds=turn + 1)


def record_lag(store: PlanStore, names: list[str], turn: int) -> object:
    """Store the lag of a snapshot of all groups."""
    size, at = len(names), look_at(turn)
    rows = pa.table(
        {
            "snapshot_id": pa.repeat(f"{at:%Y%m%dT%H%M%S}", size),
            "snapshot_at": pa.repeat(pa.scalar(at, pa.timestamp("us", "UTC")), size),
            "group": names,
            "topic": names,
            "partition": pa.array(np.zeros(size, np.int32)),
            "begin_offset": np.zeros(size, np.int64),
            "end_offset": np.full(size, 10**6),
            "committed_offset": np.full(size, 10**6),
            "lag": np.zeros(size, np.int64),
            "arrival_rate": np.ones(size),
            "consumption_rate": np.ones(size),
            "time_lag_s": np.zeros(size),
            "status": pa.repeat("OK", size),
        }
    )
    return store.record_lag(rows)


def findings() -> Findings:
    """Return what a look finds of a group that is well."""
    return Findings(
        diagnosis="healthy",
        names=(),
        evidence="well",
        late_s=2.0,
        utilisation=0.4,
        capacities={
            f"c{number}": Capacity(100.0, measured=True, at=LAST.timestamp()) for number in range(5)
        },
    )


def decide(store: PlanStore, names: list[str], turn: int) -> object:
    """Store what a look came to, five hundred groups at once; one in twenty gets a plan."""
    at = look_at(turn)
    same: dict[str, Any] = {
        "snapshot_id": f"{at:%Y%m%dT%H%M%S}",
        "snapshot_at": at,
        "reason": "healthy: every partition is forecast within 60 s in 30 min",
        "observed": METRICS,
        "findings": findings(),
    }
    decisions = [
        draft(name, same) if number % 20 == 0 else NoPlan(group=name, **same)
        for number, name in enumerate(names)
    ]
    return [
        store.record_decisions(decisions[first : first + AT_ONCE])
        for first in range(0, len(decisions), AT_ONCE)
    ]


def draft(group: str, same: dict[str, Any]) -> PlanDraft:
    """Return a plan of five partitions for five members."""
    return PlanDraft(
        group=group,
        **same,
        assignor="sticky-lag-aware",
        predicted=METRICS,
        moves=pa.table(
            {
                "topic": [group],
                "partition": pa.array([1], pa.int32()),
                "previous_member": ["c1"],
                "member": ["c2"],
            }
        ),
        expires_at=None,
        partition_counts={group: 5},
        members={
            f"c{number}": MemberShare((group,), {group: np.array([number], np.int32)})
            for number in range(5)
        },
        weights={group: np.ones(5)},
    )


def adopt(store: PlanStore, names: list[str], turn: int) -> None:
    """Store how far plans are followed, of all groups."""
    store.record_adoptions(
        [
            SeenAdoption(
                group=name,
                version=3,
                observed_at=look_at(turn),
                snapshot_id=f"{look_at(turn):%Y%m%dT%H%M%S}",
                planned=5,
                as_planned=5,
                achieved=METRICS,
            )
            for name in names
        ]
    )


PLANNING: Final[dict[str, Action]] = {
    "which groups are due": lambda store, _names, _turn: store.last_decisions(),
    "what is known of members": lambda store, names, _turn: store.capacities(names),
    "plans that wait": lambda store, names, _turn: store.waiting(names),
    "plans that are published": lambda store, names, _turn: store.in_state(
        "published", groups=names
    ),
    "when plans last changed": lambda store, names, _turn: store.last_changes(names),
    "what plans predicted": lambda store, names, _turn: store.predicted(
        store.in_state("published", groups=names[:AT_ONCE])
    ),
    "leases that run out": lambda store, _names, _turn: store.told_before(datetime.now(UTC)),
    "plans that expired": lambda store, _names, _turn: store.expire_due(datetime.now(UTC)),
    "what is on its way": lambda store, _names, _turn: store.outbox().outstanding(),
    "storing lag": record_lag,
    "storing decisions": decide,
    "storing adoption": adopt,
    "one group's newest lag": lambda store, _names, _turn: store.newest_lag("g7"),
    "fairlead groups": lambda store, _names, _turn: read_groups(store.engine),
    "fairlead plan --dry-run's decisions": lambda store, _names, _turn: read_decisions(
        store.engine, LAST
    ),
    "fairlead history": lambda store, _names, _turn: read_history(store.engine, "g7", limit=20),
    "fairlead lag": lambda store, _names, _turn: read_lag(store.engine, "g7", limit=20),
    "a plot of lag": lambda store, _names, _turn: lag_trend(store.engine, "g7"),
    "a scrape of metrics": lambda store, _names, _turn: read_all_groups(
        store.engine, DecisionCounts()
    ),
}


def show(console: Console, results: dict[str, Any]) -> None:
    """Print what was measured."""
    for heading in ("planning", "questions"):
        table = Table(title=f"{heading} (goal: {GOAL} times at most)", title_justify="left")
        for name in ("what", "first day", "retained", "times", "rows", "rows retained"):
            table.add_column(name, justify="left" if name == "what" else "right")
        for one in results[heading]:
            table.add_row(*(str(value) for value in one.values()))
        console.print(table)


if __name__ == "__main__":
    main()

"""Whether a database that has been in use for long is as fast as on its first day.

`python -m benchmarks.retention --groups 4000`. Two databases on a Postgres of their own, which is
gone afterwards: one after its first day, one after ninety days of which retention has left thirty.
Of both the same is asked, in turns: what a planning run reads and writes of all groups, what
monitoring and `fairlead groups` read, and the queries of docs/sql.md, read from the page.

Belongs here: what is asked, timing, printing, and writing retention.json. Does not: the rows
(`retention_fill`).
"""

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
from sqlalchemy import Engine, text

from benchmarks import harness
from benchmarks.harness import DOCS, Bench, in_turns, median, seconds
from benchmarks.plans import METRICS, draft, moves
from benchmarks.retention_fill import FIRST_DAY, LAST, RETAINED, Size, fill
from benchmarks.services import postgres
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.records import Findings, SeenAdoption
from fairlead.sandbox.postgres import Postgres
from fairlead.store import NoPlan, PlanDraft, PlanStore, create_store_engine
from fairlead.store.engine import transaction
from fairlead.store.history_queries import read_decisions, read_groups, read_history, read_lag
from fairlead.store.migrate import upgrade
from fairlead.store.monitoring import DecisionCounts, read_all_groups
from fairlead.surfaces.web.group import Asked, group_page
from fairlead.surfaces.web.groups_list import groups_page

RESULTS: Final = Path(__file__).with_name("retention.json")
PAGE: Final = DOCS / "sql.md"
QUERY: Final = re.compile(
    r"^## (?P<title>[^\n]+)|```sql\n(?P<code>.*?)```", re.MULTILINE | re.DOTALL
)
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
    options = harness.parser(__doc__, rounds=7)
    options.add_argument("--groups", type=int, default=10_000)
    options.add_argument("--partitions", type=int, default=1, help="of each group")
    options.add_argument("--days", type=int, default=RETAINED.days, help="in use; a third is kept")
    with harness.measuring(options, RESULTS) as bench, postgres() as server:
        days = bench.options.days
        retained = replace(RETAINED, days=days, kept=days // 3 + 1, versions=max(3, days // 3))
        engines = [prepare(server, size, bench) for size in (FIRST_DAY, retained)]
        results = measure(engines, retained, bench)
        for engine in engines:
            engine.dispose()
        bench.write(results)
        for heading in ("planning", "questions"):
            bench.show(
                f"{heading} (goal: {GOAL} times at most)",
                ("what", "first day", "retained", "times", "rows", "rows retained"),
                (result.values() for result in results[heading]),
            )


def prepare(server: Postgres, size: Size, bench: Bench) -> Engine:
    """Make a database, and fill it."""
    name = f"after_{size.days}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    url = server.url(name)
    upgrade(url)
    groups, partitions = bench.options.groups, bench.options.partitions
    took = seconds(lambda: fill(url, size, groups=groups, partitions=partitions))
    bench.log(f"{name}: filled in {took:.0f} s")
    return create_store_engine(url)


def measure(engines: list[Engine], retained: Size, bench: Bench) -> dict[str, Any]:
    """Ask both databases for everything."""
    groups, partitions = bench.options.groups, bench.options.partitions
    rounds = bench.options.rounds
    names = [f"g{number}" for number in range(1, groups + 1)]
    planning = []
    for what, action in PLANNING.items():
        planning.append(compare(what, action, engines, names, rounds))
        bench.log(f"{what}: {planning[-1].ratio:.2f}")
    questions = [ask(title, code, engines, rounds) for title, code in page_queries()]
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
        f" medians of {rounds} turns, after one that is not counted",
        "first day": asdict(FIRST_DAY),
        "retained": asdict(retained),
        "groups": groups,
        "partitions a group": partitions,
        "bytes retained": int(total or 0),
        "histories": histories,
        "planning": [asdict(result) for result in planning],
        "questions": [asdict(question) for question in questions],
    }


def compare(
    what: str, action: Action, engines: list[Engine], names: list[str], rounds: int
) -> Comparison:
    """Time an action on both databases, in turns."""
    stores = [PlanStore(engine) for engine in engines]
    taken = in_turns(
        rounds,
        *(
            lambda turn, store=store: seconds(lambda: action(store, names, turn))
            for store in stores
        ),
        warm_ups=1,
    )
    return compared(what, taken)


def ask(title: str, code: str, engines: list[Engine], rounds: int) -> Comparison:
    """Time a query of the page on both databases, in turns."""

    def asked(engine: Engine) -> tuple[float, int]:
        with transaction(engine) as connection:
            began = time.perf_counter()
            rows = connection.execute(text(code)).all()
            return time.perf_counter() - began, len(rows)

    taken = in_turns(
        rounds,
        *(lambda _, database=database: asked(database) for database in engines),
        warm_ups=1,
    )
    times = [[took for took, _ in turns] for turns in taken]
    return compared(title, times, *(turns[-1][1] for turns in taken))


def compared(what: str, taken: list[list[float]], *rows: int) -> Comparison:
    """Return the medians of both databases, and how many rows they answered with."""
    first_s, retained_s = (median(times, 5) for times in taken)
    return Comparison(what, first_s, retained_s, round(retained_s / first_s, 2), *rows)


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
        forecast_time_lag_s=2.0,
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
        proposed(name, same) if number % 20 == 0 else NoPlan(group=name, **same)
        for number, name in enumerate(names)
    ]
    return [
        store.record_decisions(decisions[first : first + AT_ONCE])
        for first in range(0, len(decisions), AT_ONCE)
    ]


def proposed(group: str, same: dict[str, Any]) -> PlanDraft:
    """Return a plan of five partitions for five members."""
    owned = {f"c{number}": {group: [number]} for number in range(5)}
    return draft(group, {group: 5}, owned, moves(group, [1], ["c1"], ["c2"]), **same)


def adopt(store: PlanStore, names: list[str], turn: int) -> None:
    """Store how far plans are followed, of all groups."""
    store.record_adoptions(
        [
            SeenAdoption(
                group=name,
                version=3,
                observed_at=look_at(turn),
                planned=5,
                as_planned=5,
            )
            for name in names
        ]
    )


PLANNING: Final[dict[str, Action]] = {
    "which groups are due": lambda store, _names, _turn: store.last_decisions(),
    "memories of groups": lambda store, names, _turn: store.memories(names),
    "plans that wait": lambda store, names, _turn: store.waiting(names),
    "plans that are published": lambda store, names, _turn: store.in_state(
        "published", groups=names
    ),
    "what plans predicted": lambda store, names, _turn: store.predicted(
        store.in_state("published", groups=names[:AT_ONCE])
    ),
    "leases that run out": lambda store, _names, _turn: store.leases_ending_by(datetime.now(UTC)),
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
    "the page of groups": lambda store, _names, _turn: groups_page(store.engine),
    "a group's page": lambda store, _names, _turn: group_page(store.engine, "g7", Asked("g7-3")),
    "a scrape of metrics": lambda store, _names, _turn: read_all_groups(
        store.engine, DecisionCounts()
    ),
}


if __name__ == "__main__":
    main()

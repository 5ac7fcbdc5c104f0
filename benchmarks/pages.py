"""The server's time to build each web page for a large fleet: `python -m benchmarks.pages`.

Figures are medians of twenty rounds. A temporary database has 10,000 groups of 20 partitions, half
of them unbalanced. It has samples of two days, decisions every quarter of an hour for some days,
and daily summaries of ninety days (`retention_fill`).
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sqlalchemy import Engine

from benchmarks import harness
from benchmarks.harness import in_turns, median, seconds
from benchmarks.retention_fill import Size, fill
from benchmarks.services import postgres
from fairlead.store.engine import create_store_engine
from fairlead.surfaces.review import review_page
from fairlead.surfaces.web.group import group_page
from fairlead.surfaces.web.groups_list import Filters, groups_page

RESULTS: Final = Path(__file__).with_name("pages.json")
GOAL_S: Final = 0.3

PAGES: Final[dict[str, Callable[[Engine], str]]] = {
    "the groups": groups_page,
    "those with a diagnosis": lambda engine: groups_page(engine, Filters(diagnosis="healthy")),
    "a group": lambda engine: group_page(engine, "g7"),
    "a partition": lambda engine: group_page(engine, "g8", "g8-3"),
    "a review": lambda engine: review_page(engine, "g9"),
}


def main() -> None:
    """Measure, print and write pages.json."""
    options = harness.parser(__doc__, rounds=20)
    options.add_argument("--groups", type=int, default=10_000)
    options.add_argument("--partitions", type=int, default=20, help="of each group")
    options.add_argument("--kept", type=int, default=3, help="days of history")
    with harness.measuring(options, RESULTS) as bench, postgres() as server:
        given = bench.options
        url = server.url("fairlead")
        size = Size(days=90, kept=given.kept, versions=3)
        took = seconds(
            lambda: fill(url, size, groups=given.groups, partitions=given.partitions, seen=2)
        )
        bench.log(f"filled in {took:.0f} s")
        engine = create_store_engine(url)
        taken = in_turns(
            given.rounds,
            *(lambda _, page=page: timed(lambda: page(engine)) for page in PAGES.values()),
            warm_ups=1,
        )
        engine.dispose()
        rows = [
            {
                "page": name,
                "s": median(took for took, _, _ in turns),
                "cpu_s": median(used for _, used, _ in turns),
                "characters": turns[-1][2],
            }
            for name, turns in zip(PAGES, taken, strict=True)
        ]
        bench.write(
            {
                "how": f"python -m benchmarks.pages --groups {given.groups} --partitions"
                f" {given.partitions} --kept {given.kept}; medians of {given.rounds}",
                "goal_s": GOAL_S,
                "pages": rows,
            }
        )
        headings = ("page", "seconds", "of CPU, without Postgres", "characters")
        bench.show(f"pages (goal: {GOAL_S} s)", headings, (tuple(row.values()) for row in rows))


def timed(make: Callable[[], str]) -> tuple[float, float, int]:
    """Build a page; return the seconds, CPU seconds of this process, and number of characters."""
    began, used = time.perf_counter(), time.process_time()
    page = make()
    return time.perf_counter() - began, time.process_time() - used, len(page)


if __name__ == "__main__":
    main()

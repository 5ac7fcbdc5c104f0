"""Diagnoses of random groups whose reports of work have flaws.

Consumers report how long they processed records; some of these reports are missing, outdated or
false. `python -m benchmarks.flawed_reports` diagnoses each group twice, with equal arrivals: once
with its reports and once without them.

Belongs here: counting by cause and by flaw, and the goals. Belongs elsewhere: drawing random groups
(`random_scenarios`), deciding whether a diagnosis is right (`scoring`).
"""

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks import harness
from benchmarks.random_scenarios import FLAWS, REPORTED_CAUSES, random_reports, random_scenario
from benchmarks.scoring import Marked, mark

RESULTS: Final = Path(__file__).with_name("flawed_reports.json")
SEED: Final = 1
#: Number of the group, whether its reports were used, and its diagnoses.
Result = tuple[int, bool, list[Marked]]


def main() -> None:
    """Diagnose every group with and without reports."""
    options = harness.parser(__doc__)
    options.add_argument("--groups", type=int, default=1000, help="default: %(default)s")
    options.add_argument("--first", type=int, default=0, help="number of the first group")
    options.add_argument("--processes", type=int, default=2, help="default: %(default)s")
    with harness.measuring(options, RESULTS) as bench:
        began, given = time.perf_counter(), bench.options
        numbers = range(given.first, given.first + given.groups)
        jobs = [(number, reports) for number in numbers for reports in (False, True)]
        with ProcessPoolExecutor(given.processes) as pool:
            results = list(pool.map(_marked, jobs, chunksize=2))
        document = figures(results) | {
            "how": f"python -m benchmarks.flawed_reports --groups {given.groups}",
            "first": given.first,
            "seconds": round(time.perf_counter() - began),
        }
        for name in ("causes", "flaws"):
            bench.show(
                f"Wrong diagnoses of {given.groups} groups",
                (name, "diagnoses", "wrong without reports", "wrong with reports"),
                (
                    (row["of"], row["diagnoses"], row["without"], row["with"])
                    for row in document[name]
                ),
            )
        bench.console.print(*document["worse"], sep="\n")
        bench.write(document)


def _marked(job: tuple[int, bool]) -> Result:
    number, reports = job
    labelled = random_scenario(number, real=True, causes=REPORTED_CAUSES)
    scenario = replace(labelled.scenario, reports=random_reports(number))
    found = mark(replace(labelled, scenario=scenario), plans=False, seed=SEED, reports=reports)
    return number, reports, found


def figures(results: Sequence[Result]) -> dict[str, Any]:
    """Count wrong diagnoses by cause and flaw; list groups whose reports cause wrong diagnoses."""
    by_cause: dict[str, Counter[str]] = {}
    by_flaw: dict[str, Counter[str]] = {}
    wrong: dict[int, Counter[str]] = {}
    diagnoses: dict[int, set[str]] = {}
    for number, reports, marks in results:
        side = "with" if reports else "without"
        flaw = ", ".join(f"{name} {value}" for name, value in FLAWS[number % len(FLAWS)].items())
        for verdict in marks:
            for table, key in ((by_cause, verdict.cause), (by_flaw, flaw)):
                row = table.setdefault(key, Counter())
                row["diagnoses"] += not reports
                row[side] += not verdict.right
            wrong.setdefault(number, Counter())[side] += not verdict.right
            if reports and not verdict.right:
                diagnoses.setdefault(number, set()).add(verdict.diagnosed)
    return {
        "causes": _rows(by_cause),
        "flaws": _rows(by_flaw),
        "worse": [
            f"group {number}: {count['with']} wrong, {count['without']} without reports: "
            f"{sorted(diagnoses[number])}, {random_reports(number)}"
            for number, count in sorted(wrong.items())
            if count["with"] > count["without"]
        ],
    }


def _rows(table: dict[str, Counter[str]]) -> list[dict[str, Any]]:
    return [
        {"of": key, **{name: row[name] for name in ("diagnoses", "without", "with")}}
        for key, row in sorted(table.items())
    ]


if __name__ == "__main__":
    main()

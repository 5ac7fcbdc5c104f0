"""Results of the closed loop: tables on the console and in the docs, and a plot.

Belongs here: showing figures. Belongs elsewhere: measuring (`loop`), the goals (`loop_goals`).

In docs/measurements.md, two comments with the name of a table enclose the table.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import DOCS, Bench
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.registry import (
    CONTROLLERS,
    NEVER_PLANNED,
    ORACLE,
    PLANNER,
    PLANNER_REPORTS,
    PUBLISHED_RULE,
    PUBLISHED_RULE_ALWAYS,
    STICKY,
)

Row = Mapping[str, Any]
PAGE: Final = DOCS / "measurements.md"
PLOT: Final = DOCS / "closed-loop.svg"
_PEERS: Final = (NEVER_PLANNED, STICKY, PUBLISHED_RULE, PUBLISHED_RULE_ALWAYS)


def show_courses(bench: Bench, rows: Sequence[Row]) -> None:
    """Print the figures of all controllers in one scenario."""
    first = SCENARIOS[rows[0]["scenario"]]
    headings = (
        "who decides",
        "over_objective",
        "p99 s",
        "plans",
        "moves",
        "rebalances",
        "moved",
        "s",
    )
    keys = ("over_objective", "p99_s", "plans", "moves", "rebalances", "rebalance_moves", "seconds")
    bench.show(
        f"{first.name} ({first.kind}): {first.what}",
        headings,
        ((row["controller"], *(_number(row[key]) for key in keys)) for row in rows),
    )


def show(bench: Bench, document: Mapping[str, Any]) -> None:
    """Print the accuracy of diagnoses and predictions, changes of diagnoses, and every goal."""
    for row in document["diagnosis"]:
        bench.console.print(f"{row['runs']}: right in {row['right']}", *row["wrong"], sep="\n  ")
    for row in document["flips"]:
        bench.console.print(f"{row['client']}: {row['flip']} of {row['groups']} steady groups flip")
    for row in document["predictions"]:
        bench.console.print(row)
    reached = document["goals"]
    bench.show(
        f"Goals: {sum(goal['met'] for goal in reached)} of {len(reached)} met",
        ("scenario", "goal", "planner", "at most", "met"),
        (
            (
                *(goal["scenario"], goal["what"]),
                *(_number(goal["value"]), _number(goal["limit"]), "yes" if goal["met"] else "NO"),
            )
            for goal in reached
        ),
    )


def write(document: Mapping[str, Any]) -> None:
    """Write the docs' tables and draw their plot."""
    PAGE.write_text(rewritten(PAGE.read_text(), document))
    draw(document, PLOT)


def rewritten(page: str, document: Mapping[str, Any]) -> str:
    """Return the text of a page with its tables replaced."""
    tables = {
        "courses": _courses(document),
        "goals": _goals(document),
        "diagnosis": _diagnosis(document),
        "flips": _flips(document),
    }
    for name, table in tables.items():
        between = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        found = re.search(between, page, flags=re.DOTALL)
        if found is not None:
            page = page[: found.end(1)] + table + page[found.start(2) :]
    return page


def _courses(document: Mapping[str, Any]) -> str:
    """Return the table of how long partitions had a time lag above the objective.

    Scenarios with short times share a row.
    """
    large, others = [], []
    for name, course in _by_scenario(document).items():
        if any(course[who]["over_objective"] > _LONG for who in _PLANNERS):
            large.append(_course(f"`{name}`", [course]))
        else:
            others.append(course)
    return _markdown(("scenario", *_IN_COLUMNS), (*large, _course(f"{len(others)} others", others)))


def _course(name: str, found: Sequence[Mapping[str, Row]]) -> Sequence[str]:
    """Return a table row with the sum over some scenarios for each controller."""

    def total(who: str) -> float:
        return sum(float(by[who]["over_objective"]) for by in found)

    return (name, *(_number(total(who)) for who in _IN_COLUMNS))


_PLANNERS: Final = (PLANNER, PLANNER_REPORTS)
#: A scenario has its own row if time lags are above the objective for longer than this, in minutes
#: summed over all partitions.
_LONG: Final = 1_000
_IN_COLUMNS: Final = (NEVER_PLANNED, STICKY, PUBLISHED_RULE_ALWAYS, *_PLANNERS, ORACLE)


def _goals(document: Mapping[str, Any]) -> str:
    missed = [goal for goal in document["goals"] if not goal["met"]]
    met, all_ = len(document["goals"]) - len(missed), len(document["goals"])
    if not missed:
        return f"All {all_} goals are met.\n"
    rows = [
        (f"`{goal['scenario']}`", goal["what"], _number(goal["value"]), _number(goal["limit"]))
        for goal in missed
    ]
    table = _markdown(("scenario", "goal", "planner", "at most"), rows)
    return f"{met} of {all_} goals are met. These are not:\n\n{table}"


def _diagnosis(document: Mapping[str, Any]) -> str:
    right = {row["runs"]: _share(row["right"].get("all")) for row in document["diagnosis"]}
    rows = [
        (runs, share, right[f"{runs}, reports"])
        for runs, share in right.items()
        if f"{runs}, reports" in right
    ]
    return _markdown(("groups", "right", "right with reports"), rows)


def _flips(document: Mapping[str, Any]) -> str:
    rows = [(row["client"], row["groups"], row["flip"]) for row in document["flips"]]
    return _markdown(("client", "groups", "of these, with two diagnoses within an hour"), rows)


def _share(right: float | None) -> str:
    return "" if right is None else f"{right:.1%}"


def draw(document: Mapping[str, Any], path: Path) -> None:
    """Draw how long partitions had a time lag above the objective, by scenario and controller."""
    from matplotlib import rc_context  # noqa: PLC0415 - the same
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import, and only needed here

    from benchmarks.plot_style import STYLE  # noqa: PLC0415 - the same

    colours = {NEVER_PLANNED: "#9d9d9d", PLANNER: "#3d85e0", ORACLE: "#e08e0b"}
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 6), layout="constrained")
        late = figure.subplots()
        found = _by_scenario(document)
        sick = [name for name, by in found.items() if by[NEVER_PLANNED]["over_objective"]][::-1]
        for who, marker in zip((*_PEERS, ORACLE, *_PLANNERS), "os^vdD*", strict=True):
            values = [found[name][who]["over_objective"] for name in sick]
            colour = colours.get(who)
            late.plot(values, sick, marker, label=who, color=colour, markersize=6, alpha=0.9)
        late.set_xscale("symlog", linthresh=10)
        late.set_xlim(left=-1)
        late.xaxis.set_major_formatter("{x:,.0f}")
        late.set_xlabel("partition-minutes more than 60 s behind")
        late.grid(axis="y")
        late.legend(fontsize="small", ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        figure.savefig(path, metadata={"Date": None})


def _by_scenario(document: Mapping[str, Any]) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in document["courses"]:
        if row["controller"] in CONTROLLERS:
            found.setdefault(row["scenario"], {})[row["controller"]] = row
    return found


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def _number(value: float) -> str:
    small = 10
    return f"{value:,.0f}" if value >= small or value == int(value) else f"{value:.2f}"

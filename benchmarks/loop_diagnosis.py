"""The share of right diagnoses among random groups.

Belongs here: the number of groups, and the goal. Belongs elsewhere: the groups
(`random_scenarios`), whether a diagnosis is right (`scoring`).
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any, Final

from benchmarks.loop_goals import Goal
from benchmarks.random_scenarios import random_scenario
from benchmarks.scoring import Marked, mark, share_right

GROUPS: Final = 200
_GOAL: Final = 0.95


def measure(seed: int, each: Callable[..., Iterable[list[Marked]]] = map) -> list[dict[str, Any]]:
    """Return the shares of right diagnoses for plain and real groups (see `random_scenarios`).

    Each group is diagnosed in four runs: with and without plans, and with and without consumers'
    reports of how long they processed records.

    Parameters
    ----------
    seed
        Seed of the arrivals.
    each
        `map`, or a process pool's `map`.
    """
    rows = []
    for reports, real, plans in product((False, True), repeat=3):
        marked = partial(_marked, real=real, plans=plans, seed=seed, reports=reports)
        marks = [verdict for group in each(marked, range(GROUPS)) for verdict in group]
        rows.append(
            {
                "runs": f"{'real' if real else 'plain'}, {'planned' if plans else 'never planned'}"
                + (", reports" if reports else ""),
                "groups": GROUPS,
                "diagnoses": len(marks),
                "right": share_right(marks),
                "wrong": sorted(
                    {
                        f"{m.scenario}: {m.cause}, diagnosed {m.diagnosed}"
                        for m in marks
                        if not m.right
                    }
                ),
            }
        )
    return rows


def _marked(number: int, *, real: bool, plans: bool, seed: int, reports: bool) -> list[Marked]:
    return mark(random_scenario(number, real=real), plans=plans, seed=seed, reports=reports)


def goals(rows: list[dict[str, Any]]) -> list[Goal]:
    """Return the goals: at least 95 of 100 diagnoses are right."""
    return [
        Goal(
            "random groups",
            f"diagnoses wrong, {row['runs']}",
            value=round(1 - row["right"]["all"], 4),
            limit=round(1 - _GOAL, 4),
        )
        for row in rows
    ]

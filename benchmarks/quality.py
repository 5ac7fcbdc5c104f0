"""Quality of plans on seeded scenarios: highest load, spread of partition counts, and moves.

Belongs here: running every assignor on every scenario, first from a round-robin assignment, then
from its own result after every lag has changed a little. Belongs elsewhere: time (`speed`).
"""

from dataclasses import dataclass

from assignors.assignment import Spent
from assignors.metrics import measure
from assignors.problem import Problem
from assignors.registry import ASSIGNORS, assign
from benchmarks.workloads import jittered, owned_by, scenarios

SEED = 1


@dataclass(frozen=True)
class Plan:
    """The figures of one assignor on one scenario.

    `ratio` is the load of the most loaded member, divided by the lower bound; `spread` the
    difference between the most and the fewest partitions of a member; `moves` the number of
    partitions moved from a round-robin assignment. Fields with `after_jitter` are figures of the
    next plan, after every lag has changed by up to 10 %. `on_front`: no other assignor is at least
    as good in both ratio and moves, and better in one of them.
    """

    scenario: str
    assignor: str
    partitions: int
    ratio: float
    spread: int
    moves: int
    ratio_after_jitter: float
    moves_after_jitter: int
    frontier: tuple[Spent, ...]
    on_front: bool


def measure_all(seed: int = SEED) -> list[Plan]:
    """Measure all assignors on all scenarios."""
    plans = []
    for scenario, fresh in scenarios(seed):
        problem = owned_by(fresh, assign("roundrobin", fresh).owner)
        results = {name: _figures(name, problem) for name in ASSIGNORS}
        for name, (ratio, spread, moves, frontier) in results.items():
            later = jittered(problem, assign(name, problem).owner, seed)
            ratio_later, _, moves_later, _ = _figures(name, later)
            beaten = any(
                (other[0], other[2]) != (ratio, moves) and other[0] <= ratio and other[2] <= moves
                for other in results.values()
            )
            plans.append(
                Plan(
                    scenario=scenario,
                    assignor=name,
                    partitions=problem.partition_total,
                    ratio=ratio,
                    spread=spread,
                    moves=moves,
                    ratio_after_jitter=ratio_later,
                    moves_after_jitter=moves_later,
                    frontier=frontier,
                    on_front=not beaten,
                )
            )
    return plans


def _figures(name: str, problem: Problem) -> tuple[float, int, int, tuple[Spent, ...]]:
    assignment = assign(name, problem)
    metrics = measure(problem, assignment)
    bound = metrics.lag_lower_bound
    frontier = tuple(Spent(moves, heaviest / bound) for moves, heaviest in assignment.frontier)
    return 1 + metrics.gap, metrics.count_max - metrics.count_min, metrics.moved, frontier

"""Whether a group gets a plan, and which: the judgement of one look back over many.

Belongs here: putting rates, capacities, forecast and diagnosis together into one answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from assignors.problem import Problem
from fairlead.judgement.looks import Float64, Int32, Looks

Diagnosis = Literal[
    "healthy", "recovering", "badly spread", "slow member", "overloaded",
    "hot partition", "stuck partition", "unknown",
]


@dataclass(frozen=True)
class Rules:
    """What a policy asks for, in seconds and shares."""

    objective_s: float = 60.0
    horizon_s: float = 1800.0
    headroom: float = 0.95
    pause_s: float = 10.0
    max_moves: int | None = None


@dataclass(frozen=True)
class Capacity:
    """What is known of a member's speed: records a second, as measured (else at least so much)."""

    records_per_s: float
    measured: bool
    at: float


@dataclass(frozen=True, eq=False)
class Question:
    """All that a decision may know.

    Parameters
    ----------
    problem
        Partition counts, members with subscriptions, and owners *now* (`Problem.of`; weights and
        capacities are ignored). Its P partitions are those of `looks`.
    looks
        One at least.
    capacities
        Known from before: what the last answer about the group said.
    changed_at
        When a plan last took effect, seconds since the epoch; None: never.
    eager
        Whether every partition stands still at each rebalance, not only those that move.
    """

    problem: Problem
    looks: Looks
    rules: Rules = Rules()
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    changed_at: float | None = None
    eager: bool = False


@dataclass(frozen=True)
class Forecast:
    """An assignment at the horizon: the worst partition's lateness, the fullest member's share."""

    late_s: float
    utilisation: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """The answer. `owner`: what is planned, int32 of shape (P,); None without a plan."""

    outcome: Literal["plan", "no change"]
    reason: str
    diagnosis: Diagnosis
    names: tuple[str, ...]
    evidence: str
    kept: Forecast
    planned: Forecast | None
    capacities: Mapping[str, Capacity]
    owner: Int32 | None
    moved: int


def judge(question: Question) -> Judgement:
    """Judge a group by its looks."""
    raise NotImplementedError

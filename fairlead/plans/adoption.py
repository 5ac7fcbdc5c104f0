"""Adoption: what the consumers own, held against the published plan.

Belongs here: adherence and the balance achieved, as numbers. Does not: reading the live assignment
(`fairlead.kafka`), storing the result (`fairlead.store`).
"""

from dataclasses import dataclass

from assignors.metrics import Metrics, measure
from fairlead.plans.as_problem import Ownership, assignment_of, planned, problem_of
from fairlead.plans.document import PlanDocument


@dataclass(frozen=True)
class Adoption:
    """How far a group follows its plan.

    Parameters
    ----------
    planned
        Partitions to which the plan gives an owner.
    as_planned
        Those of them that this owner has.
    achieved
        Metrics of the live assignment under the lag that the plan was made for, so that they
        compare with the predicted ones; kept, moved and placed are counted against the plan.
    """

    planned: int
    as_planned: int
    achieved: Metrics

    @property
    def adherence(self) -> float:
        """The share of planned partitions that are where the plan wants them; 1 for none."""
        return self.as_planned / self.planned if self.planned else 1.0


def compare(plan: PlanDocument, owned: Ownership) -> Adoption:
    """Hold a live assignment against a plan.

    Parameters
    ----------
    plan
        The published plan.
    owned
        Live member names to what they own.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC, datetime
    >>> from fairlead.plans.document import MemberShare
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> plan = PlanDocument("g", 1, "id", "range", day, day, None, {"t": 2},
    ...                     {"a": MemberShare(("t",), {"t": np.array([0, 1], np.int32)})})
    >>> compare(plan, {"a": {"t": [0]}, "b": {"t": [1]}}).adherence
    0.5
    """
    nobody: Ownership = {name: {} for name in owned}
    problem = problem_of(plan, {**nobody, **planned(plan)})
    wanted = assignment_of(problem, planned(plan)).owner
    live = assignment_of(problem, owned)
    return Adoption(
        planned=int((wanted >= 0).sum()),
        as_planned=int(((wanted >= 0) & (wanted == live.owner)).sum()),
        achieved=measure(problem, live),
    )

"""The planner in a closed loop. Between decisions, it keeps the estimated capacities and costs."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from assignors.registry import assign
from benchmarks.simulation.controllers import ScenarioMoment
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.analysis.decide import PlanDecision, decide
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.thresholds import WEEK_S
from fairlead.domain.regression import find_regression
from fairlead.simulation.controllers import ByPlans, Moment
from fairlead.simulation.world import Int32
from fairlead.wire.document import PlanDocument

#: Seconds for which a group gets no plan after its first regression.
_FIRST_REST_S: Final = 1800.0


def rest_s(times: int) -> float:
    """Return the back-off: for how many seconds a group gets no plan after its n-th regression.

    A regression is a plan that put the group further behind. migrations/sql/regression_checks.sql
    computes the back-off of real groups in the same way.

    Examples
    --------
    >>> [rest_s(times) / 3600 for times in (1, 2, 3, 20)]
    [0.5, 1.0, 2.0, 168.0]
    """
    return min(_FIRST_REST_S * 2.0 ** (times - 1), WEEK_S)


class Planner(ByPlans):
    """Analyses the group at each decision, and publishes plans at once.

    Parameters
    ----------
    rules
        The rules of the policy.
    eager
        Whether all partitions of the group pause at each rebalance.
    plans
        Whether plans are published. Otherwise, the planner only diagnoses.
    reports
        Whether the planner reads reports of work.
    """

    def __init__(
        self, rules: Rules, *, eager: bool = False, plans: bool = True, reports: bool = False
    ) -> None:
        super().__init__()
        self.reports = reports
        #: Each decision with its time, in seconds since the epoch.
        self.decisions: list[tuple[float, PlanDecision]] = []
        self._rules, self._eager, self._plans = rules, eager, plans
        self._capacities: Mapping[str, Capacity] = {}
        self._costs: CostRows = {}
        #: The plan that was published before the present one, or None.
        self._before: PlanDocument | None = None
        self._regrets, self._rests_until = 0, -np.inf
        self._doubts_until = -np.inf
        self._regretted_at: float | None = None

    def plan(self, moment: Moment) -> Int32 | None:
        """Analyse the group; return the owners under a new plan, or None for no plan."""
        decision = decide(self._question(moment))
        self._capacities, self._costs = decision.capacities, decision.costs.rows(moment.problem)
        self.decisions.append((moment.at, decision))
        rests = moment.at < max(self._rests_until, self._doubts_until) and decision.moved > 0
        return decision.owner if self._plans and not rests else None

    def take_over(self, moment: Moment, owner: Int32) -> None:
        """Publish the plan with these owners, and remember the previous plan."""
        self._before = self._plan
        super().take_over(moment, owner)

    def take_back(self, moment: Moment) -> Int32 | None:
        """After a regression, return the owners under the previous plan, or under `range`."""
        if self._plan is None or self.changes[-1] == self._regretted_at or not self._plans:
            return None
        found = find_regression(self._question(moment))
        # Make no plan until the next sample has confirmed or refuted the regression.
        if found is not None:
            self._doubts_until = moment.at + 1
        if found is None or not found.sure:
            return None
        self._regrets += 1
        self._rests_until = moment.at + rest_s(self._regrets)
        self._plan, self._before = self._before, None
        self.changes.append(moment.at)
        self._regretted_at = moment.at
        return found.owner if self._plan else assign("range", moment.problem).owner

    def _question(self, moment: Moment) -> Question:
        series = moment.series()
        return Question(
            problem=moment.problem,
            series=series,
            reports=moment.reports(series) if isinstance(moment, ScenarioMoment) else None,
            rules=self._rules,
            capacities=self._capacities,
            costs=self._costs,
            changes=self.changes,
            eager=self._eager,
        )

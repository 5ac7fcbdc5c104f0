"""Forecasts of a group under any plan, from its analysis.

They allow comparing an earlier plan with a new one by the same figures.
"""

from dataclasses import dataclass

from assignors.problem import Problem
from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.as_problem import Shares, assignment_of, planned


@dataclass(frozen=True, eq=False)
class Prospect:
    """The outlook of a group, and the horizon of its forecast in seconds."""

    problem: Problem
    outlook: Outlook
    horizon_s: float

    def forecast(self, plan: Shares) -> Forecast:
        """Return the forecast under a plan for the same members and partitions."""
        owner = assignment_of(self.problem, planned(plan)).owner
        return self.outlook.forecast(owner, self.horizon_s)

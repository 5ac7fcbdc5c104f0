"""Forecasts of a group for any plan, from its analysis.

They allow comparing an earlier plan with a new plan by the same figures.
"""

from dataclasses import dataclass

from assignors.problem import Problem
from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.as_problem import Shares, assignment_of, planned


@dataclass(frozen=True, eq=False)
class Prospect:
    """The outlook of a group, and the horizon in seconds of its forecasts."""

    problem: Problem
    outlook: Outlook
    horizon_s: float

    def forecast(self, plan: Shares) -> Forecast:
        """Return the forecast for a plan with the same members and partitions."""
        owner = assignment_of(self.problem, planned(plan)).owner
        return self.outlook.forecast(owner, self.horizon_s)

"""Forecasts of a group under any plan, from the group's analysis.

An earlier plan and a new plan are compared by such forecasts, for the same arrivals and capacities.
"""

from dataclasses import dataclass

from assignors.problem import Problem
from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.as_problem import Shares, assignment_of, planned


@dataclass(frozen=True, eq=False)
class Prospect:
    """Input for forecasts of a group: partitions, expected loads, and the horizon in seconds."""

    problem: Problem
    outlook: Outlook
    horizon_s: float

    def forecast(self, plan: Shares) -> Forecast:
        """Return the forecast for a plan with the same members and partitions."""
        owner = assignment_of(self.problem, planned(plan)).owner
        return self.outlook.forecast(owner, self.horizon_s)

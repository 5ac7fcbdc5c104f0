"""Input of an analysis: a group's samples, its policy's rules, and remembered estimates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assignors.problem import Problem
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.analysis.reported_work import ReportSeries
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.sample_series import Float64, SampleSeries


@dataclass(frozen=True, eq=False)
class Question:
    """All input of an analysis."""

    #: Partition counts, subscriptions of members, and present owners (`Problem.of`). `weights` are
    #: lags, for lag-based assignors; `capacities` and `arrival_rates` are ignored.
    problem: Problem
    #: One or more samples of the same partitions; `series.members` begins with `problem.members`.
    series: SampleSeries
    #: The policy's rules.
    rules: Rules = field(default_factory=Rules)
    #: Maps member names to capacities: `PlanDecision.capacities` of the last analysis.
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    #: Remembered costs: `Costs.rows` of the last analysis.
    costs: CostRows = field(default_factory=dict)
    #: Whether remembered values were invalid and so were ignored. The diagnosis then mentions this.
    forgotten: bool = False
    #: Times of the newest `MOST_PLANS` publications and withdrawals, seconds since the epoch,
    #: ascending.
    changes: Sequence[float] = ()
    #: Whether the consumers stop reading all their partitions in each rebalance (eager protocol),
    #: not only those that move.
    eager: bool = False
    #: Mean size of each partition's records, in bytes, float64 of shape (P,); NaN or None: unknown.
    record_bytes: Float64 | None = None
    #: What consumers reported about their work in the samples of `series`; None: nothing.
    reports: ReportSeries | None = None

    def with_series(self, series: SampleSeries) -> "Question":
        """Return the same question with only the samples in `series` and their reports."""
        rows = np.searchsorted(self.series.at, series.at)
        reports = None if self.reports is None else self.reports.of(rows)
        return replace(self, series=series, reports=reports)

    @property
    def changed_at(self) -> float | None:
        """Time at which a plan last took effect; None: never."""
        return self.changes[-1] if self.changes else None

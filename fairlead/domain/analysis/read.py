"""First step of the analysis: observations from the samples of a group.

Belongs here: cleaning samples, and choosing the samples to use. Belongs elsewhere: reading
arrivals, commits and reported work (`arrivals`, `commits`, `reported_work`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.domain.analysis.arrivals import Rates, arrival_rates
from fairlead.domain.analysis.commits import Commits, read_commits
from fairlead.domain.analysis.reported_work import MeasuredWork, ReportSeries, reported_work
from fairlead.domain.analysis.sample_series import SampleSeries
from fairlead.domain.analysis.thresholds import SEVERAL, STEPS

#: Seconds. Arrival rates and commits are evaluated over this time before the last sample. If a
#: member has too few commits in this time, commits are evaluated over all samples.
HISTORY_S: Final = 3600.0
#: At least this many newest samples are used, even if they are older than `HISTORY_S`.
LEAST_SAMPLES: Final = STEPS + 4


@dataclass(frozen=True, eq=False)
class Observations:
    """The samples of a group after cleaning, and what they show."""

    #: All samples that were read, often only an hour (`fairlead.domain.history`). If a partition is
    #: missing in a single sample, its offsets are interpolated. A time without samples becomes one
    #: long step. Of two samples in quick succession, the first is left out.
    series: SampleSeries
    #: Samples of the last hour, or all samples if a member has too few commits in the last hour.
    recent: SampleSeries
    #: Arrival rates, records a second.
    rates: Rates
    #: Findings from the commits in `recent`; records are not weighted by cost.
    commits: Commits
    #: Reported work of the last hour; None: nothing is reported.
    work: MeasuredWork | None


def read(series: SampleSeries, reports: ReportSeries | None) -> Observations:
    """Return the observations from the samples of a group and, if there are any, its reports."""
    work = None
    if reports is not None and len(series) > 1:
        lately = series.last(HISTORY_S, LEAST_SAMPLES)
        work = reported_work(reports.of(slice(len(series) - len(lately), None)), lately)
    series = series.bridged().spaced()
    recent = series.last(HISTORY_S, LEAST_SAMPLES)
    waits = None if work is None else work.waits
    commits = read_commits(recent, waits=waits)
    rates = arrival_rates(recent)
    few = commits.marked.sum(axis=0) <= SEVERAL
    if len(series) > len(recent) and (few & (commits.rare | np.isinf(commits.interval_s))).any():
        recent, commits = series, read_commits(series, waits=waits)
    return Observations(series, recent, rates, commits, work)

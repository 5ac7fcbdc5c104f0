"""First step of the analysis: observations from the samples of a group.

Belongs here: cleaning samples, and how many of them count. Does not: reading arrivals, commits and
reported work (`arrivals`, `commits`, `reported_work`).
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fairlead.domain.analysis.arrivals import Rates, arrival_rates
from fairlead.domain.analysis.commits import Commits, read_commits, records_per_commit
from fairlead.domain.analysis.reported_work import MeasuredWork, ReportSeries, reported_work
from fairlead.domain.analysis.sample_series import Mask, SampleSeries
from fairlead.domain.analysis.thresholds import NEGLIGIBLE, SEVERAL, STEPS

#: Seconds of samples from which rates and commits are read, and minimum number of samples.
HISTORY_S: Final = 3600.0
LEAST_SAMPLES: Final = STEPS + 4


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations from the samples of a group."""

    #: All samples. Gaps are bridged, and samples in quick succession left out.
    series: SampleSeries
    #: Samples of the last hour, or all samples if commits are rare.
    recent: SampleSeries
    #: Arrivals in records a second.
    rates: Rates
    #: Findings from the commits of the last hour, in records.
    commits: Commits
    #: Reported work of the last hour; None: nothing is reported.
    work: MeasuredWork | None


def read(series: SampleSeries, reports: ReportSeries | None) -> Observations:
    """Read the samples of a group."""
    work = None
    if reports is not None and len(series) > 1:
        lately = series.last(HISTORY_S, LEAST_SAMPLES)
        work = reported_work(reports.of(slice(len(series) - len(lately), None)), lately)
    series = series.bridged().spaced()
    recent = series.last(HISTORY_S, LEAST_SAMPLES)
    per_commit = records_per_commit(recent)
    if not per_commit.all():  # without a commit in the last hour, of all samples
        per_commit = np.where(per_commit > 0, per_commit, records_per_commit(series))
    waits = None if work is None else work.waits
    commits = read_commits(recent, per_commit=per_commit, waits=waits)
    rates = arrival_rates(recent)
    if len(series) > len(recent):
        recent, commits = _with_all_samples(series, recent, commits, waits)
    return Observations(series, recent, rates, commits, work)


def _with_all_samples(
    series: SampleSeries, recent: SampleSeries, lately: Commits, waits: Mask | None
) -> tuple[SampleSeries, Commits]:
    """Return samples and commits that count, if members have few commits in the last hour.

    For members that have always committed rarely, all samples count. A member that committed in
    nearly every step until its last commit has stopped: then all samples count only for its commit
    interval and its silence.
    """
    few = lately.marked.sum(axis=0) <= SEVERAL
    few &= lately.rare | ~np.isfinite(lately.interval_s)
    if not few.any():
        return recent, lately
    commits = read_commits(series, waits=waits)
    until_last = np.logical_or.accumulate(commits.marked[::-1], axis=0)[::-1] & commits.steady
    rare = commits.marked.sum(axis=0) < (1.0 - NEGLIGIBLE) * until_last.sum(axis=0)
    if (few & rare).any():
        return series, commits
    stopped = few & commits.silent
    return recent, replace(
        lately,
        interval_s=np.where(stopped, commits.interval_s, lately.interval_s),
        rare=lately.rare & ~stopped,
        silent=lately.silent | stopped,
    )

"""First step of the analysis: observations from the samples of a group, as one frozen result.

Belongs here: cleaning samples, and reading arrivals, commits and reported work from them, of many
groups at once. Does not: reading each (`arrivals`, `commits`, `reported_work`).

Reading groups side by side gives the same figures in a tenth of the time: numpy takes as long for a
small array as for a large one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final

import numpy as np

from fairlead.domain.analysis.arrivals import Rates, arrival_rates
from fairlead.domain.analysis.commit_habits import at_rest
from fairlead.domain.analysis.commits import Commits, read_commits, records_per_commit
from fairlead.domain.analysis.reported_work import MeasuredWork, ReportSeries, reported_work
from fairlead.domain.analysis.sample_series import Float64, SampleSeries
from fairlead.domain.analysis.stalled import fetched_slowly
from fairlead.domain.analysis.thresholds import NEGLIGIBLE, SEVERAL, STEPS

#: Seconds of samples from which rates and commits are read, and minimum number of samples.
HISTORY_S: Final = 3600.0
LEAST_SAMPLES: Final = STEPS + 4
#: About the maximum number of partitions read side by side: arrays stay in the processor's cache.
_AT_ONCE: Final = 2_000


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations from the samples of a group.

    Parameters
    ----------
    series, recent
        All samples; those of the last hour, or all if commits are rare. Gaps are bridged, and
        samples in quick succession left out.
    rates
        Arrivals in records a second.
    commits
        Findings from the commits of the last hour, in records.
    work
        Reported work of the last hour; None: nothing is reported.
    """

    series: SampleSeries
    recent: SampleSeries
    rates: Rates
    commits: Commits
    work: MeasuredWork | None = None


def read(
    series: SampleSeries, reports: ReportSeries | None, observations: Observations | None = None
) -> Observations:
    """Read the samples of one group; `observations`: its result of `read_together`."""
    observed = observations or read_together([series])[0]
    work = None
    if reports is not None and len(series) > 1:
        recent = series.last(HISTORY_S, LEAST_SAMPLES)
        work = reported_work(reports.of(slice(len(series) - len(recent), None)), recent)
        slowly = fetched_slowly(observed.recent, at_rest(observed.recent), work.waits)
        if slowly.any():
            per_commit = _recent_records_per_commit(observed.series, observed.recent)
            commits = read_commits(observed.recent, per_commit=per_commit, slowly=slowly)
            observed = replace(observed, commits=commits)
    return replace(observed, work=work)


def read_together(groups: Sequence[SampleSeries]) -> list[Observations]:
    """Read arrivals and commits of groups; groups with samples at the same times are combined.

    Examples
    --------
    >>> at, owner = np.arange(0.0, 600.0, 60.0), np.zeros((10, 1), np.int32)
    >>> offsets = [3 * [n * at.astype(int)[:, None]] for n in (1, 2)]
    >>> groups = [SampleSeries(at, *each, ("a",), owner) for each in offsets]
    >>> [observations.rates.per_s.tolist() for observations in read_together(groups)]
    [[1.0], [2.0]]
    """
    whole = [series.bridged().spaced() for series in groups]
    recent = [series.last(HISTORY_S, LEAST_SAMPLES) for series in whole]
    together: dict[tuple[bytes, bool], list[list[int]]] = {}
    for place, series in enumerate(recent):
        portions = together.setdefault((series.at.tobytes(), series.latest), [[]])
        if sum(recent[chosen].partitions for chosen in portions[-1]) >= _AT_ONCE:
            portions.append([])
        portions[-1].append(place)
    observations: dict[int, Observations] = {}
    for portion in (part for portions in together.values() for part in portions):
        observations |= zip(
            portion, _beside([(whole[chosen], recent[chosen]) for chosen in portion]), strict=True
        )
    return [observations[place] for place in range(len(groups))]


def _beside(groups: Sequence[tuple[SampleSeries, SampleSeries]]) -> list[Observations]:
    """Read groups whose recent samples are at the same times."""
    everything = SampleSeries.beside([recent for _, recent in groups])
    counts = [max(len(recent.members), 1) for _, recent in groups]
    rates = arrival_rates(everything)
    per_commit = np.concatenate([_recent_records_per_commit(*group) for group in groups])
    group_of = np.repeat(np.arange(len(counts)), counts)
    commits = read_commits(everything, group_of=group_of, per_commit=per_commit)
    members = pairwise(accumulate(counts, initial=0))
    partitions = pairwise(accumulate((recent.partitions for _, recent in groups), initial=0))
    return [
        _with_all_samples(
            series,
            Observations(
                series,
                everything.part(recent, columns := slice(*of)),
                rates.of(columns),
                commits.of(columns, slice(*by)),
            ),
        )
        for (series, recent), of, by in zip(groups, partitions, members, strict=True)
    ]


def _with_all_samples(series: SampleSeries, lately: Observations) -> Observations:
    """Return observations that use all samples for members with few commits in the last hour.

    If a member has always committed rarely, everything is read from all samples. If it committed in
    nearly every step until its last commit, it has stopped: only its interval, and that it is
    silent, come from all samples.
    """
    few = lately.commits.marked.sum(axis=0) <= SEVERAL
    few &= lately.commits.rare | ~np.isfinite(lately.commits.interval_s)
    if len(series) == len(lately.recent) or not few.any():
        return lately
    commits = read_commits(series)
    until_last = np.logical_or.accumulate(commits.marked[::-1], axis=0)[::-1] & commits.steady
    rare = commits.marked.sum(axis=0) < (1.0 - NEGLIGIBLE) * until_last.sum(axis=0)
    if (few & rare).any():
        return replace(lately, recent=series, commits=commits)
    stopped = few & commits.silent
    return replace(
        lately,
        commits=replace(
            lately.commits,
            interval_s=np.where(stopped, commits.interval_s, lately.commits.interval_s),
            rare=lately.commits.rare & ~stopped,
            silent=lately.commits.silent | stopped,
        ),
    )


def _recent_records_per_commit(series: SampleSeries, recent: SampleSeries) -> Float64:
    """Return the usual records of a commit in the last hour; without a commit, in all samples."""
    lately = records_per_commit(recent)
    return lately if lately.all() else np.where(lately > 0, lately, records_per_commit(series))

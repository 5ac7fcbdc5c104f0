"""Regression check: whether a plan made its group worse.

Belongs here: whether a plan is a regression, with evidence. Belongs elsewhere: rolling back
(`fairlead.workflows.automatic_rollback`), and analysing the present (`analysis`).

A replay computes what would have happened without the plan: the owners from before the plan read
the records that arrived since then, at the speeds measured before the plan. (The model treats
records as a fluid.) The plan is a regression if the group has fallen further behind than in the
replay, both by now and at the horizon. The difference must exceed the error of the replay plus a
tenth of the change in the replay. All these values are the time lag beyond the
objective, in seconds, summed over partitions. The error has three parts:

- *hindcast*: by how much a replay of the time before the plan differs from the measurements.
- *bystanders*: members to which the plan gave no partition. If they have fallen further behind than
  in a replay with the present owners, the cause is not the plan, but for example a deployment or a
  slower network. The same error is assumed for all other members.
- *resolution*: the time lag of a partition is known only to within the age of its last commit.

There is a second way to be a regression: both now and at the horizon, more partitions exceed the
objective than in the replay, and the plan saves less time lag than is required of a plan
(`thresholds.BETTER`). The number of additional partitions must exceed the number of partitions for
which the replay is wrong (by hindcast and bystanders).

For a member that was never at its limit, the replay uses the highest speed seen. So the replay
tends to overestimate the time lag without the plan. There is no verdict if an owner from before the
plan has left the group.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from fairlead.common.words import length, plural
from fairlead.domain.analysis.candidates import planning_horizon_s
from fairlead.domain.analysis.capacities import observed_capacities
from fairlead.domain.analysis.commits import Commits, read_commits
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.per_member import of_owner, sum_by_owner
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.read import HISTORY_S, LEAST_SAMPLES
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask, SampleSeries
from fairlead.domain.analysis.steps import Analysis, analyse
from fairlead.domain.analysis.thresholds import BETTER, SAMPLES_NEEDED

#: A regression is certain if this many consecutive samples show it.
IN_A_ROW: Final = 2
#: A difference between the group and the replay is ignored up to this share of the change in the
#: replay.
CLOSE: Final = 0.1


@dataclass(frozen=True, eq=False)
class Regression:
    """Evidence that a plan made its group worse.

    Parameters
    ----------
    evidence
        A sentence with the figures.
    owner
        The owners before the plan, int32 of shape (P,).
    sure
        Whether `IN_A_ROW` consecutive samples show the regression. Until this is true, the group
        gets no new plan.
    """

    evidence: str
    owner: Int32
    sure: bool = False


def find_regression(question: Question) -> Regression | None:
    """Return evidence that the present plan made its group worse; None: there is none.

    Parameters
    ----------
    question
        Input of an analysis of the group now. The samples begin well before `changed_at`.

    Notes
    -----
    None is also returned before the group has followed the plan for `SAMPLES_NEEDED` samples, and
    if an owner from before the plan is no longer a member.
    """
    regression = _at_last_sample(question)
    if regression is None:
        return None
    series = question.series
    earlier = (
        question.with_series(series.until(len(series) - 1 - back)) for back in range(1, IN_A_ROW)
    )
    return replace(regression, sure=all(_at_last_sample(past) is not None for past in earlier))


def _at_last_sample(question: Question) -> Regression | None:
    series = question.series.bridged().spaced()
    if not (series.lag[-1] > 0).any():
        return None
    split = _handover(question, series)
    if split is None:
        return None
    before, since = split
    analysis = analyse(question)
    time_lag_s, objective_s = analysis.outlook.time_lag_s, question.rules.objective_s
    if not (time_lag_s > objective_s).any():
        return None
    old = before.owner[-1]
    replay = _Replay.of(before, since, analysis, old)
    if replay is None:
        return None
    seen_s = float((_excess(time_lag_s, objective_s) - replay.began).sum())
    before_s = float(replay.became(replay.time_lag_before_s).sum())
    error_s = replay.hindcast_s + replay.bystanders_s() + replay.resolution_s()
    began_s = float(replay.began.sum())
    ahead, ahead_before = (
        float(_excess(soon_s, objective_s).sum()) - began_s
        for soon_s in replay.ahead_s(question.rules.horizon_s)
    )
    later = all(
        became - would_have > error_s + CLOSE * abs(would_have)
        for became, would_have in ((seen_s, before_s), (ahead, ahead_before))
    )
    if not later and not _crowded(replay, seen_s, before_s, error_s):
        return None
    over = _count_over(time_lag_s, objective_s)
    over_before = _count_over(replay.time_lag_before_s[1], objective_s)
    horizon = length(question.rules.horizon_s)
    evidence = (
        f"the time lag above the objective, summed over partitions, has {_change(seen_s)} since "
        f"the plan took effect, with {plural(over, 'partition')} above the objective, and will "
        f"have {_change(ahead)} in {horizon}. In a replay without the plan, it has "
        f"{_change(before_s)}, with {plural(over_before, 'partition')} above the objective, and "
        f"will have {_change(ahead_before)} in {horizon}. The error of the replay is at most "
        f"{length(error_s)}"
    )
    return Regression(evidence, old)


def _crowded(replay: "_Replay", seen_s: float, before_s: float, error_s: float) -> bool:
    """Return whether the plan put more partitions above the objective and saved little time lag."""
    analysis, objective_s = replay.analysis, replay.objective_s
    began_s = float(replay.began.sum())
    now = analysis.outlook.time_lag_s - replay.age_s(), replay.time_lag_before_s[1]
    soon = replay.ahead_s(planning_horizon_s(analysis))
    soon_sums = (float(_excess(soon_s, objective_s).sum()) - began_s for soon_s in soon)
    wrong = replay.misjudged + replay.bystanders()
    return all(
        _count_over(time_lag_s, objective_s) - _count_over(lag_before_s, objective_s) > wrong
        and would_have - became + error_s < BETTER * (began_s + would_have)
        for (time_lag_s, lag_before_s), (became, would_have) in (
            (now, (seen_s, before_s)),
            (soon, soon_sums),
        )
    )


def _handover(  # noqa: PLR0911 - each return is a reason for no verdict
    question: Question, series: SampleSeries
) -> tuple[SampleSeries, SampleSeries] | None:
    """Split the samples at the last sample before the plan, which is in both parts.

    None if there are too few samples before or since the plan, if the plan changed no owners or
    owners have changed again, or if a partition has no owner or its former owner has left.
    """
    changed_at, problem = question.changed_at, question.problem
    if changed_at is None:
        return None
    known: Mask = np.asarray((series.owner >= 0).any(axis=1))
    first = int(np.searchsorted(series.at, changed_at, side="right"))
    behind = np.flatnonzero(known[:first])
    if behind.size < SAMPLES_NEEDED or not problem.assignable.any():
        return None
    old, new = series.owner[behind[-1]], problem.owner
    owned = problem.assignable & ~((old >= 0) & (old < len(problem.members)) & (new >= 0))
    if owned.any() or np.array_equal(old, new):
        return None
    if (series.owner[behind[-SAMPLES_NEEDED:]] != old).any():
        return None  # the former owners had the partitions for too short a time
    rows = series.owner[first:]
    if ((rows >= 0) & (rows != old) & (rows != new)).any():
        return None
    other = np.flatnonzero((known[first:, None] & (rows != new)).any(axis=1))
    followed = first + (int(other[-1]) + 1 if other.size else 0)
    stood_still = float(series.at[followed - 1]) + question.rules.move_downtime_s
    if int((series.at[followed:] > stood_still).sum()) < SAMPLES_NEEDED:
        return None
    cut = int(behind[-1])
    return series.until(cut), series.last(series.now - float(series.at[cut]), 1)


@dataclass(frozen=True, eq=False)
class _Replay:
    """Replay of P partitions, M members and S steps since the plan, in cost-weighted records.

    Parameters
    ----------
    analysis
        The analysis of the present.
    old
        The owners before the plan, int32 of shape (P,).
    speeds
        Speeds before the plan, cost-weighted records a second, float64 of shape (M,).
    at
        Times of the last sample before the plan and of all samples since, float64 of shape (S +
        1,).
    arrived
        Arrivals of each step, float64 of shape (S, P); 0 for partitions that are not `free`.
    waited
        Backlog when the plan took effect, float64 of shape (P,).
    usual
        Arrivals a second before the plan, float64 of shape (P,).
    began
        By how much the time lag exceeded the objective when the plan took effect, float64 of shape
        (P,).
    free
        Partitions that are replayed, bool of shape (P,): all except stuck or throttled partitions,
        and those of silent members.
    hindcast_s, misjudged
        Errors of a replay of the time before the plan. `hindcast_s`: error of the time lag, summed
        over partitions. `misjudged`: number of partitions that exceed the objective either
        in the measurements or in the replay, but not in both.
    """

    analysis: Analysis
    old: Int32
    speeds: Float64
    at: Float64
    arrived: Float64
    waited: Float64
    usual: Float64
    began: Float64
    free: Mask
    hindcast_s: float
    misjudged: int

    @classmethod
    def of(
        cls, before: SampleSeries, since: SampleSeries, analysis: Analysis, old: Int32
    ) -> "_Replay | None":
        """Return the replay; None if the speed of a member is not known."""
        costs, members = analysis.estimates.costs.value, analysis.problem.members
        recent = before.last(HISTORY_S, LEAST_SAMPLES)
        commits = read_commits(recent).in_work(costs)
        speeds = _speeds(members, recent, commits, analysis)
        free = ~(analysis.estimates.held | commits.stuck | commits.throttled)
        arrived = np.where(free, since.arrived.sum(axis=0), 0).astype(np.float64)
        theirs = sum_by_owner(arrived, old, len(members)) > 0
        if (theirs & (speeds <= 0)).any():
            return None
        waited = np.where(free, commits.backlog, 0.0) * costs
        # The hindcast begins once every partition has the owner that it had just before the plan.
        others = np.flatnonzero(((recent.owner >= 0) & (recent.owner != old)).any(axis=1))
        first = int(others[-1]) + 1 if others.size else 0
        then = recent.last(recent.now - float(recent.at[first]), 1)
        objective_s = analysis.rules.objective_s
        waits = np.where(free, then.lag[0], 0).astype(np.float64)
        rates = recent.arrived.sum(axis=0) / max(recent.now - float(recent.at[0]), 1.0)
        came = then.arrived * free * costs
        replayed = _time_lag_s(
            then.at, came, waits * costs, rates * free * costs, owner=old, speeds=speeds
        )
        lag_s = before.time_lag(np.where(free, commits.backlog, 0.0), rates)
        earlier = _excess(then.until(0).time_lag(waits, rates), objective_s)
        began = _excess(lag_s, objective_s)
        wrong = np.diff(_excess(replayed, objective_s), axis=0)[0] - (began - earlier)
        other = (replayed[1] > objective_s) != (lag_s > objective_s)
        return cls(
            analysis,
            old,
            speeds,
            since.at,
            since.arrived * free * costs,
            waited,
            rates * free * costs,
            began,
            free,
            abs(float(wrong[free].sum())),
            int(other[free].sum()),
        )

    @property
    def outlook(self) -> Outlook:
        """The expected loads and capacities, with the mean arrival rates since the plan."""
        seconds = float(self.at[-1] - self.at[0])
        came = self.arrived.sum(axis=0)
        return replace(
            self.analysis.outlook, arrivals=came / seconds, deviation=np.sqrt(came) / seconds
        )

    @property
    def new(self) -> Int32:
        """The owners now, int32 of shape (P,)."""
        return self.analysis.owner

    @property
    def objective_s(self) -> float:
        """The policy's objective."""
        return self.analysis.rules.objective_s

    @cached_property
    def time_lag_before_s(self) -> Float64:
        """Time lag in a replay with the former owners, as if they had kept the partitions.

        Row 0: when the plan took effect; row 1: now; float64 of shape (2, P).
        """
        return self._time_lag_s(self.old)

    @cached_property
    def time_lag_replayed_s(self) -> Float64:
        """Time lag in a replay with the present owners; rows as in `time_lag_before_s`."""
        return self._time_lag_s(self.new)

    def _time_lag_s(self, owner: Int32) -> Float64:
        time_lag_s = _time_lag_s(
            self.at, self.arrived, self.waited, self.usual, owner=owner, speeds=self.speeds
        )
        return time_lag_s * self.free

    def became(self, time_lag_s: Float64) -> Float64:
        """Return by how many seconds each partition's excess over the objective grows.

        `time_lag_s` are the time lags at the start and the end of a replay.
        """
        increase: Float64 = np.diff(_excess(time_lag_s, self.objective_s), axis=0)[0]
        return increase

    def bystanders_s(self) -> float:
        """Return the error of the replay in seconds, estimated from bystanders.

        Bystanders are members to which the plan gave no partition: the error is how much further
        they fell behind than in the replay.
        """
        increase = _excess(self.analysis.outlook.time_lag_s, self.objective_s) - self.began
        return self._of_all(np.maximum(increase - self.became(self.time_lag_replayed_s), 0.0))

    def bystanders(self) -> float:
        """Return for how many partitions the replay is wrong, estimated from bystanders.

        The replay is wrong about a partition of a bystander (a member to which the plan gave no
        partition) if the partition exceeds the objective now, but not in the replay.
        """
        over = self.analysis.outlook.time_lag_s > self.objective_s
        return self._of_all(over & (self.time_lag_replayed_s[1] <= self.objective_s))

    def _of_all(self, values: Float64 | Mask) -> float:
        """Return the sum of the values of bystanders' partitions, scaled up to all partitions."""
        receivers = np.unique(self.new[self.new != self.old])
        theirs = ~np.isin(self.new, receivers) & (self.new >= 0) & self.free
        return float(values[theirs].sum()) * self.new.size / max(int(theirs.sum()), 1)

    def age_s(self) -> Float64:
        """Return the highest age of lag that was read but not yet committed, seconds, (P,)."""
        explained_s = np.nan_to_num(self.analysis.estimates.commits.explained_s, posinf=HISTORY_S)
        return of_owner(explained_s, self.new, none=0.0)

    def resolution_s(self) -> float:
        """Return the sum of `age_s` over all partitions that exceed the objective."""
        over = self.analysis.outlook.time_lag_s > self.objective_s
        return float(self.age_s()[over].sum())

    def ahead_s(self, horizon_s: float) -> tuple[Float64, Float64]:
        """Return the forecast time lag of each partition, with the present and with the old owners.

        For the present owners, fewer arrivals than estimated are assumed (`sure_time_lag`).
        """
        expected, time_lag_s = self.outlook, self.time_lag_before_s[1]
        before = replace(
            expected,
            backlog=time_lag_s * expected.arrivals,
            time_lag_s=time_lag_s,
            capacities=self.speeds,
        )
        return (
            of_owner(expected.sure_time_lag(self.new, horizon_s), self.new, none=0.0),
            of_owner(before.forecast_time_lag(self.old, horizon_s), self.old, none=0.0),
        )


def _speeds(
    members: Sequence[str], recent: SampleSeries, commits: Commits, analysis: Analysis
) -> Float64:
    """Return each member's speed before the plan; a lower bound if it was never at its limit.

    A lower bound is replaced by a higher speed that the member had at its limit after the plan.
    """
    then, now = (
        observed_capacities(recent, commits),
        observed_capacities(analysis.observations.recent, analysis.estimates.commits),
    )
    speeds = np.zeros(len(members))
    for member, name in enumerate(members):
        known, newer = then.get(name), now.get(name)
        speeds[member] = 0.0 if known is None else known.records_per_s
        if newer is not None and newer.measured and not (known is not None and known.measured):
            speeds[member] = max(speeds[member], newer.records_per_s)
    return speeds


def _time_lag_s(
    at: Float64,
    arrived: Float64,
    waited: Float64,
    before: Float64,
    *,
    owner: Int32,
    speeds: Float64,
) -> Float64:
    """Return the replayed time lag of P partitions at the first and at the last of S + 1 times.

    All partitions of a member have the same time lag, because members read in the order of arrival.
    The backlog at the first time is assumed to have arrived at the rate `before`.
    """
    count = speeds.size
    came = [sum_by_owner(step, owner, count) for step in arrived]
    began = backlog = sum_by_owner(waited, owner, count)
    for records, seconds in zip(came, np.diff(at).tolist(), strict=True):
        backlog = np.maximum(backlog + records - speeds * seconds, 0.0)
    total = np.cumsum([np.zeros(count), *came], axis=0)
    per_s = sum_by_owner(before, owner, count)
    usual = np.where(per_s > 0, per_s, np.inf)
    time_lag_s = np.zeros((2, count))
    time_lag_s[0] = began / usual
    for member in np.flatnonzero(backlog > 0).tolist():
        position = total[-1, member] - backlog[member]
        if position >= 0:
            time_lag_s[1, member] = at[-1] - np.interp(position, total[:, member], at)
        else:
            time_lag_s[1, member] = at[-1] - at[0] - position / usual[member]
    return of_owner(time_lag_s, owner, none=0.0)


def _excess(time_lag_s: Float64, objective_s: float) -> Float64:
    """Return by how much the time lag exceeds the objective, in seconds; at least 0."""
    return np.maximum(time_lag_s - objective_s, 0.0)


def _count_over(time_lag_s: Float64, objective_s: float) -> int:
    return int((time_lag_s > objective_s).sum())


def _change(seconds: float) -> str:
    return f"{'fallen' if seconds < 0 else 'grown'} by {length(abs(seconds))}"

"""Whether a plan has made a group worse: what came, replayed under the owners before the plan.

Belongs here: the verdict with its evidence, and for how long a group rests after it. Does not:
going back (`fairlead.workflows.automatic_rollback`), nor analysing what is (`analysis`).

The arrivals that came are replayed with the owners before the plan and the speeds that were
measured before it, a fluid for each member. A plan is worse where the replay became less late
since the plan than the group did, and will be less late at the horizon, by more than the replay's
own error. That has three parts, each in seconds of lateness, summed over partitions:

- *hindcast*: the same replay over the time before the plan, against what was seen then.
- *bystanders*: members that the plan gave nothing, replayed with what they have, against what was
  seen of them. Whatever makes them later than that, a deploy or a slower network, is no plan's
  doing, and is expected of all partitions alike.
- *resolution*: each late partition is known to the age of a commit.

A tenth of what changed since the plan is no difference, either.

It is worse, too, where it made partitions late that the replay says would not be, now and later,
and saves less than the tenth of all lateness that a plan has to save (`weighing.BETTER`): it would
not have been made, had all been known. How many partitions the replay is wrong about is measured as
above.

A member that never was at its limit counts with what it has shown, so that the replay is rather too
late than too early. Where members came or went since, there is no verdict: who they are is new.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from fairlead.common.words import length, plural
from fairlead.domain.analysis.capacities import shown
from fairlead.domain.analysis.commits import Commits, read_commits
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.looks import Float64, Int32, Looks, Mask
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.read import HISTORY_S, LEAST_LOOKS
from fairlead.domain.analysis.steps import Analysis, analyse
from fairlead.domain.analysis.thresholds import SAMPLES_NEEDED
from fairlead.domain.analysis.weighing import BETTER

#: Looks one after the other that have to say the same.
IN_A_ROW: Final = 2
#: Two ways of becoming late that differ by less than this share are the same.
CLOSE: Final = 0.1


@dataclass(frozen=True, eq=False)
class Regression:
    """What the owners before the plan would have come to.

    Parameters
    ----------
    seen_s
        By how much more the group is late than when the plan came, summed over partitions.
    before_s
        The same, replayed under the owners before.
    error_s
        The replay's own error.
    late, late_before
        How many partitions are late, and would be under the owners before.
    evidence
        In a sentence.
    owner
        The owners before the plan, int32 of shape (P,).
    sure
        Whether `IN_A_ROW` looks say so: until then nothing new is planned.
    """

    seen_s: float
    before_s: float
    error_s: float
    late: int
    late_before: int
    evidence: str
    owner: Int32
    sure: bool = False


def find_regression(question: Question) -> Regression | None:
    """Say that the plan which a group follows has made it worse; None: nothing says so.

    Parameters
    ----------
    question
        As it is analysed now; its looks begin well before `changed_at`.

    Notes
    -----
    Pure. Nothing is said before the group has followed the plan for `SAMPLES_NEEDED` samples, or if
    the owners before cannot come back.
    """
    found = _at_last_look(question)
    if found is None:
        return None
    looks = question.looks
    earlier = (
        question.with_looks(looks.until(len(looks) - 1 - back)) for back in range(1, IN_A_ROW)
    )
    sure = all(_at_last_look(past) is not None for past in earlier)
    return replace(found, sure=sure)


def _at_last_look(question: Question) -> Regression | None:
    looks = question.looks.bridged().spaced()
    if not (looks.lag[-1] > 0).any():
        return None
    split = _handover(question, looks)
    if split is None:
        return None
    before, since = split
    analysis = analyse(question)
    late_s, objective_s = analysis.outlook.late_s, question.rules.objective_s
    if not (late_s > objective_s).any():
        return None
    old = before.owner[-1]
    replay = _Replay.of(before, since, analysis, old)
    if replay is None:
        return None
    seen_s = float((_over(late_s, objective_s) - replay.began).sum())
    before_s = float(replay.became(replay.late_before).sum())
    error_s = replay.hindcast_s + replay.bystanders_s() + replay.resolution_s()
    began_s = float(replay.began.sum())
    ahead, ahead_before = (
        float(_over(soon_s, objective_s).sum()) - began_s
        for soon_s in replay.ahead_s(question.rules.horizon_s)
    )
    later = all(
        became - would_have > error_s + CLOSE * abs(would_have)
        for became, would_have in ((seen_s, before_s), (ahead, ahead_before))
    )
    if not later and not _crowded(replay, seen_s, before_s, error_s):
        return None
    late = _late(late_s, objective_s)
    late_before = _late(replay.late_before[1], objective_s)
    horizon = length(question.rules.horizon_s)
    evidence = (
        f"{plural(late, 'partition')} late, by {_more(seen_s)} in all than when the plan came, and "
        f"by {_more(ahead)} in {horizon}; what came since, replayed under the "
        f"owners before with the speeds measured then: {late_before:,} late, by {_more(before_s)}, "
        f"and by {_more(ahead_before)}; known to {length(error_s)}"
    )
    return Regression(seen_s, before_s, error_s, late, late_before, evidence, old)


def _crowded(replay: "_Replay", seen_s: float, before_s: float, error_s: float) -> bool:
    """Whether the plan made partitions late that would not be, and saved hardly anything for it."""
    analysis, objective_s = replay.analysis, replay.objective_s
    began_s = float(replay.began.sum())
    now = analysis.outlook.late_s - replay.age_s(), replay.late_before[1]
    soon = replay.ahead_s(analysis.inputs.horizon_s)
    soon_sums = (float(_over(soon_s, objective_s).sum()) - began_s for soon_s in soon)
    wrong = replay.misjudged + replay.bystanders()
    return all(
        _late(late_s, objective_s) - _late(late_before_s, objective_s) > wrong
        and would_have - became + error_s < BETTER * (began_s + would_have)
        for (late_s, late_before_s), (became, would_have) in (
            (now, (seen_s, before_s)),
            (soon, soon_sums),
        )
    )


def _handover(  # noqa: PLR0911 - each is a reason for no verdict
    question: Question, looks: Looks
) -> tuple[Looks, Looks] | None:
    """Split looks into those before the plan, and those since, from the last one before it on.

    None: it is too early, too late, or somebody came or went.
    """
    changed_at, problem = question.changed_at, question.problem
    if changed_at is None:
        return None
    known: Mask = np.asarray((looks.owner >= 0).any(axis=1))
    first = int(np.searchsorted(looks.at, changed_at, side="right"))
    behind = np.flatnonzero(known[:first])
    if behind.size < SAMPLES_NEEDED or not problem.assignable.any():
        return None
    old, new = looks.owner[behind[-1]], problem.owner
    owned = problem.assignable & ~((old >= 0) & (old < len(problem.members)) & (new >= 0))
    if owned.any() or np.array_equal(old, new):
        return None
    if (looks.owner[behind[-SAMPLES_NEEDED:]] != old).any():
        return None  # they had hardly begun
    rows = looks.owner[first:]
    if ((rows >= 0) & (rows != old) & (rows != new)).any():
        return None
    other = np.flatnonzero((known[first:, None] & (rows != new)).any(axis=1))
    followed = first + (int(other[-1]) + 1 if other.size else 0)
    stood_still = float(looks.at[followed - 1]) + question.rules.pause_s
    if int((looks.at[followed:] > stood_still).sum()) < SAMPLES_NEEDED:
        return None
    cut = int(behind[-1])
    return looks.until(cut), looks.last(looks.now - float(looks.at[cut]), 1)


@dataclass(frozen=True, eq=False)
class _Replay:
    """Members as fluids: P partitions, M members, S steps since the plan; all in work.

    Parameters
    ----------
    analysis
        Of now.
    old
        The owners before, int32 of shape (P,).
    speeds
        As measured before the plan, work a second, float64 of shape (M,).
    at
        The looks since, from the last one before the plan on, float64 of shape (S + 1,).
    arrived
        In each step, float64 of shape (S, P); nothing of what is held.
    waited
        When the plan came, float64 of shape (P,).
    usual
        What arrived before the plan, a second, float64 of shape (P,).
    began
        Lateness beyond the objective when the plan came, float64 of shape (P,).
    free
        What is replayed: neither stuck nor crawling, nor of a silent member; bool of shape (P,).
    hindcast_s, misjudged
        By how much the same replay is wrong of the time before the plan, and of how many partitions
        it is wrong that they are late, or are not.
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
    def of(cls, before: Looks, since: Looks, analysis: Analysis, old: Int32) -> "_Replay | None":
        """Replay what came; None: nobody knows how fast somebody was."""
        costs, members = analysis.estimates.costs.value, analysis.problem.members
        recent = before.last(HISTORY_S, LEAST_LOOKS)
        commits = read_commits(recent).in_work(recent, costs)
        speeds = _speeds(members, recent, commits, analysis)
        free = ~(analysis.estimates.held | commits.stuck | commits.throttled)
        theirs = np.bincount(old[free], since.arrived[:, free].sum(axis=0), len(members)) > 0
        if (theirs & (speeds <= 0)).any():
            return None
        waited = np.where(free, commits.backlog, 0.0) * costs
        # Only what came since somebody else last owned a partition tells how wrong the replay is.
        others = np.flatnonzero(((recent.owner >= 0) & (recent.owner != old)).any(axis=1))
        first = int(others[-1]) + 1 if others.size else 0
        then = recent.last(recent.now - float(recent.at[first]), 1)
        objective_s = analysis.rules.objective_s
        waits = np.where(free, then.lag[0], 0).astype(np.float64)
        rates = recent.arrived.sum(axis=0) / max(recent.now - float(recent.at[0]), 1.0)
        came = then.arrived * free * costs
        replayed = _late_s(
            then.at, came, waits * costs, rates * free * costs, owner=old, speeds=speeds
        )
        lag_s = before.time_lag(np.where(free, commits.backlog, 0.0), rates)
        earlier = _over(then.until(0).time_lag(waits, rates), objective_s)
        began = _over(lag_s, objective_s)
        wrong = np.diff(_over(replayed, objective_s), axis=0)[0] - (began - earlier)
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
        """What is expected as it is, if as much comes as came since the plan."""
        seconds = float(self.at[-1] - self.at[0])
        came = self.arrived.sum(axis=0)
        return replace(
            self.analysis.outlook, arrivals=came / seconds, deviation=np.sqrt(came) / seconds
        )

    @property
    def mine(self) -> Int32:
        """The owners now, int32 of shape (P,)."""
        return self.analysis.problem.owner

    @property
    def objective_s(self) -> float:
        """How late is too late."""
        return self.analysis.rules.objective_s

    @cached_property
    def late_before(self) -> Float64:
        """How late partitions would be under the owners before, at first and now, shape (2, P)."""
        return self._late_s(self.old)

    @cached_property
    def late_replayed(self) -> Float64:
        """The same under the owners now: what the replay makes of what was seen."""
        return self._late_s(self.mine)

    def _late_s(self, owner: Int32) -> Float64:
        late = _late_s(
            self.at, self.arrived, self.waited, self.usual, owner=owner, speeds=self.speeds
        )
        return late * self.free

    def became(self, late_s: Float64) -> Float64:
        """Return by how much later each is now than at first, beyond the objective."""
        first, now = _over(late_s, self.objective_s)
        return np.asarray(now - first, np.float64)

    def bystanders_s(self) -> float:
        """Return by how much members became later than they should that the plan gave nothing."""
        seen = _over(self.analysis.outlook.late_s, self.objective_s) - self.began
        return self._of_all(np.maximum(seen - self.became(self.late_replayed), 0.0))

    def bystanders(self) -> float:
        """Return how many partitions of such members are late that should not be."""
        late = self.analysis.outlook.late_s > self.objective_s
        return self._of_all(late & (self.late_replayed[1] <= self.objective_s))

    def _of_all(self, values: Float64 | Mask) -> float:
        """Sum values over partitions of members that the plan gave nothing, as if all were such."""
        given = np.unique(self.mine[self.mine != self.old])
        theirs = ~np.isin(self.mine, given) & (self.mine >= 0) & self.free
        return float(values[theirs].sum()) * self.mine.size / max(int(theirs.sum()), 1)

    def age_s(self) -> Float64:
        """Return how old the commits of each partition are at most, float64 of shape (P,)."""
        explained_s = np.nan_to_num(self.analysis.estimates.commits.explained_s, posinf=HISTORY_S)
        return _of_owners(explained_s, self.mine)

    def resolution_s(self) -> float:
        """Return how old the commits of what is late are at most, summed over partitions."""
        late = self.analysis.outlook.late_s > self.objective_s
        return float(self.age_s()[late].sum())

    def ahead_s(self, horizon_s: float) -> tuple[Float64, Float64]:
        """Return how late each partition will be at a horizon: as it is, and under the old owners.

        Of what is, as little as is sure.
        """
        expected, late_s = self.outlook, self.late_before[1]
        before = replace(
            expected, backlog=late_s * expected.arrivals, late_s=late_s, capacities=self.speeds
        )
        return (
            _of_owners(expected.sure_lateness(self.mine, horizon_s), self.mine),
            _of_owners(before.lateness(self.old, horizon_s), self.old),
        )


def _speeds(members: Sequence[str], recent: Looks, commits: Commits, analysis: Analysis) -> Float64:
    """Return what each member did before the plan: at its limit, else at least.

    A member that was not at its limit can do what it has done at its limit since, if that is more.
    """
    then, now = (
        shown(recent, commits),
        shown(analysis.observations.recent, analysis.estimates.commits),
    )
    speeds = np.zeros(len(members))
    for member, name in enumerate(members):
        known, newer = then.get(name), now.get(name)
        speeds[member] = 0.0 if known is None else known.records_per_s
        if newer is not None and newer.measured and not (known is not None and known.measured):
            speeds[member] = max(speeds[member], newer.records_per_s)
    return speeds


def _late_s(
    at: Float64,
    arrived: Float64,
    waited: Float64,
    before: Float64,
    *,
    owner: Int32,
    speeds: Float64,
) -> Float64:
    """Replay: return how late each of P partitions is at the first and last of S + 1 moments.

    A member's partitions are all as late as it is: it reads in the order of arrival. What waits at
    first came as it came `before`, a second.
    """
    count, owned = speeds.size, owner >= 0
    seconds = np.diff(at)
    came = np.zeros((seconds.size, count))
    for step in range(seconds.size):
        came[step] = np.bincount(owner[owned], arrived[step, owned], count)
    began = np.bincount(owner[owned], waited[owned], count).astype(np.float64)
    backlog = began
    for step, lasted in enumerate(seconds.tolist()):
        backlog = np.maximum(backlog + came[step] - speeds * lasted, 0.0)
    total = np.concatenate((np.zeros((1, count)), np.cumsum(came, axis=0)))
    per_s = np.bincount(owner[owned], before[owned], count)
    usual = np.where(per_s > 0, per_s, np.inf)
    late = np.zeros((2, count))
    late[0] = began / usual
    for member in np.flatnonzero(backlog > 0).tolist():
        stands = total[-1, member] - backlog[member]
        if stands >= 0:
            late[1, member] = at[-1] - np.interp(stands, total[:, member], at)
        else:
            late[1, member] = at[-1] - at[0] - stands / usual[member]
    return _of_owners(late, owner)


def _of_owners(values: Float64, owner: Int32) -> Float64:
    """Return members' values, shape (..., M), of each partition's owner; 0 where nobody is."""
    return np.where(owner >= 0, values[..., owner], 0.0)


def _over(late_s: Float64, objective_s: float) -> Float64:
    return np.maximum(late_s - objective_s, 0.0)


def _late(late_s: Float64, objective_s: float) -> int:
    return int((late_s > objective_s).sum())


def _more(seconds: float) -> str:
    return f"{length(abs(seconds))} {'less' if seconds < 0 else 'more'}"

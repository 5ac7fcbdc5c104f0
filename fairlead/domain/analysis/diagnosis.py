"""Fourth step of the analysis: what is wrong with a group, with names and evidence.

Belongs here: the definitions of diagnoses, their order and their sentences. Belongs elsewhere: the
figures (`estimate`, `forecast`), which partitions are stuck or throttled and which members are
silent (`stalled`), and whether a plan would help (`decide`).

`_diagnose` and `_problem` check in this order; the first definition that applies is the
diagnosis:

1. unknown: too few samples, owners are unknown, or a member commits nothing. If fewer than half of
   the owners commit nothing, and a member is late, the diagnosis is about the other members.
2. stuck partition: a partition's commit stays the same while other partitions are read to their
   end: those of its owner or, if it has had several owners meanwhile, those of the group.
3. throttled partition: a partition falls behind while its owner keeps up with other partitions, or
   waits for records.
4. unbalanced: a partition without an owner is or will be behind.
5. unknown: no member that is behind has a known capacity.
6. hot partition: more arrives in a partition than the fastest member can process.
7. overloaded: more arrives in some topics than all their subscribers can process at the target
   utilisation, or in partitions that are too large for any distribution to fit.
8. slow member: a member's measured capacity is below `SLOW` times the median of its peers.
9. recovering: every member catches up, and no other assignment would be much faster.
10. unknown: each member gets at least its capacity, but may be faster than is known.
11. unbalanced: in all other cases in which a member is forecast to exceed the objective.
12. recovering: over the objective now, and within it at the horizon.
13. healthy: within the objective now and, within the error of the forecast, at the horizon.

5 to 11 are checked only if a member is forecast to exceed the objective.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import length, listed, plural, rate
from fairlead.domain.analysis.estimate import Estimates
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.peers import sole_readers
from fairlead.domain.analysis.per_member import of_owner
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.read import Observations
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask, median
from fairlead.domain.analysis.sizing import fastest_readers, surely_too_much, too_large
from fairlead.domain.analysis.thresholds import NAMED, SAMPLES_NEEDED
from fairlead.domain.analysis.work_words import work_sentences
from fairlead.domain.diagnoses import NO_MEMBERS, DiagnosisName
from fairlead.domain.worst_first import SOON_S

#: A member is slow if its capacity is below this share of the median capacity of its peers. Smaller
#: differences are usual between machines.
SLOW: Final = 0.7
#: A group is recovering, not unbalanced, if its expected catch-up time is at most this multiple of
#: the shortest possible one. Whether it gets a plan is decided in `decide`.
EVENLY: Final = 1.35
#: Join up to three names in a sentence.
a_few = partial(listed, at_most=NAMED)


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with a group, names of the members or partitions concerned, and evidence."""

    name: DiagnosisName
    names: tuple[str, ...]
    evidence: str


@dataclass(frozen=True, eq=False)
class Basis:
    """The input of the analysis, and the results from which the diagnosis is made.

    `late`: the members whose time lag will exceed the objective even if fewer records arrive than
    estimated; bool of shape (M,).
    """

    question: Question
    observations: Observations
    estimates: Estimates
    outlook: Outlook
    late: Mask

    @property
    def problem(self) -> Problem:
        """Partitions, members and present owners."""
        return self.question.problem

    @property
    def owner(self) -> Int32:
        """Present owners, int32 of shape (P,)."""
        return self.question.problem.owner

    @property
    def rules(self) -> Rules:
        """The policy's rules."""
        return self.question.rules

    @property
    def time_lag_s(self) -> Float64:
        """Forecast time lag of each member, seconds, float64 of shape (M,)."""
        return self.outlook.forecast_time_lag(self.owner, self.rules.horizon_s)

    def partition(self, index: int) -> str:
        """Return the name of a partition, such as orders-3."""
        return self.problem.partition_label(index)

    def partitions(self, chosen: Mask) -> tuple[str, ...]:
        """Return the names of the chosen partitions; `chosen`: bool of shape (P,)."""
        return tuple(self.partition(index) for index in np.flatnonzero(chosen).tolist())

    def members(self, chosen: Mask) -> tuple[str, ...]:
        """Return the names of the chosen members; `chosen`: bool of shape (M,)."""
        return tuple(self.problem.members[index] for index in np.flatnonzero(chosen).tolist())


def diagnose(basis: Basis) -> Diagnosis:
    """Return the diagnosis of a group."""
    diagnosis, work = _diagnose(basis), basis.observations.work
    sentences = [diagnosis.evidence, *_transactions(basis), *_uncounted(basis), *_losses(basis)]
    if work is not None:
        sentences += work_sentences(
            work, basis.estimates.costs, basis.problem, basis.estimates.peers
        )
        if work.ignored:
            sentences.append(
                f"Ignored {plural(work.ignored, 'work report')} with impossible values."
            )
    if basis.question.forgotten:
        sentences.append("The memory of earlier analyses is invalid and is ignored.")
    return replace(diagnosis, evidence=" ".join(sentences))


def _uncounted(basis: Basis) -> Iterator[str]:
    """Describe partitions that are ignored because they were never committed or are empty."""
    series = basis.observations.recent
    end, begin = series.end[-1], np.maximum(series.begin[-1], 0)
    idle = np.flatnonzero(~basis.estimates.commits.started & (series.lag[-1] > 0))
    if idle.size:
        waiting = int((end - begin)[idle[0]])
        yield (
            f"{basis.partition(int(idle[0]))}{_and_more(idle.size)} has no committed offset, "
            f"and nothing has arrived since the first sample: with auto.offset.reset=earliest, "
            f"consumers would read {plural(waiting, 'record')} there; with latest, none."
        )
    beyond = np.flatnonzero((end == begin) & (series.committed[-1] > end))
    if beyond.size:
        yield (
            f"{basis.partition(int(beyond[0]))}{_and_more(beyond.size)} is empty, and its "
            f"committed offset is {int(series.committed[-1, beyond[0]]):,}: the commit is from "
            "before the topic was created again."
        )


def _transactions(basis: Basis) -> Iterator[str]:
    """Describe the open transaction that has blocked the group's reading for longest."""
    series = basis.observations.recent
    held = series.in_transaction[-1]
    if not held.any():
        return
    stable = series.readable_end[-1]
    waiting = np.where(held, series.end[-1] - stable, 0)
    open_s = series.time_lag(waiting.astype(np.float64), basis.estimates.rates.per_s)
    longest = int(np.where(held, open_s, -1.0).argmax())
    before = "before " if series.end[0, longest] > stable[longest] else ""
    seconds = min(float(open_s[longest]), series.now - float(series.at[0]))
    since = datetime.fromtimestamp(series.now - seconds, UTC)
    others = plural(int(held.sum()) - 1, "more partition")
    yield (
        f"A transaction has been open on {basis.partition(longest)} since "
        f"{before}{since:%Y-%m-%d %H:%M} UTC ({length(seconds)}): until it ends, consumers with "
        f"isolation.level=read_committed cannot read the "
        f"{plural(int(waiting[longest]), 'record')} from offset {int(stable[longest]):,} on."
        + (f" Transactions are also open on {others}." if held.sum() > 1 else "")
    )


def _losses(basis: Basis) -> Iterator[str]:
    """Describe how soon retention deletes unread records, and in how many partitions."""
    losses_s, step_s = basis.outlook.losses_s(basis.owner), basis.observations.recent.step
    soon = int((losses_s < SOON_S).sum())
    if soon:
        first, seconds = basis.partition(int(losses_s.argmin())), float(losses_s.min())
        when = "now" if seconds < max(step_s, 1.0) else f"in {length(seconds)}"
        yield (
            f"{first}{_and_more(soon)} loses records {when}: retention deletes them before they "
            "are read."
        )


def _and_more(partitions: int) -> str:
    """Return text such as ' (and 2 more partitions)'; empty for one partition."""
    return f" (and {plural(partitions - 1, 'more partition')})" if partitions > 1 else ""


def _diagnose(basis: Basis) -> Diagnosis:
    unknown = _unseen(basis)
    if unknown:
        return Diagnosis("unknown", (), unknown)
    doubt = _silent(basis)
    if doubt is None:
        return _problem(basis)
    silent, owning = basis.estimates.silent, np.unique(basis.owner[basis.owner >= 0])
    if basis.late.any() and 0 < 2 * silent.sum() < owning.size:
        # Only a few members commit nothing. So the diagnosis is about the other members.
        problem = _problem(basis)
        return replace(problem, evidence=f"{problem.evidence} {doubt.evidence}")
    return doubt


def _problem(basis: Basis) -> Diagnosis:
    found = _stuck(basis) or _throttled(basis) or _without_owner(basis)
    if found is None and basis.late.any():
        found = (
            _no_capacity(basis)
            or _hot(basis)
            or _overloaded(basis)
            or _slow(basis)
            or _catching_up(basis)
            or _unmeasured(basis)
            or _unbalanced(basis)
        )
    if found is None and basis.outlook.time_lag_s.max(initial=0.0) > basis.rules.objective_s:
        worst = float(basis.time_lag_s.max(initial=basis.rules.objective_s))
        return _recovering(
            basis,
            f"; in {length(basis.rules.horizon_s)} no partition will be more than {length(worst)} "
            "behind.",
        )
    return found or _healthy(basis)


def _unseen(basis: Basis) -> str | None:
    """Return the reason why nothing is known about a group; None if something is known."""
    assignable = basis.problem.assignable
    if not basis.problem.members:
        return NO_MEMBERS
    if not assignable.any():
        return "Members subscribe to no topic, or to none that exists."
    ownerless, count = int((assignable & (basis.owner < 0)).sum()), int(assignable.sum())
    if 2 * ownerless > count:
        return f"{ownerless:,} of {count:,} partitions have no known owner."
    series = basis.observations.recent
    if len(series) < SAMPLES_NEEDED:
        return (
            f"There {'is' if len(series) == 1 else 'are'} {plural(len(series), 'sample')} of the "
            f"group; {SAMPLES_NEEDED} are needed to distinguish a backlog from records that were "
            "read, but not yet committed."
        )
    new = int((assignable & (series.in_one_log.sum(axis=0) < SAMPLES_NEEDED)).sum())
    if 2 * new > count:
        return (
            f"{new:,} of {count:,} partitions are new, were created again or are missing in the "
            f"last sample: {SAMPLES_NEEDED} samples of each are needed."
        )
    return None


def _silent(basis: Basis) -> Diagnosis | None:
    series, commits = basis.observations.recent, basis.estimates.commits
    names = basis.members(basis.estimates.silent)
    if not names:
        return None
    if commits.foreign.any():
        first = int(commits.foreign.argmax())
        why = (
            f"The committed offset of {basis.partition(first)} is "
            f"{int(series.committed[-1, first]):,}, but the partition ends at "
            f"{int(series.end[-1, first]):,}: the topic was created again, records were lost, or "
            f"the commit is a copy from another cluster. The position of {a_few(names)} is unknown."
        )
    else:
        theirs = of_owner(basis.estimates.silent, basis.owner, none=False)
        longest = np.minimum(commits.waiting_s, series.owned_s)[theirs].max(initial=0.0)
        why = (
            f"{a_few(names)} {_verb(names, 'has', 'have')} committed nothing for "
            f"{length(float(longest))}, although records have arrived. It is "
            f"unknown whether {_verb(names, 'it reads', 'they read')} these records."
        )
    return Diagnosis("unknown", names, why)


def _stuck(basis: Basis) -> Diagnosis | None:
    series, commits = basis.observations.recent, basis.estimates.commits
    names = basis.partitions(commits.stuck)
    if not names:
        return None
    first = int(np.where(commits.stuck, commits.waiting_s, -1.0).argmax())
    waited_s = commits.waiting_s[first]
    least = "" if (series.advanced[:, first] > 0).any() else "at least "
    owners = np.unique(series.owner[series.at >= series.now - waited_s, first])
    meanwhile = f"while its owner {series.members[owners[-1]]} commits other partitions"
    if owners.size > 1:
        meanwhile = "by any of its last owners, while most other partitions have been committed"
    return Diagnosis(
        "stuck partition",
        names,
        f"{basis.partition(first)}{_and_more(len(names))} has not been committed for "
        f"{least}{length(waited_s)} {meanwhile}; {int(series.lag[-1, first]):,} of its records "
        "wait. Look for a record that cannot be processed.",
    )


def _throttled(basis: Basis) -> Diagnosis | None:
    """Return the diagnosis if throttled partitions exceed the objective, now or at the horizon."""
    commits, come = basis.estimates.commits, basis.estimates.rates.per_s
    lag_s = _lag_s(basis)
    grows = np.maximum(1.0 - commits.read_per_s / np.maximum(come, 1e-9), 0.0)
    late = commits.throttled & (lag_s + grows * basis.rules.horizon_s > basis.rules.objective_s)
    if not late.any():
        return None
    worst = int(np.where(late, lag_s, -1.0).argmax())
    member, work = int(basis.observations.recent.owner[-1, worst]), basis.observations.work
    does = "keeps up with its other partitions"
    advice = "A faster consumer would not help: find out what delays the records of this partition."
    if work is not None and work.waits[member]:
        does = f"waits for records {work.waiting[member]:.0%} of the time"
        advice = "Its fetches are slow: find out whether a quota or the network limits them."
    return Diagnosis(
        "throttled partition",
        basis.partitions(late),
        f"{basis.partition(worst)}{_and_more(int(late.sum()))} is {length(lag_s[worst])} behind: "
        f"{rate(come[worst])} arrive, {rate(commits.read_per_s[worst])} are read, and its "
        f"owner {basis.observations.recent.members[member]} {does}. {advice}",
    )


def _without_owner(basis: Basis) -> Diagnosis | None:
    """Return the diagnosis if ownerless partitions exceed the objective, now or at the horizon."""
    lag_s = _lag_s(basis)
    then_s = lag_s + np.where(basis.estimates.rates.per_s > 0, basis.rules.horizon_s, 0.0)
    late = basis.problem.assignable & (basis.owner < 0) & (then_s > basis.rules.objective_s)
    if not late.any():
        return None
    worst = int(np.where(late, lag_s, -1.0).argmax())
    name, more = basis.partition(worst), _and_more(int(late.sum()))
    lag = plural(int(basis.observations.recent.lag[-1, worst]), "record")
    evidence = f"{name}{more} has no owner; the lag of {name} is {lag}."
    return Diagnosis("unbalanced", basis.partitions(late), evidence)


def _lag_s(basis: Basis) -> Float64:
    """Return the age of the first unread record of each partition, seconds, (P,)."""
    series = basis.observations.recent
    return series.time_lag(series.lag[-1].astype(np.float64), basis.estimates.rates.per_s)


def _no_capacity(basis: Basis) -> Diagnosis | None:
    """Return the diagnosis `unknown` if no member that is behind has a known capacity."""
    if basis.estimates.speeds.per_s[basis.late].any():
        return None
    names = basis.members(basis.late)
    return Diagnosis(
        "unknown",
        names,
        f"The capacity of {a_few(names)} is unknown: {SAMPLES_NEEDED} samples with the same owners "
        "are needed.",
    )


def _hot(basis: Basis) -> Diagnosis | None:
    arrivals, problem = basis.outlook.arrivals, basis.problem
    of_late = of_owner(basis.late, basis.owner, none=False)
    fastest = fastest_readers(problem, basis.estimates.speeds.per_s)[problem.topic_of]
    fastest = np.maximum(fastest, _drained(basis))
    hot = of_late & (arrivals > fastest) & (fastest > 0)
    if not hot.any():
        return None
    place = int(np.where(hot, arrivals, -1.0).argmax())
    target = basis.rules.target_utilisation
    what, remedy = too_large(problem, basis.outlook, place, float(fastest[place]), target)
    return Diagnosis(
        "hot partition",
        basis.partitions(hot),
        f"{what}: no assignment helps{_as_known(basis, _readers(basis))}. {remedy}",
    )


def _drained(basis: Basis) -> Float64:
    """Return the second highest speed at which each partition was read in a single step, (P,).

    In cost-weighted records a second. 0 if the owner commits rarely, because the speed in a single
    step is then unknown.
    """
    commits, series = basis.estimates.commits, basis.observations.recent
    per_s = commits.taken * basis.estimates.costs.value / series.seconds[:, None]
    rare = of_owner(commits.rare, series.owner[-1], none=True)
    return np.where(rare, 0.0, np.sort(per_s, axis=0)[-2])


def _overloaded(basis: Basis) -> Diagnosis | None:
    """Return the diagnosis `overloaded` if some topics get more than their readers can process.

    Two kinds of member sets are checked: members that share topics (reader sets), and all
    subscribers of a topic. The second kind is checked for the partitions that only they may read.
    """
    problem, speeds, target = basis.problem, basis.estimates.speeds, basis.rules.target_utilisation
    reader_set, of_partition = basis.estimates.peers.reader_set, basis.estimates.peers.of_partition
    read = ~of_owner(basis.estimates.silent, basis.owner, none=False)
    everybody = _readers(basis)
    sets = [
        (reader_set == number, of_partition == number)
        for number in np.unique(reader_set[basis.late]).tolist()
    ]
    sets += [alone for alone in sole_readers(problem) if basis.late[alone[0]].any()]
    for members, partitions in sets:
        of_set, counted = everybody & members, read & partitions
        loads, most = basis.outlook.arrivals[counted], speeds.surely_at_most[of_set]
        if not surely_too_much(loads, target * most):
            continue
        fills, drains, allowed = (
            rate(basis.outlook.in_records(float(per_s.sum()), counted))
            for per_s in (loads, most, target * most)
        )
        readers = plural(int(of_set.sum()), "member")
        readers += " with these topics" if of_set.sum() < everybody.sum() else ""
        whole = ""
        if loads.sum() < target * most.sum():
            up_to = loads.max() / speeds.at_most[of_set].max()
            whole = f" (one partition alone needs up to {up_to:.0%} of a member's capacity)"
        surely = "at most " if most.sum() > speeds.per_s[of_set].sum() else ""
        return Diagnosis(
            "overloaded",
            (),
            f"{fills} arrive{whole}, and the {readers} can process {surely}{drains}, or {allowed} "
            f"at the target utilisation of {target:.0%}: no assignment keeps every member within "
            f"its capacity{_as_known(basis, of_set)}.",
        )
    return None


def _as_known(basis: Basis, members: Mask) -> str:
    """Return ', as far as is known' if a capacity of these members was not measured, else ''."""
    return "" if basis.estimates.speeds.measured[members].all() else ", as far as is known"


def _readers(basis: Basis) -> Mask:
    """Return which members commit and subscribe to a topic with partitions, bool (M,)."""
    readers = np.zeros(len(basis.problem.members), dtype=bool)
    readers[basis.problem.readers] = True
    return readers & ~basis.estimates.silent


def _slow_members(basis: Basis, among: Mask) -> dict[int, float]:
    """Return, for each member that is much slower than its peers, the peers' median capacity."""
    readers, speeds, found = _readers(basis), basis.estimates.speeds, {}
    for member in np.flatnonzero(among & speeds.measured).tolist():
        peers = basis.estimates.peers.of_member(member, readers)
        usual = median(speeds.per_s[peers]) if peers.size else 0.0
        if speeds.per_s[member] < SLOW * usual:
            found[member] = usual
    return found


def _slow(basis: Basis) -> Diagnosis | None:
    usual, speeds = _slow_members(basis, basis.late), basis.estimates.speeds
    if not usual:
        return None
    slowest = min(usual, key=lambda member: float(speeds.per_s[member]))
    arrivals = basis.outlook.by_member(basis.outlook.arrivals, basis.owner)
    does, peers_do, arrive = (
        rate(basis.outlook.in_records(float(per_s), basis.owner == slowest))
        for per_s in (speeds.per_s[slowest], usual[slowest], arrivals[slowest])
    )
    doubt, work = "", basis.observations.work
    if work is None or np.isnan(work.speeds(basis.estimates.costs.value)[slowest]):
        doubt = (
            " Either it is slow, or its records are expensive: consumers that report processing "
            "times would show which."
        )
    return Diagnosis(
        "slow member",
        tuple(basis.problem.members[member] for member in usual),
        f"{basis.problem.members[slowest]} can process {does}, and its peers {peers_do}; "
        f"{arrive} arrive in the partitions of {basis.problem.members[slowest]}.{doubt}",
    )


def _recovering(basis: Basis, then: str) -> Diagnosis:
    place = int(basis.outlook.time_lag_s.argmax())
    name, time_lag_s = basis.partition(place), float(basis.outlook.time_lag_s[place])
    return Diagnosis("recovering", (name,), f"{name} is {length(time_lag_s)} behind{then}")


def _catching_up(basis: Basis) -> Diagnosis | None:
    """Return the diagnosis `recovering` if no assignment would catch up much sooner."""
    outlook, owner = basis.outlook, basis.owner
    spare = outlook.capacities - outlook.by_member(outlook.arrivals, owner)
    waiting = outlook.by_member(outlook.backlog, owner)
    readers = _readers(basis)
    if (spare[readers] <= 0).any():
        return None
    longest = float((waiting / np.maximum(spare, 1e-9))[basis.late & readers].max(initial=0.0))
    if longest > EVENLY * float(waiting.sum() / spare[readers].sum()):
        return None
    return _recovering(basis, f", and every member catches up, the last one in {length(longest)}.")


def _unmeasured(basis: Basis) -> Diagnosis | None:
    """Return the diagnosis `unknown` if no member's capacity exceeds its arrivals.

    The group may still keep up, because the capacities may be lower bounds.
    """
    readers = _readers(basis)
    used = basis.outlook.utilisation(basis.owner)[readers]
    if used.min(initial=np.inf) < 1.0:
        return None
    owned = basis.owner >= 0
    arrive = basis.outlook.in_records(float(basis.outlook.arrivals[owned].sum()), owned)
    return Diagnosis(
        "unknown",
        basis.members(basis.late),
        f"{rate(arrive)} arrive, and every member falls behind: the group is overloaded, unless "
        "members can process more than measured. More samples will show whether they can.",
    )


def _unbalanced(basis: Basis) -> Diagnosis:
    used, time_lag_s = basis.outlook.utilisation(basis.owner), basis.time_lag_s
    worst = int(time_lag_s.argmax())
    others = _readers(basis)
    others[worst] = False
    lightest = ""
    if others.any():
        member = int(np.where(others, used, np.inf).argmin())
        lightest = f"; {basis.problem.members[member]} is at {used[member]:.0%} of its capacity"
    return Diagnosis(
        "unbalanced",
        basis.members(basis.late),
        f"{basis.problem.members[worst]} is at {used[worst]:.0%} of its capacity and will be "
        f"{length(time_lag_s[worst])} behind in {length(basis.rules.horizon_s)}{lightest}.",
    )


def _healthy(basis: Basis) -> Diagnosis:
    used, worst = basis.outlook.utilisation(basis.owner), float(basis.time_lag_s.max(initial=0.0))
    most = int(used.argmax()) if used.size else 0
    does = "did not reach its limit"
    if basis.estimates.speeds.measured[most : most + 1].any():
        does = f"is at {used[most]:.0%} of its capacity"
    chance = " (within the error of the forecast)" if worst > basis.rules.objective_s else ""
    slow = [basis.problem.members[member] for member in _slow_members(basis, used >= 0)]
    harmless = f" {a_few(slow)} {_verb(slow, 'is slow, but keeps', 'are slow, but keep')} up."
    return Diagnosis(
        "healthy",
        (),
        f"The most utilised member {does}; the worst partition will be {length(worst)} behind in "
        f"{length(basis.rules.horizon_s)}{chance}.{harmless if slow else ''}",
    )


def _verb(names: Sequence[str], single: str, many: str) -> str:
    return single if len(names) == 1 else many

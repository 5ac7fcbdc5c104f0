"""Fourth step of the analysis: the problem of a group, with names and evidence.

Belongs here: the definitions of diagnoses and their order. Does not: the figures (`estimate`,
`forecast`), nor whether a plan would help (`decide`).

`_too_little_known` and `_problem` check in this order; the first definition that applies is the
diagnosis:

1. unknown: too few samples, owners are unknown, or a member commits nothing. If only a few members
   commit nothing, and others are behind, the diagnosis is about the others.
2. stuck partition: it waits while its owner commits others.
3. throttled partition: it falls behind while its owner keeps up with others or waits for records.
4. unbalanced: a partition without an owner is behind.
5. unknown: no capacity is known.
6. hot partition: more arrives than the fastest member can process.
7. overloaded: more arrives than all members that read it can process.
8. slow member: its measured capacity is below `SLOW` times the median of its peers.
9. recovering: every member catches up, about as soon as with any other assignment.
10. unknown: more arrives at each member than its lower bound of capacity.
11. unbalanced: more arrives at a member than it can process, and others have room.
12. recovering: over the objective now, and within it at the horizon.
13. healthy: within the objective now and at the horizon.

5 to 11 are checked only if a member is forecast over the objective.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import length, listed, plural, rate
from fairlead.domain.analysis.capacities import Speeds
from fairlead.domain.analysis.commits import Commits
from fairlead.domain.analysis.estimate import Estimates
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.peers import sole_readers
from fairlead.domain.analysis.per_member import of_owner
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.read import Observations
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask, SampleSeries, median
from fairlead.domain.analysis.sizing import fastest_readers, partitions_wanted, surely_too_much
from fairlead.domain.analysis.thresholds import NAMED, SAMPLES_NEEDED, SEVERAL, STEPS
from fairlead.domain.analysis.work_words import work_sentences
from fairlead.domain.diagnoses import NO_MEMBERS, DiagnosisName
from fairlead.domain.worst_first import SOON_S

#: Maximum ratio of a slow member's capacity to the median of its peers: smaller differences are
#: usual between machines.
SLOW: Final = 0.7
#: Largest ratio of expected to shortest possible catch-up time for which a recovering group needs
#: no plan: it would save less than its moves cost.
EVENLY: Final = 1.35
#: Join names, at most three.
a_few = partial(listed, at_most=NAMED)


@dataclass(frozen=True)
class Diagnosis:
    """The problem of a group.

    Parameters
    ----------
    name
        One of the nine diagnoses.
    names
        The members concerned, or partitions as "topic-partition".
    evidence
        One sentence.
    """

    name: DiagnosisName
    names: tuple[str, ...]
    evidence: str


@dataclass(frozen=True, eq=False)
class Basis:
    """The results that a diagnosis uses.

    Parameters
    ----------
    question, observations, estimates, outlook
        The input of the analysis, and the results of its first three steps.
    late
        Members that will be behind by more than the objective, even if fewer records arrive than
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
    def recent(self) -> SampleSeries:
        """Samples of the last hour; all of them if commits are rare."""
        return self.observations.recent

    @property
    def commits(self) -> Commits:
        """Findings from commits."""
        return self.estimates.commits

    @property
    def speeds(self) -> Speeds:
        """Assumed capacities."""
        return self.estimates.speeds

    @property
    def arrivals(self) -> Float64:
        """Arrivals, records a second, float64 of shape (P,)."""
        return self.estimates.rates.per_s

    def partition(self, index: int) -> str:
        """Return the name of a partition, such as orders-3."""
        return self.problem.partition_label(index)


def diagnose(basis: Basis) -> Diagnosis:
    """Return the diagnosis of a group."""
    diagnosis, work = _diagnose(basis), basis.observations.work
    sentences = [f"{diagnosis.evidence}{_transactions(basis)}"]
    losses_s = basis.outlook.losses_s(basis.owner)
    sentences += _uncounted(basis)
    if (losses_s < SOON_S).any():
        sentences.append(f"{basis.partition(int(losses_s.argmin()))}{_loss(basis, losses_s)}")
    if work is not None:
        sentences += work_sentences(
            work, basis.estimates.costs, basis.problem, basis.estimates.peers
        )
        if work.ignored:
            sentences.append(f"{plural(work.ignored, 'impossible report')} ignored.")
    if basis.question.forgotten:
        sentences.append("The stored memory is invalid and is ignored.")
    return replace(diagnosis, evidence=" ".join(sentences))


def _uncounted(basis: Basis) -> list[str]:
    """Describe partitions that do not count: never committed, or empty."""
    series, sentences = basis.recent, []
    idle = np.flatnonzero(~basis.commits.started & (series.lag[-1] > 0))
    if idle.size:
        waiting = int(series.end[-1, idle[0]] - max(int(series.begin[-1, idle[0]]), 0))
        sentences.append(
            f"{basis.partition(int(idle[0]))}{_and_more(idle.size)} was never committed, and "
            f"nothing arrived: consumers with auto_offset_reset=earliest would read "
            f"{plural(waiting, 'record')}, consumers with latest none."
        )
    empty = series.end[-1] == np.maximum(series.begin[-1], 0)
    beyond = np.flatnonzero(empty & (series.committed[-1] > series.end[-1]))
    if beyond.size:
        sentences.append(
            f"{basis.partition(int(beyond[0]))} is empty, and its committed offset is "
            f"{int(series.committed[-1, beyond[0]]):,}: the commit belongs to an earlier log of "
            f"the partition{_and_more(beyond.size)}."
        )
    return sentences


def _transactions(basis: Basis) -> str:
    """Describe the open transaction that has held back the group for longest; empty: none."""
    series = basis.recent
    held = series.in_transaction[-1]
    if not held.any():
        return ""
    stable = series.readable_end[-1]
    waiting = np.where(held, series.end[-1] - stable, 0)
    open_s = series.time_lag(waiting.astype(np.float64), basis.arrivals)
    longest = int(np.where(held, open_s, -1.0).argmax())
    seen_s = series.now - float(series.at[0])
    before = "before " if series.end[0, longest] > stable[longest] else ""
    seconds = min(float(open_s[longest]), seen_s)
    since = datetime.fromtimestamp(series.now - seconds, UTC)
    return (
        f" A transaction has been open on {basis.partition(longest)} since {before}"
        f"{since:%Y-%m-%d %H:%M} UTC ({length(seconds)}): until it ends, consumers with "
        f"isolation.level=read_committed cannot read the "
        f"{plural(int(waiting[longest]), 'record')} from offset {int(stable[longest]):,} on"
        f"{_and_more(int(held.sum()))}."
    )


def _loss(basis: Basis, losses_s: Float64) -> str:
    """Describe the time until records are lost, and the number of partitions concerned."""
    seconds, many = float(losses_s.min()), int((losses_s < SOON_S).sum())
    others = _and_more(many)
    if seconds < max(basis.recent.step, 1.0):
        return f" loses records now{others}: retention deletes them before they are read."
    return (
        f" loses records in {length(seconds)}{others}: retention deletes them before they are read."
    )


def _and_more(partitions: int) -> str:
    """Return the number of other partitions in brackets; empty: none."""
    return f" (and {plural(partitions - 1, 'more partition')})" if partitions > 1 else ""


def _diagnose(basis: Basis) -> Diagnosis:
    doubt = _too_little_known(basis)
    if doubt is None:
        return _problem(basis)
    if basis.late.any() and _few_silent(basis, doubt):
        problem = _problem(basis)
        return replace(problem, evidence=f"{problem.evidence} {doubt.evidence}")
    return doubt


def _problem(basis: Basis) -> Diagnosis:
    rules, outlook, owner = basis.rules, basis.outlook, basis.owner
    if basis.commits.stuck.any():
        return _stuck(basis)
    of_partitions = _throttled(basis) or _without_owner(basis)
    if of_partitions is not None:
        return of_partitions
    if basis.late.any():
        return (
            _no_capacity(basis)
            or _hot(basis)
            or _overloaded(basis)
            or _slow(basis)
            or _catching_up(basis)
            or _unmeasured(basis)
            or _unbalanced(basis)
        )
    time_lag_s = float(outlook.time_lag_s.max(initial=0.0))
    if time_lag_s > rules.objective_s:
        place = int(outlook.time_lag_s.argmax())
        worst = float(
            outlook.forecast_time_lag(owner, rules.horizon_s).max(initial=rules.objective_s)
        )
        return Diagnosis(
            "recovering",
            (basis.partition(place),),
            f"{basis.partition(place)} is {length(time_lag_s)} behind; in "
            f"{length(rules.horizon_s)} no partition will be more than {length(worst)} behind.",
        )
    return _healthy(basis)


def _too_little_known(basis: Basis) -> Diagnosis | None:
    return _unowned(basis) or _unseen(basis) or _uncommitted(basis)


def _unowned(basis: Basis) -> Diagnosis | None:
    problem = basis.problem
    if not problem.members:
        return Diagnosis("unknown", (), NO_MEMBERS)
    if not problem.assignable.any():
        return Diagnosis("unknown", (), "No member subscribes to a topic that has partitions.")
    ownerless = problem.assignable & (basis.owner < 0)
    if ownerless.sum() * 2 > problem.assignable.sum():
        return Diagnosis(
            "unknown",
            (),
            f"{int(ownerless.sum()):,} of {int(problem.assignable.sum()):,} partitions have no "
            "known owner.",
        )
    return None


def _unseen(basis: Basis) -> Diagnosis | None:
    count = len(basis.recent)
    if count >= SAMPLES_NEEDED:
        return _new_logs(basis)
    return Diagnosis(
        "unknown",
        (),
        f"There {'is' if count == 1 else 'are'} {plural(count, 'sample')} of the group; "
        f"{SAMPLES_NEEDED} are needed to distinguish a backlog from records not yet committed.",
    )


def _new_logs(basis: Basis) -> Diagnosis | None:
    """Return unknown if most logs are new or were not sampled."""
    assignable = basis.problem.assignable
    few = assignable & (basis.recent.in_one_log.sum(axis=0) < SAMPLES_NEEDED)
    if few.sum() * 2 <= assignable.sum():
        return None
    return Diagnosis(
        "unknown",
        (),
        f"{int(few.sum()):,} of {int(assignable.sum()):,} partitions are new, were created again "
        f"or are missing in the last sample: {SAMPLES_NEEDED} samples of each are needed.",
    )


def _uncommitted(basis: Basis) -> Diagnosis | None:
    problem, commits = basis.problem, basis.commits
    silent = _names(problem.members, basis.estimates.silent)
    foreign = np.flatnonzero(commits.foreign)
    if silent and foreign.size:
        first = int(foreign[0])
        return Diagnosis(
            "unknown",
            silent,
            f"The committed offset of {basis.partition(first)} is "
            f"{int(basis.recent.committed[-1, first]):,}, and its log ends at "
            f"{int(basis.recent.end[-1, first]):,}: the commit belongs to an earlier log of the "
            f"partition, and the position of {a_few(silent)} is unknown.",
        )
    if silent:
        waiting_s = np.minimum(commits.waiting_s, basis.recent.owned_s)
        owned = basis.owner >= 0
        longest = waiting_s[owned][basis.estimates.silent[basis.owner[owned]]].max(initial=0.0)
        return Diagnosis(
            "unknown",
            silent,
            f"{a_few(silent)} {_verb(silent, 'has', 'have')} committed nothing for "
            f"{length(float(longest))}, although records have arrived. Whether "
            f"{_verb(silent, 'it reads', 'they read')} them is unknown.",
        )
    owns = np.bincount(basis.owner[basis.owner >= 0], minlength=len(problem.members)) > 0
    few = commits.marked.sum(axis=0) <= SEVERAL
    young = (commits.rare & few)[: len(problem.members)] & owns
    if 2 * young.sum() < owns.sum():  # a few members matter only if they seem to be behind
        time_lag_s = basis.outlook.forecast_time_lag(basis.owner, basis.rules.horizon_s)
        young &= time_lag_s > basis.rules.objective_s
    early = _names(problem.members, young)
    if early:
        usual = float(commits.interval_s[: young.size][young].max())
        return Diagnosis(
            "unknown",
            early,
            f"{a_few(early)} {_verb(early, 'commits', 'commit')} about every {length(usual)}: "
            f"{SEVERAL} such intervals are needed to distinguish a backlog from a pending commit.",
        )
    return None


def _few_silent(basis: Basis, doubt: Diagnosis) -> bool:
    """Whether the doubt is only about silent members, and these are less than half the group."""
    owning = np.unique(basis.owner[basis.owner >= 0])
    silent = _names(basis.problem.members, basis.estimates.silent)
    return bool(silent) and doubt.names == silent and 2 * len(silent) < owning.size


def _stuck(basis: Basis) -> Diagnosis:
    stuck = np.flatnonzero(basis.commits.stuck)
    names = tuple(basis.partition(index) for index in stuck.tolist())
    first = int(stuck[basis.commits.waiting_s[stuck].argmax()])
    series, waited_s = basis.recent, basis.commits.waiting_s[first]
    since = series.at >= series.now - waited_s
    least = "" if (series.advanced[:, first] > 0).any() else "at least "
    owners = np.unique(series.owner[since, first])
    meanwhile = f"while its owner {series.members[owners[-1]]} commits others"
    if owners.size > 1:
        meanwhile = "by any of its last owners, while most other partitions have been"
    return Diagnosis(
        "stuck partition",
        names,
        f"{basis.partition(first)} has not been committed for {least}{length(waited_s)} "
        f"{meanwhile}; {int(series.lag[-1, first]):,} records wait{_and_more(len(names))}.",
    )


def _throttled(basis: Basis) -> Diagnosis | None:
    """Return the throttled partitions that are or will be over the objective, if any."""
    series, rules, commits = basis.recent, basis.rules, basis.commits
    if not commits.throttled.any():
        return None
    lag, come = series.lag[-1].astype(np.float64), basis.arrivals
    time_lag_s = series.time_lag(lag, come)
    grows = 1.0 - commits.read_per_s / np.maximum(come, 1e-9)
    then_s = time_lag_s + np.maximum(grows, 0.0) * rules.horizon_s
    late = commits.throttled & (then_s > rules.objective_s)
    if not late.any():
        return None
    names = tuple(basis.partition(index) for index in np.flatnonzero(late).tolist())
    worst = int(np.where(late, time_lag_s, -1.0).argmax())
    member, work = int(series.owner[-1, worst]), basis.observations.work
    does = "keeps up with its other partitions"
    advice = (
        "A faster consumer would not help: find out what the records of this partition wait for."
    )
    if work is not None and work.waits[member]:
        does = f"waits for records {work.waiting[member]:.0%} of the time"
        advice = "Its fetches are slow: find out whether a quota or the network limits them."
    return Diagnosis(
        "throttled partition",
        names,
        f"{basis.partition(worst)}{_and_more(len(names))} is {length(time_lag_s[worst])} behind: "
        f"{rate(commits.read_per_s[worst])} of its {rate(come[worst])} are read, while its owner "
        f"{series.members[member]} {does}. {advice}",
    )


def _without_owner(basis: Basis) -> Diagnosis | None:
    """Return the partitions without an owner that are or will be over the objective, if any."""
    rules, arrivals = basis.rules, basis.arrivals
    lag_s = basis.recent.time_lag(basis.recent.lag[-1].astype(np.float64), arrivals)
    late = basis.problem.assignable & (basis.owner < 0)
    late &= lag_s + np.where(arrivals > 0, rules.horizon_s, 0.0) > rules.objective_s
    if not late.any():
        return None
    worst = int(np.where(late, lag_s, -1.0).argmax())
    return Diagnosis(
        "unbalanced",
        tuple(basis.partition(index) for index in np.flatnonzero(late).tolist()),
        f"{basis.partition(worst)} has no owner, and "
        f"{plural(int(basis.recent.lag[-1, worst]), 'record')} wait{_and_more(int(late.sum()))}.",
    )


def _no_capacity(basis: Basis) -> Diagnosis | None:
    """Return unknown if the capacity of no member that is behind is known."""
    if basis.speeds.per_s[basis.late].any():
        return None
    names = _names(basis.problem.members, basis.late)
    return Diagnosis(
        "unknown",
        names,
        f"The capacity of {a_few(names)} is unknown: {SAMPLES_NEEDED} samples with the same owners "
        "are needed.",
    )


def _hot(basis: Basis) -> Diagnosis | None:
    arrivals, owner, problem = basis.outlook.arrivals, basis.owner, basis.problem
    of_late = of_owner(basis.late, owner, none=False)
    fastest = fastest_readers(problem, basis.speeds.per_s)[problem.topic_of]
    fastest = np.maximum(fastest, _drained(basis))
    hot = np.flatnonzero(of_late & (arrivals > fastest) & (fastest > 0))
    if not hot.size:
        return None
    hottest = int(hot[arrivals[hot].argmax()])
    topic, _ = problem.partition_name(hottest)
    count, speed = (int(problem.partition_counts[problem.topic_of[hottest]]), fastest[hottest])
    room = float(speed) * basis.rules.target_utilisation
    wanted = partitions_wanted(problem, hottest, float(arrivals[hottest]), room)
    of_its, remedy = "", "spread its keys"
    if basis.estimates.costs.value[hottest] > 1.0:
        of_its, remedy = " of its records", "make its records cheaper"
    partitions = np.arange(basis.recent.partitions) == hottest
    fills, drains = (
        rate(basis.outlook.in_records(float(per_s), partitions))
        for per_s in (arrivals[hottest], speed)
    )
    return Diagnosis(
        "hot partition",
        tuple(basis.partition(index) for index in hot.tolist()),
        f"{fills} arrive in {basis.partition(hottest)}; the fastest member can process {drains}"
        f"{of_its}: no assignment helps{_as_known(basis, _readers(basis))}. Increase the "
        f"partitions of {topic} from {count:,} to {wanted:,}, or {remedy}.",
    )


def _drained(basis: Basis) -> Float64:
    """Return the reading speed of each partition in its second fastest step, (P,)."""
    commits, series = basis.commits, basis.recent
    if len(series) <= STEPS:
        return np.zeros(series.partitions)
    per_s = commits.taken * basis.estimates.costs.value / series.seconds[:, None]
    rare = of_owner(commits.rare, series.owner[-1], none=True)
    return np.where(rare, 0.0, np.sort(per_s, axis=0)[-2])


def _overloaded(basis: Basis) -> Diagnosis | None:
    """Check each reader set, and the only readers of some topics: other members cannot help."""
    problem, speeds = basis.problem, basis.speeds
    reader_set, of_partition = basis.estimates.peers.reader_set, basis.estimates.peers.of_partition
    silent = basis.estimates.silent
    read = (of_partition >= 0) & ~of_owner(silent, basis.owner, none=False)
    everybody = _readers(basis) & ~silent
    target_utilisation = basis.rules.target_utilisation
    sets = [
        (reader_set == number, of_partition == number)
        for number in np.unique(reader_set[basis.late]).tolist()
    ]
    sets += [alone for alone in sole_readers(problem) if basis.late[alone[0]].any()]
    for members, partitions in sets:
        of_set, counted = everybody & members, read & partitions
        loads = basis.outlook.arrivals[counted]
        rooms = target_utilisation * speeds.surely_at_most[of_set]
        if not surely_too_much(loads, rooms):
            continue
        arrive, most = float(loads.sum()), float(speeds.surely_at_most[of_set].sum())
        fills, drains = (rate(basis.outlook.in_records(per_s, counted)) for per_s in (arrive, most))
        count = int(of_set.sum())
        that_read = f" that {'reads' if count == 1 else 'read'} these topics"
        readers = plural(count, "member") + (that_read if count < everybody.sum() else "")
        whole = ""
        if arrive < target_utilisation * most:
            up_to = loads.max() / speeds.at_most[of_set].max()
            whole = f", in partitions that need up to {up_to:.0%} of a member each"
        surely = " at most" if most > float(speeds.per_s[of_set].sum()) else ""
        full = f" (target utilisation {target_utilisation:.0%})" if arrive <= most else ""
        return Diagnosis(
            "overloaded",
            (),
            f"{fills} arrive{whole}, and the {readers} can process {drains}{surely}{full}: no "
            f"assignment keeps every member within its capacity{_as_known(basis, of_set)}.",
        )
    return None


def _as_known(basis: Basis, members: Mask) -> str:
    """Return a reservation if the capacity of some of these members was not measured."""
    return "" if basis.speeds.measured[members].all() else ", as far as is known"


def _readers(basis: Basis) -> Mask:
    """Return the members that subscribe to a topic with partitions, bool of shape (M,)."""
    readers = np.zeros(len(basis.problem.members), dtype=bool)
    readers[basis.problem.readers] = True
    return readers


def _usual(basis: Basis, member: int, readers: Mask) -> float:
    """Return the median capacity of a member's peers, records a second; 0 without peers."""
    peers = basis.estimates.peers.of_member(member, readers)
    return median(basis.speeds.per_s[peers]) if peers.size else 0.0


def _slow(basis: Basis) -> Diagnosis | None:
    speeds = basis.speeds
    readers = _readers(basis)
    measured = np.flatnonzero(basis.late & speeds.measured).tolist()
    peers = {member: _usual(basis, member, readers) for member in measured}
    usual = {member: by for member, by in peers.items() if speeds.per_s[member] < SLOW * by}
    if not usual:
        return None
    slowest = min(usual, key=lambda member: float(speeds.per_s[member]))
    arrivals = basis.outlook.by_member(basis.outlook.arrivals, basis.owner)
    members = tuple(basis.problem.members[member] for member in usual)
    does, peers_do, arrive = (
        rate(basis.outlook.in_records(float(per_s), basis.owner == slowest))
        for per_s in (speeds.per_s[slowest], usual[slowest], arrivals[slowest])
    )
    doubt = ""
    if basis.observations.work is None:
        doubt = " Either it is slow, or its records are expensive: reported work would show which."
    return Diagnosis(
        "slow member",
        members,
        f"{basis.problem.members[slowest]} can process {does}, its peers {peers_do}; {arrive} "
        f"arrive in its partitions.{doubt}",
    )


def _catching_up(basis: Basis) -> Diagnosis | None:
    """Return recovering if all members catch up, about as soon as any assignment allows."""
    outlook, owner = basis.outlook, basis.owner
    spare = outlook.capacities - outlook.by_member(outlook.arrivals, owner)
    readers, waiting = _readers(basis), outlook.by_member(outlook.backlog, owner)
    readers &= ~basis.estimates.silent
    if (spare[readers] <= 0).any():
        return None
    longest = float((waiting / np.maximum(spare, 1e-9))[basis.late & readers].max(initial=0.0))
    if longest > EVENLY * float(waiting.sum() / spare[readers].sum()):
        return None
    place = int(outlook.time_lag_s.argmax())
    return Diagnosis(
        "recovering",
        (basis.partition(place),),
        f"{basis.partition(place)} is {length(float(outlook.time_lag_s[place]))} behind, and every "
        f"member catches up, the last one in {length(longest)}.",
    )


def _unmeasured(basis: Basis) -> Diagnosis | None:
    """Return unknown if more arrives at every member than its lower bound of capacity."""
    readers = _readers(basis) & ~basis.estimates.silent
    used = basis.outlook.utilisation(basis.owner)[readers]
    if not used.size or used.min() < 1.0:
        return None
    owned = basis.owner >= 0
    arrive = basis.outlook.in_records(float(basis.outlook.arrivals[owned].sum()), owned)
    return Diagnosis(
        "unknown",
        (),
        f"{rate(arrive)} arrive, and every member falls behind: the group is overloaded, unless "
        "members can process more than measured. More samples will show whether they can.",
    )


def _unbalanced(basis: Basis) -> Diagnosis:
    used = basis.outlook.utilisation(basis.owner)
    time_lag = basis.outlook.forecast_time_lag(basis.owner, basis.rules.horizon_s)
    worst = int(time_lag.argmax())
    others = _readers(basis) & ~basis.estimates.silent
    others[worst] = False
    lightest = ""
    if others.any():
        member = int(np.where(others, used, np.inf).argmin())
        lightest = f"; {basis.problem.members[member]} is at {used[member]:.0%}"
    return Diagnosis(
        "unbalanced",
        _names(basis.problem.members, basis.late),
        f"{basis.problem.members[worst]} is at {used[worst]:.0%} of its capacity and will be "
        f"{length(time_lag[worst])} behind in {length(basis.rules.horizon_s)}{lightest}.",
    )


def _healthy(basis: Basis) -> Diagnosis:
    used = basis.outlook.utilisation(basis.owner)
    time_lag = basis.outlook.forecast_time_lag(basis.owner, basis.rules.horizon_s)
    readers = _readers(basis)
    slow = [
        basis.problem.members[member]
        for member in np.flatnonzero(basis.speeds.measured).tolist()
        if basis.speeds.per_s[member] < SLOW * _usual(basis, member, readers)
    ]
    worst, most = float(time_lag.max(initial=0.0)), int(used.argmax()) if used.size else 0
    does = "did not reach its limit"
    if basis.speeds.measured[most : most + 1].any():
        does = f"is at {used[most]:.0%} of its capacity"
    chance = " (within the error of the forecast)" if worst > basis.rules.objective_s else ""
    harmless = (
        f" {a_few(slow)} {_verb(slow, 'is slow, but keeps', 'are slow, but keep')} up."
        if slow
        else ""
    )
    return Diagnosis(
        "healthy",
        (),
        f"The most utilised member {does}; the worst partition will be {length(worst)} behind in "
        f"{length(basis.rules.horizon_s)}{chance}.{harmless}",
    )


def _names(members: Sequence[str], chosen: Mask) -> tuple[str, ...]:
    return tuple(members[index] for index in np.flatnonzero(chosen).tolist())


def _verb(names: Sequence[str], single: str, many: str) -> str:
    return single if len(names) == 1 else many

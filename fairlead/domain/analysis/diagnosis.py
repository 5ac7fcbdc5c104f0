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
#: Maximum ratio of the time to catch up to the shortest possible time in a group that recovers:
#: below it, a plan saves less than its moves cost.
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
    """The results that a diagnosis uses; `late` as in `Analysis`."""

    question: Question
    observations: Observations
    estimates: Estimates
    outlook: Outlook
    late: Mask

    @property
    def problem(self) -> Problem:
        """Partitions and members."""
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


def diagnose(found: Basis) -> Diagnosis:
    """Return the diagnosis of a group."""
    diagnosis, work = _diagnose(found), found.observations.work
    sentences = [f"{diagnosis.evidence}{_transactions(found)}"]
    losses_s = found.outlook.losses_s(found.owner)
    sentences += _uncounted(found)
    if (losses_s < SOON_S).any():
        sentences.append(f"{found.partition(int(losses_s.argmin()))}{_loss(found, losses_s)}")
    if work is not None:
        sentences += work_sentences(work, found.estimates.costs, found.problem)
        if work.ignored:
            sentences.append(f"{plural(work.ignored, 'impossible report')} ignored.")
    if found.question.forgotten:
        sentences.append("The stored memory is invalid and is ignored.")
    return replace(diagnosis, evidence=" ".join(sentences))


def _uncounted(found: Basis) -> list[str]:
    """Describe partitions that do not count: never committed, or empty."""
    series, sentences = found.recent, []
    idle = np.flatnonzero(~found.commits.started & (series.lag[-1] > 0))
    if idle.size:
        waiting = int(series.end[-1, idle[0]] - max(int(series.begin[-1, idle[0]]), 0))
        sentences.append(
            f"{found.partition(int(idle[0]))} was never committed, and nothing arrived: "
            f"{plural(waiting, 'record')} would be read by consumers that start at the earliest "
            f"offset, none by others (auto_offset_reset){_and_more(idle.size)}."
        )
    empty = series.end[-1] == np.maximum(series.begin[-1], 0)
    beyond = np.flatnonzero(empty & (series.committed[-1] > series.end[-1]))
    if beyond.size:
        sentences.append(
            f"{found.partition(int(beyond[0]))} is empty, and its committed offset is "
            f"{int(series.committed[-1, beyond[0]]):,}: the commit belongs to another log"
            f"{_and_more(beyond.size)}."
        )
    return sentences


def _transactions(found: Basis) -> str:
    """Describe the open transaction that has held back the group for longest; empty: none."""
    series = found.recent
    held = series.in_transaction[-1]
    if not held.any():
        return ""
    stable = series.readable_end[-1]
    waiting = np.where(held, series.end[-1] - stable, 0)
    open_s = series.time_lag(waiting.astype(np.float64), found.arrivals)
    longest = int(np.where(held, open_s, -1.0).argmax())
    seen_s = series.now - float(series.at[0])
    before = "before " if series.end[0, longest] > stable[longest] else ""
    seconds = min(float(open_s[longest]), seen_s)
    since = datetime.fromtimestamp(series.now - seconds, UTC)
    return (
        f" A transaction has been open on {found.partition(longest)} since {before}"
        f"{since:%Y-%m-%d %H:%M} UTC ({length(seconds)}): consumers that read committed can read "
        f"the {plural(int(waiting[longest]), 'record')} from offset {int(stable[longest]):,} only "
        f"after it ends{_and_more(int(held.sum()))}."
    )


def _loss(found: Basis, losses_s: Float64) -> str:
    """Describe the time until records are lost, and the number of partitions concerned."""
    seconds, many = float(losses_s.min()), int((losses_s < SOON_S).sum())
    others = _and_more(many)
    if seconds < max(found.recent.step, 1.0):
        return f" loses records now{others}: retention deletes them before they are read."
    return (
        f" loses records in {length(seconds)}{others}: retention deletes them before they are read."
    )


def _and_more(partitions: int) -> str:
    """Return the number of other partitions in brackets; empty: none."""
    return f" (and {plural(partitions - 1, 'more partition')})" if partitions > 1 else ""


def _diagnose(found: Basis) -> Diagnosis:
    doubt = _too_little_known(found)
    if doubt is None:
        return _problem(found)
    if found.late.any() and _few_silent(found, doubt):
        problem = _problem(found)
        return replace(problem, evidence=f"{problem.evidence} {doubt.evidence}")
    return doubt


def _problem(found: Basis) -> Diagnosis:
    rules, outlook, owner = found.rules, found.outlook, found.owner
    if found.commits.stuck.any():
        return _stuck(found)
    of_partitions = _throttled(found) or _without_owner(found)
    if of_partitions is not None:
        return of_partitions
    if found.late.any():
        return (
            _no_capacity(found)
            or _hot(found)
            or _overloaded(found)
            or _slow(found)
            or _catching_up(found)
            or _unmeasured(found)
            or _unbalanced(found)
        )
    time_lag_s = float(outlook.time_lag_s.max(initial=0.0))
    if time_lag_s > rules.objective_s:
        place = int(outlook.time_lag_s.argmax())
        worst = float(
            outlook.forecast_time_lag(owner, rules.horizon_s).max(initial=rules.objective_s)
        )
        return Diagnosis(
            "recovering",
            (found.partition(place),),
            f"{found.partition(place)} is {length(time_lag_s)} behind; in "
            f"{length(rules.horizon_s)} no partition will be more than {length(worst)} behind.",
        )
    return _healthy(found)


def _too_little_known(found: Basis) -> Diagnosis | None:
    return _unowned(found) or _unseen(found) or _uncommitted(found)


def _unowned(found: Basis) -> Diagnosis | None:
    problem = found.problem
    if not problem.members:
        return Diagnosis("unknown", (), NO_MEMBERS)
    if not problem.assignable.any():
        return Diagnosis("unknown", (), "No member subscribes to a topic that has partitions.")
    ownerless = problem.assignable & (found.owner < 0)
    if ownerless.sum() * 2 > problem.assignable.sum():
        return Diagnosis(
            "unknown",
            (),
            f"{int(ownerless.sum()):,} of {int(problem.assignable.sum()):,} partitions have no "
            "known owner.",
        )
    return None


def _unseen(found: Basis) -> Diagnosis | None:
    count = len(found.recent)
    if count >= SAMPLES_NEEDED:
        return _new_logs(found)
    return Diagnosis(
        "unknown",
        (),
        f"There {'is' if count == 1 else 'are'} {plural(count, 'sample')} of the group; "
        f"{SAMPLES_NEEDED} are needed to distinguish a backlog from records not yet committed.",
    )


def _new_logs(found: Basis) -> Diagnosis | None:
    """Return unknown if most logs are new or were not sampled."""
    assignable = found.problem.assignable
    few = assignable & (found.recent.in_one_log.sum(axis=0) < SAMPLES_NEEDED)
    if few.sum() * 2 <= assignable.sum():
        return None
    return Diagnosis(
        "unknown",
        (),
        f"{int(few.sum()):,} of {int(assignable.sum()):,} partitions are new, were created again "
        f"or are missing in the last sample: {SAMPLES_NEEDED} samples of each are needed.",
    )


def _uncommitted(found: Basis) -> Diagnosis | None:
    problem, commits = found.problem, found.commits
    silent = _names(problem.members, found.estimates.silent)
    foreign = np.flatnonzero(commits.foreign)
    if silent and foreign.size:
        first = int(foreign[0])
        return Diagnosis(
            "unknown",
            silent,
            f"The committed offset of {found.partition(first)} is "
            f"{int(found.recent.committed[-1, first]):,}, and its log ends at "
            f"{int(found.recent.end[-1, first]):,}: the commit belongs to another log, and the "
            f"position of {a_few(silent)} is unknown.",
        )
    if silent:
        longest = float(commits.waiting_s.max(initial=0.0))
        return Diagnosis(
            "unknown",
            silent,
            f"{a_few(silent)} {_verb(silent, 'has', 'have')} committed nothing for "
            f"{length(longest)}, although records have arrived. Whether "
            f"{_verb(silent, 'it reads', 'they read')} them is unknown.",
        )
    owns = np.bincount(found.owner[found.owner >= 0], minlength=len(problem.members)) > 0
    few = commits.marked.sum(axis=0) <= SEVERAL
    young = (commits.rare & few)[: len(problem.members)] & owns
    if 2 * young.sum() < owns.sum():  # a few members matter only if they seem to be behind
        time_lag_s = found.outlook.forecast_time_lag(found.owner, found.rules.horizon_s)
        young &= time_lag_s > found.rules.objective_s
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


def _few_silent(found: Basis, doubt: Diagnosis) -> bool:
    """Whether the doubt is only about silent members, and these are less than half the group."""
    owning = np.unique(found.owner[found.owner >= 0])
    silent = _names(found.problem.members, found.estimates.silent)
    return bool(silent) and doubt.names == silent and 2 * len(silent) < owning.size


def _stuck(found: Basis) -> Diagnosis:
    stuck = np.flatnonzero(found.commits.stuck)
    names = tuple(found.partition(index) for index in stuck.tolist())
    first = int(stuck[found.commits.waiting_s[stuck].argmax()])
    owner = found.recent.members[found.recent.owner[-1, first]]
    return Diagnosis(
        "stuck partition",
        names,
        f"{found.partition(first)} has not been committed for "
        f"{length(found.commits.waiting_s[first])} while its owner {owner} commits others; "
        f"{int(found.recent.lag[-1, first]):,} records wait"
        f"{_and_more(len(names))}.",
    )


def _throttled(found: Basis) -> Diagnosis | None:
    """Return the throttled partitions that are or will be over the objective, if any."""
    series, rules, commits = found.recent, found.rules, found.commits
    if not commits.throttled.any():
        return None
    lag, come = series.lag[-1].astype(np.float64), found.arrivals
    time_lag_s = series.time_lag(lag, come)
    grows = 1.0 - commits.read_per_s / np.maximum(come, 1e-9)
    then_s = time_lag_s + np.maximum(grows, 0.0) * rules.horizon_s
    late = commits.throttled & (then_s > rules.objective_s)
    if not late.any():
        return None
    names = tuple(found.partition(index) for index in np.flatnonzero(late).tolist())
    worst = int(np.where(late, time_lag_s, -1.0).argmax())
    member, work = int(series.owner[-1, worst]), found.observations.work
    does, why = "keeps up with its other partitions", "what its records wait for"
    if work is not None and work.waits[member]:
        does, why = "waits for records most of the time", "whether a quota or the network limits it"
    return Diagnosis(
        "throttled partition",
        names,
        f"{found.partition(worst)} is {length(time_lag_s[worst])} behind: "
        f"{rate(commits.read_per_s[worst])} of its {rate(come[worst])} are read, while its owner "
        f"{series.members[member]} {does}. A faster consumer would not read it faster: find out "
        f"{why}{_and_more(len(names))}.",
    )


def _without_owner(found: Basis) -> Diagnosis | None:
    """Return the partitions without an owner that are or will be over the objective, if any."""
    rules, arrivals = found.rules, found.arrivals
    lag_s = found.recent.time_lag(found.recent.lag[-1].astype(np.float64), arrivals)
    late = found.problem.assignable & (found.owner < 0)
    late &= lag_s + np.where(arrivals > 0, rules.horizon_s, 0.0) > rules.objective_s
    if not late.any():
        return None
    worst = int(np.where(late, lag_s, -1.0).argmax())
    return Diagnosis(
        "unbalanced",
        tuple(found.partition(index) for index in np.flatnonzero(late).tolist()),
        f"{found.partition(worst)} has no owner, and "
        f"{plural(int(found.recent.lag[-1, worst]), 'record')} wait{_and_more(int(late.sum()))}.",
    )


def _no_capacity(found: Basis) -> Diagnosis | None:
    """Return unknown if the capacity of no member that is behind is known."""
    if found.speeds.per_s[found.late].any():
        return None
    names = _names(found.problem.members, found.late)
    return Diagnosis(
        "unknown",
        names,
        f"The capacity of {a_few(names)} is unknown: {SAMPLES_NEEDED} samples with the same owners "
        "are needed.",
    )


def _hot(found: Basis) -> Diagnosis | None:
    arrivals, owner, problem = found.outlook.arrivals, found.owner, found.problem
    of_late = of_owner(found.late, owner, none=False)
    fastest = fastest_readers(problem, found.speeds.per_s)[problem.topic_of]
    fastest = np.maximum(fastest, _drained(found))
    hot = np.flatnonzero(of_late & (arrivals > fastest) & (fastest > 0))
    if not hot.size:
        return None
    hottest = int(hot[arrivals[hot].argmax()])
    topic, _ = problem.partition_name(hottest)
    count, speed = (int(problem.partition_counts[problem.topic_of[hottest]]), fastest[hottest])
    room = float(speed) * found.rules.target_utilisation
    wanted = partitions_wanted(problem, hottest, float(arrivals[hottest]), room)
    of_its, remedy = "", "spread its keys"
    if found.estimates.costs.value[hottest] > 1.0:
        of_its, remedy = " of its records", "make its records cheaper"
    mine = np.arange(found.recent.partitions) == hottest
    fills, drains = (
        rate(found.outlook.in_records(float(per_s), mine)) for per_s in (arrivals[hottest], speed)
    )
    return Diagnosis(
        "hot partition",
        tuple(found.partition(index) for index in hot.tolist()),
        f"{fills} arrive in {found.partition(hottest)}; the fastest member can process {drains}"
        f"{of_its}: no assignment helps{_as_known(found, _readers(found))}. Raise the partitions "
        f"of {topic} from {count:,} to {wanted:,}, or {remedy}.",
    )


def _drained(found: Basis) -> Float64:
    """Return the reading speed of each partition in its second fastest step, (P,)."""
    commits, series = found.commits, found.recent
    if len(series) <= STEPS:
        return np.zeros(series.partitions)
    per_s = commits.taken * found.estimates.costs.value / series.seconds[:, None]
    rare = of_owner(commits.rare, series.owner[-1], none=True)
    return np.where(rare, 0.0, np.sort(per_s, axis=0)[-2])


def _overloaded(found: Basis) -> Diagnosis | None:
    """Check each reader set, and the only readers of some topics: other members cannot help."""
    problem, speeds = found.problem, found.speeds
    reader_set, of_partition = found.estimates.peers.reader_set, found.estimates.peers.of_partition
    silent = found.estimates.silent
    read = (of_partition >= 0) & ~of_owner(silent, found.owner, none=False)
    everybody = _readers(found) & ~silent
    target_utilisation = found.rules.target_utilisation
    sets = [
        (reader_set == number, of_partition == number)
        for number in np.unique(reader_set[found.late]).tolist()
    ]
    sets += [alone for alone in sole_readers(problem) if found.late[alone[0]].any()]
    for members, partitions in sets:
        of_it, mine = everybody & members, read & partitions
        loads = found.outlook.arrivals[mine]
        rooms = target_utilisation * speeds.surely_at_most[of_it]
        if not surely_too_much(loads, rooms):
            continue
        arrive, most = float(loads.sum()), float(speeds.surely_at_most[of_it].sum())
        count = int(of_it.sum())
        that_read = f" that {'reads' if count == 1 else 'read'} these topics"
        readers = plural(count, "member") + (that_read if count < everybody.sum() else "")
        whole = ""
        if arrive < target_utilisation * most:
            up_to = loads.max() / speeds.at_most[of_it].max()
            whole = f" in partitions that each need up to {up_to:.0%} of a member"
        surely = " at most" if most > float(speeds.per_s[of_it].sum()) else ""
        full = f", of which {target_utilisation:.0%} is planned" if arrive <= most else ""
        return Diagnosis(
            "overloaded",
            (),
            f"{rate(found.outlook.in_records(arrive, mine))} arrive{whole}, and the {readers} can "
            f"process {rate(found.outlook.in_records(most, mine))}{surely}{full}: no assignment "
            f"keeps every member within its capacity{_as_known(found, of_it)}.",
        )
    return None


def _as_known(found: Basis, members: Mask) -> str:
    """Return a reservation if the capacity of some of these members was not measured."""
    return "" if found.speeds.measured[members].all() else " as far as is known"


def _readers(found: Basis) -> Mask:
    """Return the members that subscribe to a topic with partitions, bool of shape (M,)."""
    readers = np.zeros(len(found.problem.members), dtype=bool)
    readers[found.problem.readers] = True
    return readers


def _usual(found: Basis, member: int, readers: Mask) -> float:
    """Return the median capacity of a member's peers, records a second; 0 without peers."""
    peers = found.estimates.peers.of_member(member, readers)
    return median(found.speeds.per_s[peers]) if peers.size else 0.0


def _slow(found: Basis) -> Diagnosis | None:
    speeds = found.speeds
    readers = _readers(found)
    measured = np.flatnonzero(found.late & speeds.measured).tolist()
    peers = {member: _usual(found, member, readers) for member in measured}
    usual = {member: by for member, by in peers.items() if speeds.per_s[member] < SLOW * by}
    if not usual:
        return None
    slowest = min(usual, key=lambda member: float(speeds.per_s[member]))
    arrivals = found.outlook.by_member(found.outlook.arrivals, found.owner)
    members = tuple(found.problem.members[member] for member in usual)
    does, peers_do, arrive = (
        rate(found.outlook.in_records(float(per_s), found.owner == slowest))
        for per_s in (speeds.per_s[slowest], usual[slowest], arrivals[slowest])
    )
    doubt = ""
    if found.observations.work is None:
        doubt = " Or its records take longer. Reported work would show which is true."
    return Diagnosis(
        "slow member",
        members,
        f"{found.problem.members[slowest]} can process {does}, its peers {peers_do}; {arrive} "
        f"arrive in its partitions.{doubt}",
    )


def _catching_up(found: Basis) -> Diagnosis | None:
    """Return recovering if all members catch up, about as soon as any assignment allows."""
    outlook, owner = found.outlook, found.owner
    spare = outlook.capacities - outlook.by_member(outlook.arrivals, owner)
    readers, waiting = _readers(found), outlook.by_member(outlook.backlog, owner)
    readers &= ~found.estimates.silent
    if (spare[readers] <= 0).any():
        return None
    longest = float((waiting / np.maximum(spare, 1e-9))[found.late & readers].max(initial=0.0))
    if longest > EVENLY * float(waiting.sum() / spare[readers].sum()):
        return None
    place = int(outlook.time_lag_s.argmax())
    return Diagnosis(
        "recovering",
        (found.partition(place),),
        f"{found.partition(place)} is {length(float(outlook.time_lag_s[place]))} behind, and every "
        f"member catches up, the last one in {length(longest)}.",
    )


def _unmeasured(found: Basis) -> Diagnosis | None:
    """Return unknown if more arrives at every member than its lower bound of capacity."""
    readers = _readers(found) & ~found.estimates.silent
    used = found.outlook.utilisation(found.owner)[readers]
    if not used.size or used.min() < 1.0:
        return None
    owned = found.owner >= 0
    arrive = found.outlook.in_records(float(found.outlook.arrivals[owned].sum()), owned)
    return Diagnosis(
        "unknown",
        (),
        f"{rate(arrive)} arrive, and every member falls behind: the group is overloaded, unless "
        "members can process more than measured. More samples will show whether they can.",
    )


def _unbalanced(found: Basis) -> Diagnosis:
    used = found.outlook.utilisation(found.owner)
    time_lag = found.outlook.forecast_time_lag(found.owner, found.rules.horizon_s)
    worst = int(time_lag.argmax())
    others = _readers(found) & ~found.estimates.silent
    others[worst] = False
    lightest = ""
    if others.any():
        member = int(np.where(others, used, np.inf).argmin())
        lightest = f"; {found.problem.members[member]} is at {used[member]:.0%}"
    return Diagnosis(
        "unbalanced",
        _names(found.problem.members, found.late),
        f"{found.problem.members[worst]} is at {used[worst]:.0%} of its capacity and will be "
        f"{length(time_lag[worst])} behind in {length(found.rules.horizon_s)}{lightest}.",
    )


def _healthy(found: Basis) -> Diagnosis:
    used = found.outlook.utilisation(found.owner)
    time_lag = found.outlook.forecast_time_lag(found.owner, found.rules.horizon_s)
    readers = _readers(found)
    slow = [
        found.problem.members[member]
        for member in np.flatnonzero(found.speeds.measured).tolist()
        if found.speeds.per_s[member] < SLOW * _usual(found, member, readers)
    ]
    worst = float(time_lag.max(initial=0.0))
    chance = " (possibly by chance)" if worst > found.rules.objective_s else ""
    harmless = (
        f" {a_few(slow)} {_verb(slow, 'is slow, but keeps', 'are slow, but keep')} up."
        if slow
        else ""
    )
    return Diagnosis(
        "healthy",
        (),
        f"The most utilised member is at {used.max(initial=0.0):.0%} of its capacity; the worst "
        f"partition will be {length(worst)} behind in "
        f"{length(found.rules.horizon_s)}{chance}.{harmless}",
    )


def _names(members: Sequence[str], chosen: Mask) -> tuple[str, ...]:
    return tuple(members[index] for index in np.flatnonzero(chosen).tolist())


def _verb(names: Sequence[str], single: str, many: str) -> str:
    return single if len(names) == 1 else many

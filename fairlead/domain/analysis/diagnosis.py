"""Fourth step of the analysis: what is wrong with a group, in a word, with names and evidence.

Belongs here: the definitions and their order. Does not: the figures they rest on (`estimate`,
`forecast`), nor what is done about it (`decide`).

`_unknown` and `_matter` ask in this order, and the first that holds is the diagnosis:

1. unknown: too few samples, owners are not known, or a member commits nothing at all. If that is a
   few members, and others are behind, the diagnosis is about the others.
2. stuck partition: it waits while its owner commits others.
3. throttled partition: it falls behind while its owner keeps up with others.
4. unbalanced: a partition without an owner is behind.
5. unknown: nothing is known of how fast members are.
6. hot partition: more arrives than the fastest member can process.
7. overloaded: more arrives than all members that read it can process.
8. slow member: its measured speed is below `SLOW` of its peers' median.
9. recovering: every member catches up, about as soon as with any assignment.
10. unknown: every member gets more than it has shown, so nobody is known to have room.
11. unbalanced: a member gets more than it can process, and others have room.
12. recovering: behind now, and in time at the horizon.
13. healthy: nothing is behind, nor will be.

4 to 11 are asked only if a partition is forecast over the objective.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import length, listed, plural, rate
from fairlead.domain.analysis.capacities import INTERVALS, STEPS, Speeds
from fairlead.domain.analysis.commits import Commits
from fairlead.domain.analysis.estimate import Estimates
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.looks import Float64, Int32, Looks, Mask, median
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.read import Observations
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.sizing import fastest_readers, partitions_wanted, surely_too_much
from fairlead.domain.analysis.work_words import work_sentences
from fairlead.domain.diagnoses import NO_MEMBERS, DiagnosisName
from fairlead.domain.worst_first import SOON_S

#: Samples needed after the first one, a plan or a change of members: a speed is measured in `STEPS`
#: steps, which is one sample more.
LOOKS_NEEDED: Final = STEPS + 1
#: A member is slow that does less than this share of what is typical of its peers.
SLOW: Final = 0.7
#: A backlog is spread well where it is read within so many times the least time that it takes.
EVENLY: Final = 1.35
#: At most so many names stand in a sentence.
a_few = partial(listed, at_most=3)


@dataclass(frozen=True)
class Diagnosis:
    """What is the matter.

    Parameters
    ----------
    name
        One of the nine.
    names
        The members, or "topic-partition", that it is about.
    evidence
        One sentence.
    """

    name: DiagnosisName
    names: tuple[str, ...]
    evidence: str


@dataclass(frozen=True, eq=False)
class Basis:
    """What a diagnosis rests on; `late` as in `Analysis`."""

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
    def looks(self) -> Looks:
        """Samples of the last hour."""
        return self.observations.recent

    @property
    def commits(self) -> Commits:
        """What commits show."""
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
        """Name a partition as people do."""
        return "{}-{}".format(*self.problem.partition_name(index))


def diagnose(found: Basis) -> Diagnosis:
    """Say what is the matter with a group."""
    diagnosis, work = _diagnose(found), found.observations.work
    sentences = [f"{diagnosis.evidence}{_transactions(found)}"]
    losses_s = found.outlook.losses_s(found.owner)
    sentences += _aside(found)
    if (losses_s < SOON_S).any():
        sentences.append(f"{found.partition(int(losses_s.argmin()))}{_loss(found, losses_s)}")
    if work is not None:
        sentences += work_sentences(work, found.estimates.costs, found.problem)
        if work.ignored:
            sentences.append(f"{plural(work.ignored, 'impossible report')} ignored.")
    if found.question.forgotten:
        sentences.append("What was remembered makes no sense and is ignored.")
    return replace(diagnosis, evidence=" ".join(sentences))


def _aside(found: Basis) -> list[str]:
    """Describe partitions that do not count: never committed, or committed beyond an empty log."""
    looks, sentences = found.looks, []
    idle = np.flatnonzero(~found.commits.begun & (looks.lag[-1] > 0))
    if idle.size:
        waiting = int(looks.end[-1, idle[0]] - max(int(looks.begin[-1, idle[0]]), 0))
        sentences.append(
            f"{found.partition(int(idle[0]))} was never committed, and nothing arrived: "
            f"{plural(waiting, 'record')} would be read by consumers that start at the earliest "
            f"offset, none by others (auto_offset_reset){_and_more(idle.size)}."
        )
    empty = looks.end[-1] == np.maximum(looks.begin[-1], 0)
    beyond = np.flatnonzero(empty & (looks.committed[-1] > looks.end[-1]))
    if beyond.size:
        sentences.append(
            f"{found.partition(int(beyond[0]))} is empty, and committed at "
            f"{int(looks.committed[-1, beyond[0]]):,}: the commit is of another log"
            f"{_and_more(beyond.size)}."
        )
    return sentences


def _transactions(found: Basis) -> str:
    """Name the open transaction that holds back the group for longest; empty if none does."""
    looks = found.looks
    held = looks.in_transaction[-1]
    if not held.any():
        return ""
    stable = looks.readable_end[-1]
    waiting = np.where(held, looks.end[-1] - stable, 0)
    open_s = looks.time_lag(waiting.astype(np.float64), found.arrivals)
    longest = int(np.where(held, open_s, -1.0).argmax())
    seen_s = looks.now - float(looks.at[0])
    before = "before " if looks.end[0, longest] > stable[longest] else ""
    seconds = min(float(open_s[longest]), seen_s)
    since = datetime.fromtimestamp(looks.now - seconds, UTC)
    return (
        f" A transaction has been open on {found.partition(longest)} since {before}"
        f"{since:%Y-%m-%d %H:%M} UTC ({length(seconds)}): consumers that read committed can read "
        f"the {plural(int(waiting[longest]), 'record')} from offset {int(stable[longest]):,} only "
        f"after it ends{_and_more(int(held.sum()))}."
    )


def _loss(found: Basis, losses_s: Float64) -> str:
    """Say when records are lost, of how many partitions."""
    seconds, many = float(losses_s.min()), int((losses_s < SOON_S).sum())
    others = _and_more(many)
    if seconds < max(found.looks.step, 1.0):
        return f" loses records now{others}: retention takes them before they are read."
    return f" loses records in {length(seconds)}{others}: retention overtakes the group."


def _and_more(partitions: int) -> str:
    """Say how many others there are beside one partition."""
    return f" (and {plural(partitions - 1, 'more partition')})" if partitions > 1 else ""


def _diagnose(found: Basis) -> Diagnosis:
    doubt, late = _unknown(found), found.late
    if doubt is None:
        return _matter(found, late)
    if late.any() and _few_silent(found, doubt):
        matter = _matter(found, late)
        return replace(matter, evidence=f"{matter.evidence} {doubt.evidence}")
    return doubt


def _matter(found: Basis, late: Mask) -> Diagnosis:
    rules, outlook, owner = found.rules, found.outlook, found.owner
    if found.commits.stuck.any():
        return _stuck(found)
    aside = _throttled(found) or _without_owner(found)
    if aside is not None:
        return aside
    if late.any():
        return (
            _unmeasurable(found, late)
            or _hot(found, late)
            or _overloaded(found, late)
            or _slow(found, late)
            or _catching_up(found, late)
            or _unmeasured(found)
            or _spread(found, late)
        )
    late_s = float(outlook.late_s.max(initial=0.0))
    if late_s > rules.objective_s:
        place = int(outlook.late_s.argmax())
        worst = float(outlook.lateness(owner, rules.horizon_s).max(initial=rules.objective_s))
        return Diagnosis(
            "recovering",
            (found.partition(place),),
            f"{found.partition(place)} is {length(late_s)} behind, and every partition is "
            f"forecast within {length(worst)} in {length(rules.horizon_s)}.",
        )
    return _healthy(found)


def _unknown(found: Basis) -> Diagnosis | None:
    return _unowned(found) or _unseen(found) or _uncommitted(found)


def _unowned(found: Basis) -> Diagnosis | None:
    problem = found.problem
    if not problem.members:
        return Diagnosis("unknown", (), NO_MEMBERS)
    if not problem.assignable.any():
        return Diagnosis("unknown", (), "No member reads a topic that has partitions.")
    ownerless = problem.assignable & (found.owner < 0)
    if ownerless.sum() * 2 > problem.assignable.sum():
        return Diagnosis(
            "unknown",
            (),
            f"Nobody is known to own {int(ownerless.sum()):,} of "
            f"{int(problem.assignable.sum()):,} partitions.",
        )
    return None


def _unseen(found: Basis) -> Diagnosis | None:
    count = len(found.looks)
    if count >= LOOKS_NEEDED:
        return _unlike(found)
    return Diagnosis(
        "unknown",
        (),
        f"There {'is 1 look' if count == 1 else f'are {count} looks'} at the group; it takes "
        f"{LOOKS_NEEDED} to tell a backlog from a commit that has not come yet.",
    )


def _unlike(found: Basis) -> Diagnosis | None:
    """Say that most logs have been made anew, or cannot be seen: there is nothing to count in."""
    assignable = found.problem.assignable
    few = assignable & (found.looks.in_one_log.sum(axis=0) < LOOKS_NEEDED)
    if few.sum() * 2 <= assignable.sum():
        return None
    return Diagnosis(
        "unknown",
        (),
        f"The logs of {int(few.sum()):,} of {int(assignable.sum()):,} partitions are new, were "
        f"made anew or were not seen at the last look: it takes {LOOKS_NEEDED} looks at them.",
    )


def _uncommitted(found: Basis) -> Diagnosis | None:
    problem, commits = found.problem, found.commits
    silent = _names(problem.members, commits.silent[: len(problem.members)])
    foreign = np.flatnonzero(commits.foreign)
    if silent and foreign.size:
        first = int(foreign[0])
        return Diagnosis(
            "unknown",
            silent,
            f"{found.partition(first)} is committed at {int(found.looks.committed[-1, first]):,} "
            f"and ends at {int(found.looks.end[-1, first]):,}: these commits are of another log, "
            f"and where {a_few(silent)} {_verb(silent, 'stands', 'stand')} nobody can tell.",
        )
    if silent:
        longest = float(commits.waiting_s.max(initial=0.0))
        return Diagnosis(
            "unknown",
            silent,
            f"{a_few(silent)} {_verb(silent, 'has', 'have')} committed nothing for "
            f"{length(longest)}, though there is something to commit: whether anything is read "
            "nobody can tell.",
        )
    owns = np.bincount(found.owner[found.owner >= 0], minlength=len(problem.members)) > 0
    few = commits.marked.sum(axis=0) <= INTERVALS
    young = (commits.late & few)[: len(problem.members)] & owns
    if 2 * young.sum() < owns.sum():  # few leave it open only if they seem late themselves
        late_s = found.outlook.lateness(found.owner, found.rules.horizon_s)
        young &= late_s > found.rules.objective_s
    early = _names(problem.members, young)
    if early:
        usual = float(commits.interval_s[: young.size][young].max())
        return Diagnosis(
            "unknown",
            early,
            f"{a_few(early)} {_verb(early, 'commits', 'commit')} every {length(usual)} or so: it "
            f"takes {INTERVALS} of these intervals to tell a backlog from a commit that has not "
            "come yet.",
        )
    return None


def _few_silent(found: Basis, doubt: Diagnosis) -> bool:
    """Whether the doubt is about some silent members alone, and not about most of the group."""
    owning = np.unique(found.owner[found.owner >= 0])
    silent = _names(found.problem.members, found.commits.silent[: len(found.problem.members)])
    return bool(silent) and doubt.names == silent and 2 * len(silent) < owning.size


def _stuck(found: Basis) -> Diagnosis:
    stuck = np.flatnonzero(found.commits.stuck)
    names = tuple(found.partition(index) for index in stuck.tolist())
    first = int(stuck[found.commits.waiting_s[stuck].argmax()])
    owner = found.looks.members[found.looks.owner[-1, first]]
    return Diagnosis(
        "stuck partition",
        names,
        f"{found.partition(first)} has not been committed for "
        f"{length(found.commits.waiting_s[first])} while its owner {owner} commits others; "
        f"{int(found.looks.lag[-1, first]):,} records wait"
        f"{_and_more(len(names))}.",
    )


def _throttled(found: Basis) -> Diagnosis | None:
    """Name partitions that crawl, and are late or soon will be."""
    looks, rules, commits = found.looks, found.rules, found.commits
    if not commits.crawling.any():
        return None
    lag, come = looks.lag[-1].astype(np.float64), found.arrivals
    late_s = looks.time_lag(lag, come)
    grows = 1.0 - commits.read / np.maximum(come, 1e-9)
    late = commits.crawling & (late_s + grows * rules.horizon_s > rules.objective_s)
    if not late.any():
        return None
    names = tuple(found.partition(index) for index in np.flatnonzero(late).tolist())
    worst = int(np.where(late, late_s, -1.0).argmax())
    owner = looks.members[looks.owner[-1, worst]]
    return Diagnosis(
        "throttled partition",
        names,
        f"{found.partition(worst)} is {length(late_s[worst])} behind: {rate(commits.read[worst])} "
        f"of its {rate(come[worst])} are read, while its owner {owner} reads others as soon as "
        "they come. It would be read no faster elsewhere: look at what its records wait for"
        f"{_and_more(len(names))}.",
    )


def _without_owner(found: Basis) -> Diagnosis | None:
    """Name partitions without an owner that are behind by the objective, or will be."""
    rules, arrivals = found.rules, found.arrivals
    lag_s = found.looks.time_lag(found.looks.lag[-1].astype(np.float64), arrivals)
    late = found.problem.assignable & (found.owner < 0)
    late &= lag_s + np.where(arrivals > 0, rules.horizon_s, 0.0) > rules.objective_s
    if not late.any():
        return None
    worst = int(np.where(late, lag_s, -1.0).argmax())
    return Diagnosis(
        "unbalanced",
        tuple(found.partition(index) for index in np.flatnonzero(late).tolist()),
        f"{found.partition(worst)} has no owner: nobody reads it, and "
        f"{plural(int(found.looks.lag[-1, worst]), 'record')} wait{_and_more(int(late.sum()))}.",
    )


def _unmeasurable(found: Basis, late: Mask) -> Diagnosis | None:
    """Say that nothing is known of how fast anybody is."""
    if found.speeds.per_s[late].any():
        return None
    names = _names(found.problem.members, late)
    return Diagnosis(
        "unknown",
        names,
        f"How fast {a_few(names)} {_verb(names, 'reads', 'read')} is not known yet: it takes "
        f"{LOOKS_NEEDED} looks at the same owners.",
    )


def _hot(found: Basis, late: Mask) -> Diagnosis | None:
    arrivals, owner, problem = found.outlook.arrivals, found.owner, found.problem
    subscribed = np.zeros(found.looks.partitions, dtype=bool)
    subscribed[owner >= 0] = late[owner[owner >= 0]]
    fastest = fastest_readers(problem, found.speeds.per_s)[problem.topic_of]
    fastest = np.maximum(fastest, _drained(found))
    hot = np.flatnonzero(subscribed & (arrivals > fastest) & (fastest > 0))
    if not hot.size:
        return None
    hottest = int(hot[arrivals[hot].argmax()])
    topic, _ = problem.partition_name(hottest)
    count, speed = (int(problem.partition_counts[problem.topic_of[hottest]]), fastest[hottest])
    room = float(speed) * found.rules.headroom
    wanted = partitions_wanted(problem, hottest, float(arrivals[hottest]), room)
    of_its, remedy = "", "spread its keys"
    if found.estimates.costs.value[hottest] > 1.0:
        of_its, remedy = " of its records", "make these cheaper"
    mine = np.arange(found.looks.partitions) == hottest
    fills, drains = (
        rate(found.outlook.in_records(float(per_s), mine)) for per_s in (arrivals[hottest], speed)
    )
    return Diagnosis(
        "hot partition",
        tuple(found.partition(index) for index in hot.tolist()),
        f"{found.partition(hottest)} fills with {fills}; the fastest member can drain {drains}"
        f"{of_its}: no assignment helps it{_as_known(found, _readers(found))}. Repartition "
        f"{topic} from {count:,} into {wanted:,}, or {remedy}.",
    )


def _drained(found: Basis) -> Float64:
    """Return the rate at which each partition was read in its second fastest step, shape (P,)."""
    commits, looks = found.commits, found.looks
    if len(looks) <= STEPS:
        return np.zeros(looks.partitions)
    per_s = commits.taken * found.estimates.costs.value / looks.seconds[:, None]
    late = np.append(commits.late, True)[looks.owner[-1]]  # nobody, -1, is the last
    return np.where(late, 0.0, np.sort(per_s, axis=0)[-2])


def _overloaded(found: Basis, late: Mask) -> Diagnosis | None:
    """Look at members that share topics by themselves: the room of others is of no use to them."""
    problem, speeds = found.problem, found.speeds
    part = found.estimates.peers.topics[problem.topic_of]
    silent = found.commits.silent[: len(problem.members)]
    read = (part >= 0) & ~np.append(silent, False)[found.owner]  # nobody, -1, is the last
    everybody = _readers(found) & ~silent
    headroom = found.rules.headroom
    for number in np.unique(found.estimates.peers.linked[late]).tolist():
        of_it = everybody & (found.estimates.peers.linked == number)
        mine = read & (part == number)
        loads = found.outlook.arrivals[mine]
        rooms = headroom * speeds.surely_at_most[of_it]
        if not surely_too_much(loads, rooms):
            continue
        arrive, most = float(loads.sum()), float(speeds.surely_at_most[of_it].sum())
        count = int(of_it.sum())
        that_read = f" that {'reads' if count == 1 else 'read'} them"
        members = plural(count, "member") + (that_read if count < everybody.sum() else "")
        whole = ""
        if arrive < headroom * most:
            up_to = loads.max() / speeds.at_most[of_it].max()
            whole = f" in partitions that take up to {up_to:.0%} of a member"
        surely = " at most" if most > float(speeds.per_s[of_it].sum()) else ""
        full = f", of which {headroom:.0%} is planned" if arrive <= most else ""
        return Diagnosis(
            "overloaded",
            (),
            f"{rate(found.outlook.in_records(arrive, mine))} arrive{whole} and the {members} can "
            f"do {rate(found.outlook.in_records(most, mine))}{surely}{full}: no "
            f"assignment keeps every member within that{_as_known(found, of_it)}.",
        )
    return None


def _as_known(found: Basis, members: Mask) -> str:
    """Say that some members, bool of shape (M,), were never at their limit; empty: all were."""
    return "" if found.speeds.measured[members].all() else " as far as is known"


def _readers(found: Basis) -> Mask:
    """Return who reads a topic with a partition, bool of shape (M,)."""
    readers = np.zeros(len(found.problem.members), dtype=bool)
    readers[found.problem.readers] = True
    return readers


def _usual(found: Basis, member: int, readers: Mask) -> float:
    """Return what is usual among a member's peers, records a second; 0 where it has none."""
    peers = found.estimates.peers.of_member(member, readers)
    return median(found.speeds.per_s[peers]) if peers.size else 0.0


def _slow(found: Basis, late: Mask) -> Diagnosis | None:
    speeds = found.speeds
    readers = _readers(found)
    measured = np.flatnonzero(late & speeds.measured).tolist()
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
        doubt = " Or its records take longer: consumers that report their work would tell."
    return Diagnosis(
        "slow member",
        members,
        f"{found.problem.members[slowest]} can do {does} where its peers do {peers_do}; {arrive} "
        f"arrive at its partitions.{doubt}",
    )


def _catching_up(found: Basis, late: Mask) -> Diagnosis | None:
    """Say that all catch up, and about as soon as any assignment could have them do it."""
    outlook, owner = found.outlook, found.owner
    spare = outlook.capacities - outlook.by_member(outlook.arrivals, owner)
    readers, waiting = found.problem.readers, outlook.by_member(outlook.backlog, owner)
    if (spare[readers] <= 0).any():
        return None
    longest = float((waiting[late] / spare[late]).max())
    if longest > EVENLY * float(waiting.sum() / spare[readers].sum()):
        return None
    place = int(outlook.late_s.argmax())
    return Diagnosis(
        "recovering",
        (found.partition(place),),
        f"{found.partition(place)} is {length(float(outlook.late_s[place]))} behind, and every "
        f"member catches up: the last one in {length(longest)}.",
    )


def _unmeasured(found: Basis) -> Diagnosis | None:
    """Say that every member gets more than it has shown, so that nobody is known to have room."""
    readers = _readers(found) & ~found.commits.silent[: len(found.problem.members)]
    used = found.outlook.utilisation(found.owner)[readers]
    if not used.size or used.min() < 1.0:
        return None
    owned = found.owner >= 0
    arrive = found.outlook.in_records(float(found.outlook.arrivals[owned].sum()), owned)
    return Diagnosis(
        "unknown",
        (),
        f"{rate(arrive)} arrive, and every member falls behind: the group is overloaded, unless "
        "they can do more than they have shown. It takes more looks to tell.",
    )


def _spread(found: Basis, late: Mask) -> Diagnosis:
    used = found.outlook.utilisation(found.owner)
    lateness = found.outlook.lateness(found.owner, found.rules.horizon_s)
    worst = int(lateness.argmax())
    readers = np.flatnonzero(_readers(found) & ~found.commits.silent[: used.size])
    lightest = int(readers[used[readers].argmin()]) if readers.size else worst
    return Diagnosis(
        "unbalanced",
        _names(found.problem.members, late),
        f"{found.problem.members[worst]} gets {used[worst]:.0%} of what it can do and is forecast "
        f"{length(lateness[worst])} late in {length(found.rules.horizon_s)}, while "
        f"{found.problem.members[lightest]} gets {used[lightest]:.0%}.",
    )


def _healthy(found: Basis) -> Diagnosis:
    used = found.outlook.utilisation(found.owner)
    lateness = found.outlook.lateness(found.owner, found.rules.horizon_s)
    readers = _readers(found)
    slow = [
        found.problem.members[member]
        for member in np.flatnonzero(found.speeds.measured).tolist()
        if found.speeds.per_s[member] < SLOW * _usual(found, member, readers)
    ]
    worst = float(lateness.max(initial=0.0))
    chance = ", which may be chance" if worst > found.rules.objective_s else ""
    aside = f" {a_few(slow)} {_verb(slow, 'is', 'are')} slow, which does no harm." if slow else ""
    return Diagnosis(
        "healthy",
        (),
        f"The fullest member gets {used.max(initial=0.0):.0%} of what it can do; the worst "
        f"partition is forecast {length(worst)} late in "
        f"{length(found.rules.horizon_s)}{chance}.{aside}",
    )


def _names(members: Sequence[str], chosen: Mask) -> tuple[str, ...]:
    return tuple(members[index] for index in np.flatnonzero(chosen).tolist())


def _verb(names: Sequence[str], single: str, many: str) -> str:
    return single if len(names) == 1 else many

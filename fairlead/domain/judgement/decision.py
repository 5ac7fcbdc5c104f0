"""Whether a group gets a plan, and which: the judgement of one look back over many.

Belongs here: putting rates, commits, capacities, forecast and diagnosis together into one answer,
and comparing candidates by what they avoid and what they cost. Does not: any of the estimates, the
rules of assignment (`assignors`), nor what a policy is (`fairlead.domain.policy`).
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, Literal

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import length, plural, rate
from fairlead.domain.judgement.arrivals import Rates, with_common_change
from fairlead.domain.judgement.candidates import FLAGSHIP, Candidate, candidates, with_figures
from fairlead.domain.judgement.capacities import (
    INTERVALS,
    MORE,
    STEPS,
    Capacity,
    Speeds,
    remembered,
    shown,
    speeds,
)
from fairlead.domain.judgement.commits import Commits, read_commits
from fairlead.domain.judgement.commits_ahead import set_right
from fairlead.domain.judgement.cost_equations import (
    Costs,
    DearPartition,
    Equation,
    dear_for_several,
    equations_of,
    fewest,
    lasting,
    limited_since,
)
from fairlead.domain.judgement.cost_solver import solve
from fairlead.domain.judgement.diagnosis import (
    LOOKS_NEEDED,
    Diagnosis,
    DiagnosisBasis,
    a_few,
    diagnose,
)
from fairlead.domain.judgement.forecast import Forecast, Outlook
from fairlead.domain.judgement.log_retention import retention_of
from fairlead.domain.judgement.looks import Float64, Int32, Looks, Mask
from fairlead.domain.judgement.memory_notes import InvalidNoteError, Noted, note, read_note
from fairlead.domain.judgement.peers import Peers
from fairlead.domain.judgement.racks import RackTraffic, cost_per_day
from fairlead.domain.judgement.reported_costs import reported_costs
from fairlead.domain.judgement.reported_work import MeasuredWork, ReportSeries, reported_work
from fairlead.domain.judgement.rules import Rules
from fairlead.domain.judgement.seeing import HISTORY_S, LEAST_LOOKS, Seen, see
from fairlead.domain.judgement.sizing import Size, size
from fairlead.domain.judgement.weighing import BETTER, CandidateInputs, behind, gain
from fairlead.domain.judgement.work_words import work_sentences

#: Arrivals that have changed matter where they are more than this share of a member's capacity.
CHANGED: Final = 0.1
#: Who comes or goes with no more than this share of all arrivals, and nothing late, is passed over.
MINOR: Final = 0.1
#: What so many members do that were at their limit says enough of the others.
_SEVERAL: Final = 3

#: Commits of the median member that it takes to see what a plan did, where commits are rare.
COMMITS_NEEDED: Final = 2

#: After so many plans lately a group rests for so long, and after each further one twice as long.
AT_ONCE: Final = 20
FIRST_REST_S: Final = 3600.0
LONGEST_REST_S: Final = 7 * 86_400.0
#: Plans that took effect before that count no more.
LATELY_S: Final = 2 * 86_400.0

Outcome = Literal["plan", "no change"]
Choose = Literal["first", "best"]


@dataclass(frozen=True, eq=False)
class Question:
    """All that a judgement may know.

    Parameters
    ----------
    problem
        Partition counts, members with subscriptions, and who owns what now (`Problem.of`): P
        partitions, M members. `weights` are the lags that rules of lag look at; its capacities and
        rates are ignored.
    looks
        One at least, of the same partitions; `looks.members` begins with `problem.members`.
    rules
        Of the policy.
    capacities
        Known from before: what the last answer about the group said.
    forgotten
        Whether there was a memory that made no sense: the evidence says so.
    changes
        When plans took effect, seconds since the epoch, ascending: the last `MOST_PLANS`.
    eager
        Whether every partition stands still at each rebalance, not only those that move.
    record_bytes
        Bytes of a record on average, float64 of shape (P,); NaN, or None: not known.
    reports
        Reports of work in `looks`; None: there are none.
    seen
        What the looks say, where they were seen beside those of others; None: they are seen when
        the question is asked.
    """

    problem: Problem
    looks: Looks
    rules: Rules = field(default_factory=Rules)
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    forgotten: bool = False
    changes: Sequence[float] = ()
    eager: bool = False
    record_bytes: Float64 | None = None
    reports: ReportSeries | None = None
    seen: Seen | None = None

    def with_looks(self, looks: Looks) -> "Question":
        """Return the question with only some of its looks, and their reports."""
        rows = np.searchsorted(self.looks.at, looks.at)
        reports = None if self.reports is None else self.reports.of(rows)
        return replace(self, looks=looks, reports=reports, seen=None)

    @property
    def changed_at(self) -> float | None:
        """When a plan last took effect; None: never."""
        return self.changes[-1] if self.changes else None


def together(questions: Sequence[Question]) -> list[Question]:
    """Return questions whose looks were seen side by side: the answers are the same, and cheaper.

    Where that fails, they are as they were: each question fails by itself, or does not.
    """
    try:
        seen = see([question.looks for question in questions])
    except Exception:  # noqa: BLE001 - one group's data must not fail the others
        return list(questions)
    return [replace(question, seen=its) for question, its in zip(questions, seen, strict=True)]


@dataclass(frozen=True, eq=False)
class Judgement:
    """The answer.

    Parameters
    ----------
    outcome, reason
        Whether there is to be a plan, and why or why not, in words.
    diagnosis
        What is the matter.
    kept
        What becomes of the group as it is.
    candidates
        What each assignor would do, with its forecast; empty where none was asked.
    chosen
        The candidate that is the plan; None without a plan.
    capacities
        What is known now, for the next question.
    costs
        What records take.
    outlook
        The figures of each partition and member that everything rests on.
    size
        How many consumers there are, and how many would do.
    traffic
        Between racks; None: there can be none, or it does not count.
    work
        Reported work of the last hour; None: there is none.
    """

    outcome: Outcome
    reason: str
    diagnosis: Diagnosis
    kept: Forecast
    candidates: tuple[Candidate, ...]
    chosen: Candidate | None
    capacities: Mapping[str, Capacity]
    costs: Costs
    outlook: Outlook
    size: Size
    traffic: RackTraffic | None = None
    work: MeasuredWork | None = None

    @property
    def owner(self) -> Int32 | None:
        """Who owns what as planned, int32 of shape (P,); None without a plan."""
        assignment = None if self.chosen is None else self.chosen.assignment
        return None if assignment is None else assignment.owner

    @property
    def planned(self) -> Forecast | None:
        """What becomes of the plan; None without one."""
        return None if self.chosen is None else self.chosen.forecast

    @property
    def moved(self) -> int:
        """Owned partitions that the plan moves."""
        return 0 if self.chosen is None else self.chosen.moved

    def reported(self, problem: Problem) -> dict[str, Any]:
        """Return the reported work as JSON, by `MeasuredWork.row`; empty if there is none."""
        return {} if self.work is None else self.work.row(problem)

    @property
    def for_racks(self) -> bool:
        """Whether the plan is for traffic between racks alone: nobody is late."""
        return self.traffic is not None and self.diagnosis.name == "healthy" and self.moved > 0


def judge(
    question: Question,
    *,
    assignors: Sequence[str] = (FLAGSHIP,),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    choose: Choose = "first",
    compare: bool = False,
) -> Judgement:
    """Judge a group: what is the matter, and whether a plan is worth its price.

    Parameters
    ----------
    question
        What is known.
    assignors
        Whose candidates may become the plan, in order of preference.
    options
        Assignor name to its options.
    choose
        `first`: the first assignor's candidate, the next one's where that failed; the others are
        for comparison. `best`: the least lateness at the horizon, then the fewest moves, then the
        order of `assignors`.
    compare
        Compute candidates where no plan is called for, too.

    Raises
    ------
    assignors.problem.InvalidProblemError
        An assignor or option is unknown.

    Notes
    -----
    Deterministic. The reasons for no plan are those of `_hold`: nothing can be decided now (nobody
    reads, the group is unknown, it cools down or settles), the group stays within its objective,
    or it catches up as fast as any assignment could.

    ==================  =============  ============  ==========================  ==================
    reason for no plan  lacks owners   racks only    candidates                  a plan, if
    ==================  =============  ============  ==========================  ==================
    no                                               all                         worth it
    yes                 yes                          those that only place; all  it gives an owner
                                                     where there are none        to each partition
    yes                 no             yes           that make nobody late       it saves enough
    yes                 no             no            none                        never
    ==================  =============  ============  ==========================  ==================

    Where none is worth it, a member may be faster than is assumed: a plan tries that (`_tried`).

    The columns are `_hold`, `State.places` and `State.nears`. Worth it (`_worth`) is a candidate
    that brings the forecast within the objective, or makes it better by `BETTER`, if it makes
    partitions less late, in all, than they stand still for it.

    Examples
    --------
    Two members that nobody knows yet, by a single look: there is a reason for no plan. A partition
    without an owner gets one all the same.

    >>> from assignors.problem import Member
    >>> def ask(owned_by_b):
    ...     owner = np.array([[0, 1 if owned_by_b else -1]], np.int32)
    ...     members = {
    ...         "a": Member(["t"], owned={"t": [0]}),
    ...         "b": Member(["t"], owned={"t": owned_by_b}),
    ...     }
    ...     none = np.zeros((1, 2), np.int64)
    ...     looks = Looks(np.zeros(1), none, none, none, ("a", "b"), owner)
    ...     return judge(Question(Problem.of({"t": 2}, members, {"t": [0, 0]}), looks))
    >>> answer = ask([1])
    >>> answer.outcome, answer.reason[:35]
    ('no change', 'unknown: There is 1 look at the gro')
    >>> answer = ask([])
    >>> answer.outcome, answer.owner.tolist(), answer.moved
    ('plan', [0, 1], 0)
    """
    state = _state(question)
    hold = _hold(state)
    offered: tuple[Candidate, ...] = ()
    if hold is not None and state.places:
        # Whoever lacks an owner gets one; all else stays as it is, for the reason there is.
        placing = replace(state.inputs, rules=replace(question.rules, max_moves=0))
        offered = candidates(placing, assignors, options or {})
        if any(candidate.forecast is not None and not candidate.moved for candidate in offered):
            return _judgement(state, offered, *_choice(state, offered, choose, limit=0))
    calm = hold is not None and not state.places and state.nears
    if hold is None or compare or state.places or calm:
        offered = candidates(replace(state.inputs, calm=calm), assignors, options or {})
    if calm:
        nearer, why = _nearer(state, offered, choose)
        return _judgement(state, offered, nearer, why if nearer else f"{hold}; {why}")
    free = hold is None or state.places
    chosen, reason = _choice(state, offered, choose) if free else (None, hold)
    if hold is None and chosen is None:
        mine = assignors if choose == "best" else assignors[:1]
        tried = _tried(state, offered, options or {}) if FLAGSHIP in mine else None
        if tried is not None:
            return tried
    return _judgement(state, offered, chosen, reason or "")


def _judgement(
    state: "State", offered: tuple[Candidate, ...], chosen: Candidate | None, reason: str
) -> Judgement:
    return Judgement(
        outcome="no change" if chosen is None else "plan",
        reason=reason,
        diagnosis=state.diagnosis,
        kept=state.kept,
        candidates=offered,
        chosen=chosen,
        capacities=state.known,
        costs=state.costs,
        outlook=state.outlook,
        size=state.size,
        traffic=state.traffic,
        work=state.work,
    )


def _state(question: Question) -> "State":
    """Read a question; suppose a dear partition where a group is overloaded only without it."""
    state = State(question)
    if state.diagnosis.name != "overloaded":
        return state
    dear = dear_for_several(state.equations, state.costs)
    if dear is None:
        return state
    supposed = State(replace(question, seen=state.seen), dear)
    return state if supposed.diagnosis.name == "overloaded" else supposed


class State:
    """What a question comes to before anything is decided; each figure computed when asked for.

    What `dear` says is supposed: its costs, and that no member does less.
    """

    def __init__(self, question: Question, dear: DearPartition | None = None) -> None:
        self.question, self.dear = question, dear
        #: How reasons begin that rest on what is supposed of a member (`supposing`); else empty.
        self.supposed = ""
        self.seen = question.seen or see([question.looks])[0]
        self.looks, self.recent = self.seen.looks, self.seen.recent

    @cached_property
    def rates(self) -> Rates:
        """Arrivals by partition; those of a new partition are like its topic's others.

        Nothing arrives for the group in a topic that nobody reads, where something else is read.
        """
        found, problem = self.seen.rates, self.question.problem
        if self.work is not None:
            found = with_common_change(found, self.recent, problem.topic_of)
        if self.unread.any():
            found = replace(found, per_s=np.where(self.unread, 0.0, found.per_s))
        missing = ~found.known
        if not missing.any() or missing.all():
            return found
        topics = len(problem.topics)
        total = np.bincount(problem.topic_of[found.known], found.per_s[found.known], topics)
        counted = np.bincount(problem.topic_of[found.known], minlength=topics)
        mean = (total / np.maximum(counted, 1))[problem.topic_of]
        return Rates(
            np.where(missing, mean, found.per_s), found.deviation, found.known, found.seconds
        )

    @cached_property
    def unread(self) -> Mask:
        """Partitions of topics that nobody reads, bool (P,); none where nothing is read."""
        assignable = self.question.problem.assignable
        return ~assignable & assignable.any()

    @cached_property
    def commits(self) -> Commits:
        """What commits say, with what was consumed in records of the usual kind."""
        found = self._records
        return found if self.costs.equal else found.in_work(self.recent, self.costs.value)

    @cached_property
    def _records(self) -> Commits:
        return set_right(self.recent, self.seen.commits)

    @cached_property
    def _notes(self) -> tuple[dict[str, Noted], bool]:
        """What is noted of members, and whether some note made no sense."""
        notes, wrong = dict[str, Noted](), self.question.forgotten
        for name, capacity in self.question.capacities.items():
            try:
                notes[name] = read_note(capacity.note, name, self.question.problem, self.recent.now)
            except InvalidNoteError:
                wrong = True
        return notes, wrong

    @cached_property
    def equations(self) -> list[Equation]:
        """What members read while they were at their limit, in the last day."""
        before = [equation for noted in self._notes[0].values() for equation in noted.equations]
        objective_s = self.question.rules.objective_s
        found = equations_of(self.recent, self._records, objective_s, bounds=bool(before))
        return lasting(before, found, float(self.recent.at[0]))

    @cached_property
    def limited(self) -> dict[str, list[Equation]]:
        """The stretches of these looks in which members were at their limit, by name and time."""
        limited: dict[str, list[Equation]] = {}
        for equation in self.equations:
            if equation.limited and equation.at > self.recent.at[0]:
                limited.setdefault(equation.member, []).append(equation)
        return limited

    @cached_property
    def limited_since(self) -> dict[str, float]:
        """Since when each of these members has been at its limit, seconds since the epoch."""
        began = self.recent.at[0]
        before = {
            name: noted.limited_since
            for name, noted in self._notes[0].items()
            if any(equation.limited and equation.at > began for equation in noted.equations)
        }
        return {name: limited_since(mine, before.get(name)) for name, mine in self.limited.items()}

    @cached_property
    def work(self) -> MeasuredWork | None:
        """Reported work of the last hour; None: there is none."""
        reports, looks = self.question.reports, self.question.looks
        if reports is None or len(looks) == 1:
            return None
        recent = looks.last(HISTORY_S, LEAST_LOOKS)
        return reported_work(reports.of(slice(len(looks) - len(recent), None)), recent)

    @cached_property
    def inferred(self) -> list[Equation]:
        """Equations of members that do not report."""
        if self.work is None:
            return self.equations
        reporting = {self.looks.members[place] for place in self.work.member[self.work.known]}
        return [its for its in self.equations if its.member not in reporting]

    @cached_property
    def cost_equations(self) -> list[Equation]:
        """Equations from reports, and inferred equations of other members."""
        reported = [] if self.work is None else self.work.equations(self.looks.members)
        return [*self.inferred, *reported]

    @cached_property
    def costs(self) -> Costs:
        """What a record of each partition takes."""
        if self.dear is not None:
            return self.dear.costs
        topic_of, rates = self.question.problem.topic_of, self.rates.per_s
        if self.work is not None and not self.inferred:
            costs = reported_costs(self.work, topic_of, rates)
            if costs is not None:
                return costs
        return solve(self.cost_equations, topic_of, rates)

    @cached_property
    def capacities(self) -> dict[str, Capacity]:
        """What is known of members' speeds, this look included; in records of the usual kind."""
        looks, notes = self.looks, self._notes[0]
        found = shown(self.recent, self.commits) | self._reported_capacities()
        before = {
            name: replace(capacity, mix=notes.get(name, Noted()).mix)
            for name, capacity in self.question.capacities.items()
        }
        if len(looks) > len(self.recent) + STEPS and not before:
            # Nothing is remembered: what was seen before the last hour is all there is.
            commits = read_commits(looks).in_work(looks, self.costs.value)
            found = remembered(shown(looks, commits), found, looks.now)
        return remembered(self._at_cost(before, divide=False), found, looks.now)

    def _reported_capacities(self) -> dict[str, Capacity]:
        """Return capacities from reports, in usual records a second."""
        if self.work is None:
            return {}
        per_s = self.work.speeds(self.costs.value)
        members, now = self.question.looks.members, self.recent.now
        return {
            members[place]: Capacity(float(per_s[place]), measured=True, at=now)
            for place in np.flatnonzero(np.isfinite(per_s)).tolist()
        }

    @cached_property
    def known(self) -> dict[str, Capacity]:
        """What is known of members' speeds, in records of the kind that each read, with notes."""
        found = self._at_cost(self.capacities, divide=True)
        if not any(equation.limited for equation in self.inferred):
            return found
        kept: dict[str, list[Equation]] = {}
        for limiting in fewest(self.costs.equations):
            kept.setdefault(limiting.member, []).append(limiting)
        problem, since = self.question.problem, self.limited_since
        return {
            name: replace(
                capacity,
                note=note(Noted(capacity.mix, kept.get(name, []), since.get(name)), problem),
            )
            for name, capacity in found.items()
        }

    def _at_cost(self, capacities: Mapping[str, Capacity], *, divide: bool) -> dict[str, Capacity]:
        """Count speeds in work, or in records again, by what each member read."""
        if self.costs.equal:
            return dict(capacities)
        problem, found = self.question.problem, {}
        place = {name: index for index, name in enumerate(problem.members)}
        for name, capacity in capacities.items():
            mix = capacity.mix
            if mix is None:  # what it reads now
                mine = np.flatnonzero(problem.owner == place.get(name, problem.owner.size))
                mix = mine, self.rates.per_s[mine]
            cost = self.costs.of(*mix)
            per_s = capacity.records_per_s / cost if divide else capacity.records_per_s * cost
            found[name] = replace(capacity, records_per_s=per_s)
        return found

    @cached_property
    def speeds(self) -> Speeds:
        """What is assumed of the M members."""
        problem, count = self.question.problem, len(self.question.problem.members)
        owned = problem.owner >= 0
        owner = problem.owner[owned]
        work = self.rates.per_s * self.costs.value
        arrivals: Float64 = np.bincount(owner, work[owned], count).astype(np.float64)
        at_rest = np.bincount(owner, self.commits.backlog[owned] > 0, count) == 0
        known = {**self.capacities, **self._replaying()}
        found = speeds(problem.members, known, arrivals, at_rest, self.recent.now, peers=self.peers)
        least = 0.0 if self.dear is None else self.dear.per_s
        # A silent member is given nothing: nobody knows whether it reads.
        return Speeds(
            np.where(self.silent, 0.0, np.maximum(found.per_s, least)),
            found.measured & ~self.silent,
            np.where(self.silent, 0.0, np.maximum(found.at_most, least)),
            np.where(self.silent, 0.0, np.maximum(found.surely_at_most, least)),
        )

    def _replaying(self) -> dict[str, Capacity]:
        """Return how fast members are for now that replay old records, and until they are through.

        What they do with these is not remembered.
        """
        now = np.flatnonzero(self.commits.replayed[-1:].any(axis=0))
        if not now.size:
            return {}
        as_seen = replace(self.commits, replayed=np.zeros_like(self.commits.replayed))
        found = shown(self.recent, as_seen)
        names = [self.looks.members[member] for member in now.tolist()]
        return {name: found[name] for name in names if name in found}

    @cached_property
    def peers(self) -> Peers:
        """Which members read the same topics."""
        return Peers.of(self.question.problem)

    @cached_property
    def silent(self) -> Mask:
        """Members that commit nothing, and of which nobody knows what they read, bool (M,)."""
        return self.commits.silent[: len(self.question.problem.members)]

    @cached_property
    def held(self) -> Mask:
        """Partitions that stay where they are, bool of shape (P,)."""
        owner = self.question.problem.owner  # -1, nobody, is the last
        held: Mask = (
            self.commits.stuck | self.commits.crawling | np.append(self.silent, False)[owner]
        )
        return held

    @cached_property
    def outlook(self) -> Outlook:
        """Arrivals, backlog and lateness by partition, capacities by member."""
        backlog: Float64 = np.where(self.held | self.unread, 0.0, self.commits.backlog)
        # A throttled partition takes of its owner what is read of it, and no more.
        crawling, read = self.commits.crawling, self.commits.read
        costs = self.costs.value
        return Outlook(
            arrivals=np.where(crawling, read, self.rates.per_s) * costs,
            deviation=self.rates.deviation * costs,
            backlog=backlog * costs,
            late_s=self.looks.time_lag(backlog, self.rates.per_s),
            costs=None if self.costs.equal else costs,
            capacities=self.speeds.per_s,
            unread=self.held if self.held.any() else None,
            retention=retention_of(self.looks, self.rates.per_s),
            objective_s=self.question.rules.objective_s,
        )

    @cached_property
    def kept(self) -> Forecast:
        """What becomes of the group as it is."""
        rules = self.question.rules
        return self.outlook.told(self.question.problem.owner, rules.horizon_s)

    @cached_property
    def traffic(self) -> RackTraffic | None:
        """What crosses between racks; None: nothing can, or it does not count."""
        question = self.question
        if not question.rules.racks:
            return None
        return RackTraffic.of(question.problem, self.rates.per_s, question.record_bytes)

    @cached_property
    def nears(self) -> bool:
        """Whether a healthy group may have a plan for its traffic between racks alone."""
        if self.traffic is None or self.diagnosis.name != "healthy" or self.orphans:
            return False
        if self.kept.late_s > self.question.rules.objective_s or _blocked(self) is not None:
            return False
        return _saves_enough(self, self.traffic, self.traffic.between(self.question.problem.owner))

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What is the matter."""
        question = self.question
        found = diagnose(
            DiagnosisBasis(
                question.problem,
                self.recent,
                self.commits,
                self.speeds,
                self.outlook,
                question.problem.owner,
                question.rules,
                self.peers,
                self.rates.per_s,
                self.costs,
                self.late,
                self.limited,
                self.limited_since,
            )
        )
        said, asks = [found.evidence], found.asks
        if self.dear is not None:
            name = "{}-{}".format(*question.problem.partition_name(self.dear.partition))
            said.append(f"This supposes that {name} is expensive, and no member slow.")
            asks = f"whether {name} is expensive"
        if self.work is not None:
            said += work_sentences(self.work, self.costs, question.problem, found.names)
        elif found.name != "healthy" and not self.costs.equal:
            said.append(self.costs.said(question.problem))
        if self.work is not None and self.work.ignored:
            said.append(f"{plural(self.work.ignored, 'impossible report')} ignored.")
        if self._notes[1]:
            said.append("What was remembered makes no sense and is ignored.")
        return replace(found, evidence=" ".join(said), asks=asks)

    @cached_property
    def size(self) -> Size:
        """How many consumers there are, and how many would do."""
        question = self.question
        return size(
            question.problem,
            self.outlook,
            self.peers,
            question.rules.headroom,
            late=self.kept.late_s > question.rules.objective_s,
            known=self.diagnosis.name != "unknown",
        )

    @cached_property
    def orphans(self) -> int:
        """Partitions that have subscribers and no owner."""
        problem = self.question.problem
        return int((problem.assignable & (problem.owner < 0)).sum())

    @cached_property
    def late(self) -> Mask:
        """Members that will be too late, even if less arrives than is estimated, bool (M,)."""
        rules = self.question.rules
        sure = self.outlook.sure_lateness(self.question.problem.owner, rules.horizon_s)
        return sure > rules.objective_s

    @cached_property
    def catches_up(self) -> bool:
        """Whether nobody is late for long: all that waits is read as soon as it could be."""
        return not behind(self.inputs).any()

    def supposing(self, member: int) -> "State":
        """Return the same, but that a member can do `MORE` times what is assumed of it."""
        supposed, per_s = copy(self), self.speeds.per_s.copy()
        per_s[member] *= MORE
        for name in ("outlook", "inputs", "kept", "late", "catches_up"):
            vars(supposed).pop(name, None)
        supposed.speeds = replace(
            self.speeds,
            per_s=per_s,
            at_most=np.maximum(per_s, self.speeds.at_most),
            surely_at_most=np.maximum(per_s, self.speeds.surely_at_most),
        )
        name = self.question.problem.members[member]
        asks = f"{self.diagnosis.asks} and " if self.diagnosis.asks else ""
        mine = self.question.problem.owner == member
        does = self.outlook.in_records(float(self.speeds.per_s[member]), mine)
        asks += f"whether {name} can do more than {rate(does)}"
        supposed.diagnosis = replace(self.diagnosis, asks=asks)
        supposed.supposed = f"if {name} is faster than is assumed, "
        return supposed

    @property
    def places(self) -> bool:
        """Whether some partitions are to get an owner; none where nobody knows of any owner."""
        return 0 < self.orphans < int(self.question.problem.assignable.sum())

    @cached_property
    def inputs(self) -> CandidateInputs:
        """What candidates are computed from."""
        question = self.question
        return CandidateInputs(
            question.problem,
            self.outlook,
            self.held,
            question.rules,
            self.peers,
            self.speeds.at_most,
            self.traffic,
        )


def _tried(
    state: State, offered: Sequence[Candidate], options: Mapping[str, Mapping[str, Any]]
) -> Judgement | None:
    """Return a plan that helps if a member is faster than is assumed; None: there is none.

    A member has more than it can do, and with the plan none has that shares topics with it: where
    there is too much for all of these, nothing is tried.
    """
    linked, rules = state.peers.linked, state.question.rules
    for member in _untried(state):
        supposed = state.supposing(member)
        chosen, reason = _choice(
            supposed, candidates(supposed.inputs, [FLAGSHIP], options), choose="first"
        )
        if chosen is None or chosen.assignment is None or not chosen.moved:
            continue
        used = supposed.outlook.utilisation(chosen.assignment.owner)
        if used[linked == linked[member]].max() > 1.0:
            continue
        # What is told of the plan is what is known: only the reason supposes anything.
        known = state.outlook.told(chosen.assignment.owner, rules.horizon_s)
        chosen = with_figures(state.inputs, FLAGSHIP, chosen.assignment, known)
        offered = tuple(chosen if each.assignor == FLAGSHIP else each for each in offered)
        judgement = _judgement(state, offered, chosen, reason)
        return replace(judgement, diagnosis=supposed.diagnosis)
    return None


def _untried(state: State) -> list[int]:
    """Return members that may well be faster than is assumed, those with most room then first.

    One of each subscription, a few at most: it was never at its limit, and reads a topic of whoever
    is late and has more than it can do. None of those of whose peers several were: these say what
    is to be expected of the others.
    """
    problem, rules, linked = state.question.problem, state.question.rules, state.peers.linked
    speeds, outlook, owner = state.speeds, state.outlook, problem.owner
    behind, reads = np.zeros((2, len(problem.members)), dtype=bool)
    behind[owner[(owner >= 0) & (outlook.backlog > 0)]] = True
    behind |= outlook.lateness(owner, rules.horizon_s) > rules.objective_s
    full = np.append(state.late & (outlook.utilisation(owner) > 1.0), False)  # nobody is the last
    for topic in np.unique(problem.topic_of[full[owner]]).tolist():
        reads[problem.subscribers_of(topic)] = True
    told = np.bincount(linked, speeds.measured)[linked] >= _SEVERAL
    untried = np.flatnonzero(reads & ~told & ~speeds.measured & ~state.silent & ~behind)
    room = MORE * speeds.per_s - outlook.by_member(outlook.arrivals, owner)
    untried = untried[np.argsort(-room[untried], kind="stable")]
    _, first = np.unique(state.peers.alike[untried], return_index=True)
    most: list[int] = untried[np.sort(first)][:_SEVERAL].tolist()
    return most


def _hold(state: State) -> str | None:
    """Say why there is to be no plan, whatever candidates there are; None: there may be one."""
    diagnosis, blocked = state.diagnosis, _blocked(state)
    if blocked is not None:
        return blocked
    if not state.late.any() or state.catches_up:
        return f"{diagnosis.name}: {diagnosis.evidence}"
    return None


def _blocked(state: State) -> str | None:
    """Say why nothing can be decided now, however the group is; None: something can."""
    problem, diagnosis = state.question.problem, state.diagnosis
    if not problem.members or not problem.assignable.any():
        return diagnosis.evidence
    if diagnosis.name == "unknown":
        return f"unknown: {diagnosis.evidence}"
    return _waits(state) or _settles(state)


def _waits(state: State) -> str | None:
    """Say that the last plan's effect cannot be seen yet; None: it can."""
    changed_at, rules = state.question.changed_at, state.question.rules
    if changed_at is None:
        return None
    now = state.question.looks.now
    if rules.cooldown_s is not None and now < changed_at + rules.cooldown_s:
        left = length(changed_at + rules.cooldown_s - now)
        return f"the last plan took effect {length(now - changed_at)} ago: cooldown for {left} more"
    plans = [at for at in state.question.changes if at > now - LATELY_S]
    # The rest that so many plans call for ends early where the first of them are too old by then.
    rests_until = min(
        max(changed_at + doubled_s(FIRST_REST_S, len(plans) - gone - AT_ONCE + 1), since)
        for gone, since in enumerate([changed_at, *(at + LATELY_S for at in plans)])
    )
    since = int((state.recent.at > changed_at + rules.pause_s).sum())
    shows_at = changed_at + rules.pause_s + _commits_s(state)
    seen = since >= LOOKS_NEEDED and now >= max(rests_until, shows_at)
    if seen or _changed_since(state, changed_at):
        return None
    if now < rests_until:
        return (
            f"{len(plans)} plans took effect within {length(now - plans[0])}: the group rests for "
            f"{length(rests_until - now)} more"
        )
    if since >= LOOKS_NEEDED:
        return (
            f"the last plan took effect {length(now - changed_at)} ago: members commit so seldom "
            f"that it takes {length(shows_at - now)} more to see what it did"
        )
    return (
        f"the last plan took effect {length(max(now - changed_at, 0.0))} ago: {since} of the "
        f"{LOOKS_NEEDED} looks are there that it takes to see what it did"
    )


def _commits_s(state: State) -> float:
    """Return how long commits of the median member take to show what a plan did, in seconds.

    `COMMITS_NEEDED`, or as many stretches as tell how fast it is. Not of `usual_interval_s`, the
    longest: a member that commits seldom would hold up all others.
    """
    commits = state.commits
    known = np.isfinite(commits.interval_s)
    if not known.any():
        return 0.0
    interval_s, held_s = np.median(
        [commits.interval_s[known], commits.held_back_s[known]], axis=1
    ).tolist()
    return COMMITS_NEEDED * float(max(interval_s, INTERVALS * held_s))


def doubled_s(first_s: float, times: int) -> float:
    """Return a rest that is doubled each time, `LONGEST_REST_S` at most; none before the first.

    Examples
    --------
    >>> [doubled_s(3600.0, times) / 3600 for times in (0, 1, 2, 3, 20)]
    [0.0, 1.0, 2.0, 4.0, 168.0]
    """
    return min(first_s * 2.0 ** (times - 1), LONGEST_REST_S) if times > 0 else 0.0


def _changed_since(state: State, changed_at: float) -> bool:
    """Whether what makes members late is what arrives since the last plan, not what it did.

    Then there is nothing to wait for: that rate is another one already.
    """
    problem, rules = state.question.problem, state.question.rules
    late = state.outlook.lateness(problem.owner, rules.horizon_s) > rules.objective_s
    theirs = (problem.owner >= 0) & late[problem.owner]
    newer = state.rates.seconds <= state.recent.now - changed_at
    changed = theirs & newer & (state.rates.seconds < state.recent.now - state.recent.at[0])
    count = late.size
    owner = problem.owner[changed]
    raised = np.bincount(owner, state.rates.per_s[changed], count)
    return bool((raised > CHANGED * state.outlook.capacities)[late].any())


def _settles(state: State) -> str | None:
    """Say that members have come or gone too recently to see what that did; None: they have not.

    Who owns something now and did not, or the other way round. Where that was a plan's doing it
    says nothing of who is there. Nor does it matter who owns little, and nothing that is late: in a
    large group somebody comes or goes all the time.
    """
    looks, changed_at = state.recent, state.question.changed_at
    members = len(state.question.problem.members)
    for back in range(2, min(LOOKS_NEEDED, len(looks)) + 1):
        before = looks.owner[-back]
        if (before < 0).all():
            continue  # the coordinator did not say who owned what
        changed = _owners(looks.owner[-1]) ^ _owners(before)
        if changed_at is not None and changed_at >= looks.at[-back]:
            changed = {member for member in changed if member >= members}
        if changed and _matters(state, before, sorted(changed)):
            names = [looks.members[member] for member in sorted(changed)]
            ago = length(looks.now - looks.at[-back])
            return (
                f"{a_few(names)} came or went within {ago}: it takes {LOOKS_NEEDED} looks to see "
                "what that did"
            )
    return None


def _matters(state: State, before: Int32, changed: Sequence[int]) -> bool:
    """Whether members that came or went own, or owned, much of what arrives, or what is late."""
    owner, rules = state.question.problem.owner, state.question.rules
    touched = np.isin(before, changed) | np.isin(owner, changed)
    arrivals = state.rates.per_s
    if arrivals[touched].sum() > MINOR * arrivals.sum() or not arrivals.any():
        return True
    late = state.outlook.lateness(owner, rules.horizon_s) > rules.objective_s
    return bool(late[owner[touched & (owner >= 0)]].any())


def _owners(owner: Int32) -> set[int]:
    return set(owner[owner >= 0].tolist())


def _choice(
    state: State, offered: Sequence[Candidate], choose: Choose, limit: int | None = None
) -> tuple[Candidate | None, str]:
    """Choose between candidates, and hold the one against what is."""
    usable = [candidate for candidate in offered if candidate.forecast is not None]
    if not usable:
        errors = "; ".join(f"{candidate.assignor}: {candidate.error}" for candidate in offered)
        return None, f"every assignor failed: {errors or 'none was asked'}"
    limit = state.question.rules.max_moves if limit is None else limit
    usable = [candidate for candidate in usable if limit is None or candidate.moved <= limit]
    if not usable:
        return None, f"every candidate moves more than the {limit:,} partitions that a plan may"
    best = min(usable, key=partial(_burden, state)) if choose == "best" else usable[0]
    worth, reason = _worth(state, best)
    asked = _asked(state) if worth and best.moved else ""
    return (best if worth else None), f"{best.assignor}: {reason}{asked}"


def _asked(state: State) -> str:
    """Say which question a plan answers besides, and when; empty: there is none."""
    if not state.diagnosis.asks:
        return ""
    seen_s = state.question.rules.pause_s
    seen_s += max(LOOKS_NEEDED * state.looks.step, _commits_s(state))
    return f"; {length(seen_s)} after the group follows it, it tells {state.diagnosis.asks}"


def _burden(state: State, candidate: Candidate) -> tuple[float, float, float, int]:
    """Return what is the less the better; where racks count, objectives that are met are equal."""
    forecast, assignment = candidate.forecast, candidate.assignment
    assert forecast is not None  # noqa: S101 - candidates without one have been passed over
    assert assignment is not None  # noqa: S101 - as above
    late_s, far = forecast.late_s, 0.0
    if state.traffic is not None:
        late_s = max(late_s, state.question.rules.objective_s)
        far = round(state.traffic.share(assignment.owner), 2)
    return late_s, far, round(forecast.utilisation, 2), candidate.moved


def _nearer(
    state: State, offered: Sequence[Candidate], choose: Choose
) -> tuple[Candidate | None, str]:
    """Choose a plan that keeps a healthy group's traffic in racks, and say what it saves."""
    usable = [candidate for candidate in offered if candidate.assignment is not None]
    mine = usable[:1] if choose == "first" else usable
    nearer = next((candidate for candidate in mine if candidate.assignor == FLAGSHIP), None)
    traffic, rules = state.traffic, state.question.rules
    if nearer is None or nearer.assignment is None or traffic is None:
        return None, f"only {FLAGSHIP} plans for racks alone"
    before, after = state.question.problem.owner, nearer.assignment.owner
    what = traffic.said(before, after, rules.price_per_gb)
    if not nearer.moved:
        return None, f"no assignment keeps more in its rack, and nobody late; {what}"
    if rules.max_moves is not None and nearer.moved > rules.max_moves:
        return None, f"a plan may move {rules.max_moves:,} partitions; {what}"
    if not _saves_enough(state, traffic, traffic.between(before) - traffic.between(after)):
        return None, f"not worth {nearer.moved:,} moves; {what}"
    return nearer, f"{nearer.assignor}: {what}"


def _saves_enough(state: State, traffic: RackTraffic, per_s: float) -> bool:
    """Whether so much less between racks is worth a plan: by its price, else by its share."""
    rules, total = state.question.rules, float(traffic.per_s.sum())
    saved = cost_per_day(traffic.daily_gb(per_s), rules.price_per_gb)
    if saved is not None:
        return saved > 0 and saved >= rules.least_saving_per_day
    return total > 0 and per_s >= BETTER * total


def _worth(state: State, candidate: Candidate) -> tuple[bool, str]:
    """Whether a candidate is worth its price, and what it comes to in words."""
    rules, kept = state.question.rules, state.kept
    problem, planned = state.question.problem, candidate.forecast
    if planned is None or candidate.assignment is None:
        return False, candidate.error or "failed"
    owner = candidate.assignment.owner
    what = (
        f"{state.supposed}late in {length(rules.horizon_s)}: {length(kept.late_s)} as it is, "
        f"{length(planned.late_s)} as planned; fullest member {kept.utilisation:.0%}, then "
        f"{planned.utilisation:.0%}"
    )
    if state.traffic is not None:
        what += f"; {state.traffic.said(problem.owner, owner, rules.price_per_gb)}"
    if state.orphans:
        placed = "1 partition" if state.orphans == 1 else f"{state.orphans:,} partitions"
        return True, f"{placed} without an owner get one; {what}"
    if not candidate.moved:
        known = "" if state.speeds.measured.all() else " as far as is known"
        return False, f"no assignment is better{known} ({state.diagnosis.name}); {what}"
    found = gain(state.inputs, owner)
    if planned.late_s > (1.0 - BETTER) * kept.late_s:
        # The latest is not whom the plan helps.
        then, now = length(found.late_s), length(found.planned_s)
        what += f"; the {found.members} members that it changes: {then} as it is, {now} as planned"
    if found.slight:
        return False, f"hardly better ({state.diagnosis.name}); {what}"
    still = int((owner >= 0).sum()) if state.question.eager else candidate.moved
    price = still * rules.pause_s
    if found.avoided_s <= price:
        return False, (
            f"not worth it: {length(found.avoided_s)} of lateness avoided, {length(price)} of "
            f"standing still, summed over partitions; {what}"
        )
    return True, what

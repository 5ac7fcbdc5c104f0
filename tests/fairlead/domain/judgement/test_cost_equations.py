"""What records take: found from what members read at their limit, remembered, and decided by."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from assignors.problem import Member, Problem
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.loop import run
from benchmarks.simulation.planner import Planner
from benchmarks.simulation.registry import NEVER_PLANNED, simulate
from benchmarks.simulation.run_figures import RunFigures
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.judgement.capacities import DAY_S, Capacity
from fairlead.domain.judgement.commits import read_commits
from fairlead.domain.judgement.cost_equations import (
    Costs,
    Equation,
    dear_for_several,
    equations_of,
    fewest,
    limited_since,
    suspect,
)
from fairlead.domain.judgement.cost_solver import solve
from fairlead.domain.judgement.decision import Question, State
from fairlead.domain.judgement.lines import answer_question
from fairlead.domain.judgement.looks import Looks
from fairlead.domain.judgement.memory_notes import (
    LENGTH,
    LENGTH_BY_PARTITION,
    InvalidNoteError,
    Noted,
    note,
    read_note,
)
from fairlead.domain.judgement.rules import Rules
from fairlead.simulation.controllers import Moment
from fairlead.simulation.world import Int32
from tests.fairlead.domain.judgement.questions import behind, line_of, looks_at, question, skewed
from tests.lengths import form

NOW = 1e9
PROBLEM = Problem.of({"t": 6, "u": 4}, {"a": ["t", "u"], "b": ["t", "u"]})
TEN = np.arange(10)


def equations(costs: np.ndarray, speeds: dict[str, float], seed: int = 0) -> list[Equation]:
    """Return what members at their limit read of five partitions each, in ever other shares."""
    rng = np.random.default_rng(seed)
    found = []
    for number, (name, speed) in enumerate(speeds.items()):
        mine = TEN[5 * number : 5 * number + 5]
        for stretch in range(20):
            shares = rng.dirichlet(np.full(5, 0.5)) + 0.001
            records = shares * 120.0 * speed / (shares * costs[mine]).sum()
            at = NOW - 3600.0 + 120.0 * stretch
            found.append(Equation(name, at, 120.0, limited=True, partitions=mine, records=records))
    return found


def costs_of(found: list[Equation]) -> Costs:
    """Estimate what records of ten partitions take that get the same."""
    return solve(found, np.zeros(10, np.int32), np.ones(10))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dear", [3.0, 8.0, 30.0])
def test_a_dear_partition_is_found_where_shares_differ(dear: float, seed: int) -> None:
    """Its cost to a tenth; and the others are usual, whatever members can do."""
    truth = np.ones(10)
    truth[3] = dear
    costs = costs_of(equations(truth, {"a": 100.0, "b": 60.0}, seed))
    assert costs.value[3] == pytest.approx(dear, rel=0.1)
    assert (np.delete(costs.value, 3) == 1.0).all()
    assert not costs.equal


@pytest.mark.parametrize("speeds", [{"a": 100.0, "b": 100.0}, {"a": 100.0, "b": 25.0}])
def test_equal_records_are_not_called_dear(speeds: dict[str, float]) -> None:
    """A slow member is no reason to believe that its records take longer."""
    assert costs_of(equations(np.ones(10), speeds)).equal


def test_what_equations_leave_open_is_usual() -> None:
    """In ever the same shares nothing tells the partitions of a slow member apart."""
    same = [
        equation._replace(records=np.full(5, 600.0))
        for equation in equations(np.ones(10), {"a": 1.0})
    ]
    fast = [
        equation._replace(records=np.full(5, 2400.0), member="b", partitions=TEN[5:])
        for equation in same
    ]
    costs = costs_of(same + fast)
    assert costs.equal
    assert np.isnan(costs.known()).all()


def test_without_a_limit_there_is_nothing_to_find() -> None:
    """Bounds alone say nothing."""
    idle = [equation._replace(limited=False) for equation in equations(np.ones(10), {"a": 1.0})]
    assert costs_of(idle).equal
    assert costs_of([]).equal


def test_what_was_read_longest_ago_and_is_alike_is_forgotten_first() -> None:
    """A few equations of a member stay, in order, and the newest one is among them."""
    mine = equations(np.ones(10), {"a": 100.0})
    alike = [equation._replace(at=equation.at - 7200.0, records=np.ones(5)) for equation in mine]
    left = fewest(alike + mine)
    assert len(left) == 6
    assert left == sorted(left, key=lambda equation: equation.at)
    assert left[-1] is mine[-1]
    assert sum(equation in alike for equation in left) <= 1


def test_what_others_read_anew_does_not_push_out_what_is_known() -> None:
    """A dear partition that was told apart long ago, and hundreds of newer stretches of others."""
    costs = np.where(TEN == 2, 8.0, 1.0)
    old = [entry._replace(at=entry.at - 7200.0) for entry in equations(costs, {"a": 100.0})]
    new = [
        entry._replace(member=f"{entry.member}{number}")
        for number in range(30)
        for entry in equations(costs, {"c": 100.0, "d": 100.0}, seed=number)
        if entry.partitions[0] == 5
    ]
    found = costs_of(fewest(old) + new)
    assert len(new) > 300
    assert found.value[2] == pytest.approx(8.0, rel=0.2)
    assert (found.value[[0, 1, 3, 4]] == 1.0).all()


def test_what_is_known_stays_known_while_nothing_moves() -> None:
    """Members that stay late read ever the same shares: their speeds alone would explain these."""
    costs = np.where(TEN % 5 == 2, 8.0, 1.0)
    speeds = {"a": 100.0, "b": 100.0}
    found = costs_of(fewest(equations(costs, speeds)))
    assert (found.value[[2, 7]] > 4.0).all()
    same = [
        entry._replace(at=entry.at + DAY_S, records=120.0 * 100.0 / costs[:5].sum() * np.ones(5))
        for entry in equations(costs, speeds)
    ]
    later = costs_of(fewest(equations(costs, speeds)) + same)
    assert later.value[[2, 7]] == pytest.approx(8.0, rel=0.2)


@pytest.mark.parametrize("hours", [8.0, 24.0])
@pytest.mark.parametrize("seed", range(3))
def test_who_reads_on_another_machine_later_makes_nothing_dear(seed: int, hours: float) -> None:
    """Names stay while pods land elsewhere: only within hours is a member as fast as it was."""
    before = fewest(equations(np.ones(10), {"a": 70.0, "b": 140.0}, seed))
    after = [
        entry._replace(
            at=entry.at + 3600.0 * hours, partitions=np.sort((entry.partitions + 5) % 10)
        )
        for entry in equations(np.ones(10), {"a": 140.0, "b": 70.0}, seed + 9)
    ]
    assert costs_of(before + fewest(after)).equal


@pytest.mark.parametrize("seed", range(3))
def test_who_was_at_rest_meanwhile_may_read_on_another_machine(seed: int) -> None:
    """A stretch at rest between two at the limit does not say that these were as fast."""
    before = fewest(equations(np.ones(10), {"a": 70.0, "b": 140.0}, seed))
    between = [
        entry._replace(at=entry.at + DAY_S / 6, limited=False, records=entry.records / 2)
        for entry in (before[0], before[-1])
    ]
    after = [
        entry._replace(at=entry.at + DAY_S / 3, partitions=np.sort((entry.partitions + 5) % 10))
        for entry in equations(np.ones(10), {"a": 140.0, "b": 70.0}, seed + 9)
    ]
    assert costs_of(before + between + fewest(after)).equal


def test_a_note_says_again_what_was_read() -> None:
    """To a thousandth; also once topics have grown, gone and come."""
    mine = equations(np.ones(10), {"a": 100.0})[:6]
    text = note(Noted((TEN[:5], np.arange(1.0, 6.0)), mine, NOW - 60.0), PROBLEM)
    assert len(text) <= LENGTH + LENGTH_BY_PARTITION * 5
    mix, again, since = read_note(text, "a", PROBLEM, NOW)
    assert mix is not None
    assert since == NOW - 60.0
    assert mix[0].tolist() == [0, 1, 2, 3, 4]
    assert len(again) >= 4
    for equation, other in zip(again, mine[-len(again) :], strict=True):
        dense = np.zeros(10)
        dense[equation.partitions] = equation.records
        assert dense[:5] == pytest.approx(other.records, abs=2e-4 * other.records.sum())
    grown = Problem.of({"s": 3, "t": 9}, {"a": ["s", "t"]})
    moved = read_note(text, "a", grown, NOW).equations
    assert moved[0].partitions.tolist() == [place + 3 for place in again[0].partitions.tolist()]
    gone = Problem.of({"s": 3}, {"a": ["s"]})
    assert read_note(text, "a", gone, NOW) == (None, [], NOW - 60.0)


def test_a_note_stays_short() -> None:
    """Whatever was read: what is oldest is left out."""
    topics = {f"{'long' * 50}{n}": 1 for n in range(40)}
    wide = Problem.of(topics, {"a": list(topics)})
    places, records = np.arange(40), np.full(40, 1e12)
    mine = [Equation("a", NOW + n, 120.0, bool(n), places, records) for n in range(6)]
    text = note(Noted((places, records), mine), wide)
    assert 0 < len(text) <= LENGTH + LENGTH_BY_PARTITION * 40
    assert read_note(text, "a", wide, NOW)[0] is not None


@pytest.mark.parametrize(
    "text",
    [
        "?",
        "[]",
        "{}",
        "[" * 100_000,
        '{"equations": 7}',
        '{"equations": [[1, 2, true]]}',
        '{"equations": [[1, 0, true, 5, {}]]}',
        '{"equations": [[1e999, 60, true, 5, {}]]}',
        '{"equations": [[1, 60, true, NaN, {}]]}',
        '{"equations": [[1, 60, true, 5, {"%s": [[0], [-4]]}]]}',
        '{"equations": [[1, 60, true, 5, {"%s": [[0, 1], [1]]}]]}',
        '{"equations": [[1, 60, true, 5, {"%s": [["0"], [1]]}]]}',
        '{"equations": [], "mix": {"%s": {"0": 1}}}',
        '{"equations": [], "limited_since": NaN}',
        '{"equations": [], "limited_since": []}',
    ],
)
def test_a_note_that_makes_no_sense_is_refused(text: str) -> None:
    """Whoever wrote it."""
    known = json.loads(note(Noted((TEN[:1], np.ones(1))), PROBLEM))["mix"]
    with pytest.raises(InvalidNoteError, match="remembered of a"):
        read_note(text.replace("%s", next(iter(known))), "a", PROBLEM, NOW)


LATE = question(end=skewed, committed=behind)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: "?",
        lambda _: 7,
        lambda _: [],
        lambda _: {"format": 2, "members": {}},
        lambda _: {"format": 1},
        lambda _: {"format": 1, "members": {"a": {}}},
        lambda memory: {**memory, "members": {"a": {**memory["members"]["a"], "note": "{"}}},
        lambda memory: {**memory, "members": {"a": {**memory["members"]["a"], "note": 1}}},
    ],
)
def test_a_foreign_memory_changes_nothing_but_a_sentence(spoil: Callable[[Any], Any]) -> None:
    """The answer is the same as without."""
    without = answer_question(LATE)
    answer = answer_question(LATE | {"memory": spoil(without["memory"])})
    assert answer["evidence"] == (
        without["evidence"] + " What was remembered makes no sense and is ignored."
    )
    for key in ("outcome", "diagnosis", "names", "forecast", "costs", "capacities"):
        assert answer[key] == without[key]


def test_memory_wins_over_capacities() -> None:
    """They stay for people, and for first questions."""
    first = answer_question(LATE)
    wrong = {"a": {"records_per_s": 1e9, "measured": True, "at": "2100-01-01T00:00:00+00:00"}}
    again = answer_question(LATE | {"memory": first["memory"], "capacities": wrong})
    assert again == answer_question(LATE | {"memory": first["memory"]})


class Judged(Planner):
    """Plans by lines alone, and says how large memories became, as a share of what they may be."""

    def __init__(self) -> None:
        super().__init__(Rules(pause_s=10.0))
        self.memory: Any = None
        self.largest = 0.0

    def plan(self, moment: Moment) -> Int32 | None:
        """Ask as `fairlead decide` is asked."""
        problem = moment.problem
        changed_at = self.changes[-1] if self.changes else None
        answer = answer_question(line_of(problem, moment.looks(), self.memory, changed_at))
        self.memory = json.loads(json.dumps(answer["memory"]))
        most = 4096 + 100 * problem.partition_total + 500 * len(problem.members)
        self.largest = max(self.largest, len(json.dumps(self.memory)) / most)
        if answer["outcome"] != "plan":
            return None
        owner = np.full(problem.partition_total, -1, np.int32)
        for name, topics in answer["assignment"].items():
            for topic, partitions in topics.items():
                first = int(problem.topic_offsets[problem.topics.index(topic)])
                owner[[first + partition for partition in partitions]] = problem.members.index(name)
        return owner


#: The other simulator has the same group in `make test` (`test_outside_costs`).
HEAVY = [("heavy", "proportional", 12.0), ("heavy", "kafka-python", 12.0)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "client", "hours"),
    [
        *form(short=[], long=HEAVY),
        ("two-kinds", "proportional", 12.0),
        ("own-costs", "java", 12.0),
    ],
)
def test_a_group_with_dear_records_is_cured(name: str, client: str, hours: float) -> None:
    """By lines of `fairlead decide`: hardly anything late, ten plans at most, a small memory."""
    what = replace(SCENARIOS[name], client=client)
    world = ScenarioWorld.of(what, seed=1, hours=hours)
    never = RunFigures.of(simulate(world, NEVER_PLANNED))
    planner = Judged()
    course = RunFigures.of(run(world, planner))
    assert never.late > 5_000
    assert course.late <= 0.03 * never.late
    assert 1 <= course.plans <= 10
    assert planner.largest < 1.0


def test_what_short_stretches_tell_is_known() -> None:
    """Half an hour at its limit: a member's fetched chunks hold partitions in ever other shares."""
    what = replace(SCENARIOS["slow-and-dear"], client="aiokafka")
    world = ScenarioWorld.of(what, seed=1, hours=0.55)
    planner = Planner(Rules(), plans=False)
    course = run(world, planner)
    mine = np.flatnonzero(course.owners[0][1] == 2)
    low, _, high = planner.judgements[-1][1].costs.known()[mine].T
    known = ~np.isnan(low)
    truth = np.where(mine == 25, 6.0, 1.0)
    assert known.sum() >= 8
    assert ((low <= truth) & (truth <= high))[known].all()


@pytest.mark.parametrize(
    ("turns", "every_s", "objective_s", "longest"),
    [((1, 1), 60.0, 60.0, 300.0), ((2, 0), 60.0, 60.0, 60.0), ((1, 1), 1.0, 2.0, 20.0)],
)
def test_a_stretch_goes_on_while_what_is_read_is_alike(
    turns: tuple[int, int], every_s: float, objective_s: float, longest: float
) -> None:
    """Of one mix long stretches say all; of ever other mixes each minute says something.

    Nobody waits for minutes where being in time is a matter of seconds.
    """
    looked_at = np.linspace(0.0, 30.0 * every_s, 31)
    taken = np.resize(turns, looked_at.size)
    committed = 6000 * np.stack((taken, 2 - taken), axis=1).cumsum(axis=0)
    end = committed + 100_000
    owner = np.zeros(end.shape, np.int32)
    looks = Looks(looked_at, 0 * end, end, committed, ("a",), owner)
    found = equations_of(looks, read_commits(looks), objective_s)
    assert max(equation.seconds for equation in found) == longest


def test_stretches_whose_ends_commits_blur_count_in_twos() -> None:
    """What commits blur by many seconds comes with what is read then: it would tell lies."""
    rng = np.random.default_rng(0)
    minutes, pairs, late_s, before = list[Equation](), list[Equation](), 0.0, np.zeros(5)
    for minute in range(1, 41):
        late_s, was_s = rng.uniform(0.0, 40.0), late_s
        records = rng.dirichlet(np.full(5, 0.5)) * 100.0 * (60.0 + was_s - late_s) + 1.0
        at = NOW - 2400 + 60.0 * minute
        equation = Equation("a", at, 60.0, limited=True, partitions=TEN[:5], records=records)
        minutes.append(equation)
        if minute % 2 == 0:
            pairs.append(equation._replace(seconds=120.0, records=before + records))
        before = records
    found = costs_of(minutes)
    assert found.estimate.tolist() == costs_of(pairs).estimate.tolist()
    assert {equation.seconds for equation in found.equations} == {120.0}


def test_a_partition_that_crawled_says_nothing_of_costs_once_it_is_healed() -> None:
    """Its owner had time to spare, whatever waited: that partition is not cheap."""
    what = SCENARIOS["crawl-heals"]
    world = ScenarioWorld.of(what, seed=1, hours=25.0)
    planner = Planner(Rules())
    run(world, planner)
    healed = [judgement for at, judgement in planner.judgements if at > planner.judgements[96][0]]
    assert healed
    assert all(judged.costs.equal for judged in healed)
    assert "overloaded" not in {judged.diagnosis.name for judged in healed}


def suspected(
    costs: np.ndarray,
    speed: float,
    *,
    mixes: bool,
    hours: float = 0.5,
    before: float | None = None,
) -> int | None:
    """Return what is suspected of a member that read five partitions; usual are 100/s."""
    rng = np.random.default_rng(3)
    found = []
    for stretch in range(15):
        shares = rng.dirichlet(np.full(5, 1.0)) + 0.01 if mixes else np.full(5, 0.2)
        records = shares * 120.0 * speed / (shares * costs).sum()
        at = NOW - 3600.0 * hours + 120.0 * hours * 2 * stretch
        found.append(Equation("a", at, 120.0, limited=True, partitions=TEN[:5], records=records))
    usual = Costs(np.ones(10), np.ones(10), np.full(10, np.inf))
    return suspect(found, usual, 100.0, limited_since(found, before))


def test_a_dear_partition_is_suspected_where_mixes_tell() -> None:
    """The member does 100/s of the usual, and one partition's records take eight times as long."""
    costs = np.ones(5)
    costs[3] = 8.0
    assert suspected(costs, 100.0, mixes=True) == 3


def test_a_slow_member_is_not_excused_where_mixes_tell() -> None:
    """Whatever it reads, it does 40/s."""
    assert suspected(np.ones(5), 40.0, mixes=True) is None


def test_what_nothing_tells_apart_is_left_open_for_two_hours() -> None:
    """Equal shares in all stretches."""
    slow = partial(suspected, np.ones(5), 40.0, mixes=False)
    assert slow() is not None
    assert slow(hours=1.0) is None  # nobody knows how long before
    assert slow(hours=1.0, before=NOW - 6000.0) is not None
    assert slow(hours=1.0, before=NOW - 7500.0) is None


def handed_on(costs: np.ndarray, speeds: dict[str, float]) -> list[Equation]:
    """Return stretches of members that had partition 3, one member after the other, and not."""
    rng = np.random.default_rng(3)
    found = []
    for number, (member, speed) in enumerate(speeds.items()):
        for stretch in range(6):
            shares = np.where(TEN % len(speeds) == number, rng.uniform(0.1, 1.0, 10), 0.0)
            shares[3] = rng.uniform(0.1, 0.5) if stretch % 2 else 0.0
            records = shares * 120.0 * speed / (shares * costs).sum()
            places = np.flatnonzero(records)
            at = NOW - 3600.0 + 120.0 * (6 * number + stretch)
            limited = Equation(
                member, at, 120.0, limited=True, partitions=places, records=records[places]
            )
            found.append(limited)
    return found


USUAL = Costs(np.ones(10), np.ones(10), np.full(10, np.inf))


def test_the_partition_that_made_several_members_slow_is_found() -> None:
    """Whoever has it does less of all else, by the same for each of its records."""
    costs = np.ones(10)
    costs[3] = 8.0
    found = dear_for_several(handed_on(costs, {"a": 100.0, "b": 100.0, "c": 100.0}), USUAL)
    assert found is not None
    assert found.partition == 3
    assert found.costs.value == pytest.approx(costs)
    assert found.per_s == pytest.approx(100.0)


@pytest.mark.parametrize("speeds", [{"a": 100.0, "b": 40.0, "c": 40.0}, {"a": 100.0, "b": 40.0}])
def test_members_that_are_slow_with_it_and_without_it_are_slow(speeds: dict[str, float]) -> None:
    """A group of these is overloaded by what they can do, whatever a partition takes."""
    assert dear_for_several(handed_on(np.ones(10), speeds), USUAL) is None


def test_no_partition_makes_several_slow_that_were_never_at_their_limit() -> None:
    """Nothing says what a record takes."""
    at_rest = [
        equation._replace(limited=False)
        for equation in handed_on(np.ones(10), {"a": 100.0, "b": 40.0})
    ]
    assert dear_for_several(at_rest, USUAL) is None


def test_a_bound_counts_by_what_was_read_then() -> None:
    """Whoever was seen with usual records alone is no faster once a dear partition is its own."""
    truth = np.ones(10)
    truth[3] = 10.0

    def asked(at: float, owner: np.ndarray, per_s: np.ndarray, known: Any) -> State:
        """Return what is known after seven looks at members at rest."""
        offsets = np.outer(60 * np.arange(7), per_s).astype(np.int64)
        owned = [[place for place in range(10) if owner[place] == member] for member in (0, 1)]
        members = {
            name: Member(["t"], owned={"t": mine}) for name, mine in zip("ab", owned, strict=True)
        }
        problem = Problem.of({"t": 10}, members, {"t": [0] * 10})
        looks = looks_at(offsets.tolist(), offsets.tolist(), owner.tolist())
        looks = replace(looks, at=looks.at + at)
        return State(Question(problem, looks, capacities=known))

    problem = Problem.of({"t": 10}, {"a": ["t"], "b": ["t"]})
    limited = note(Noted(None, fewest(equations(truth, {"a": 100.0}))), problem)
    at_first = {"a": Capacity(30.0, measured=True, at=NOW, note=limited)}
    before = asked(NOW, np.repeat([0, 1], 5), np.repeat([1.0, 16.0], 5), at_first)
    assert before.capacities["b"].records_per_s == pytest.approx(80.0, rel=0.05)
    after = asked(NOW + 3600.0, np.where(TEN == 3, 1, 0), np.ones(10), before.known)
    assert after.costs.value[3] == pytest.approx(10.0, rel=0.3)
    assert after.capacities["b"].records_per_s == pytest.approx(80.0, rel=0.05)

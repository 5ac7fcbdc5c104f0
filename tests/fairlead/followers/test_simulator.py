"""Followers in a simulated group: random histories with faults, and single cases."""

from collections.abc import Sequence
from typing import Any

import pytest

from fairlead.followers.confluent import member
from fairlead.followers.confluent.member import Event, State
from fairlead.wire.agreement import AssignmentRecord, Mark
from fairlead.wire.partitions import Pair
from fairlead.wire.record_reading import SKEW
from tests.fairlead.followers.simulator.coordinator import SESSION_S
from tests.fairlead.followers.simulator.history import Action, happen, quiet, run
from tests.fairlead.followers.simulator.interruption import Interruption, Line
from tests.fairlead.followers.simulator.logs import PARTITIONS, SimulatedAgreementLog
from tests.fairlead.followers.simulator.member import TOPIC
from tests.fairlead.followers.simulator.world import World
from tests.lengths import form

#: Number of seeds; 100 histories take about six seconds on one core.
SEEDS = form(short=200, long=20_000)
BATCH = 100


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, SEEDS, BATCH))
def test_invariants_hold_in_every_history(first: int) -> None:
    """No partition has two owners, statuses are correct, and finally all follow the newest plan."""
    for seed in range(first, first + BATCH):
        run(seed)


def test_group_recovers_soon_after_a_long_outage_of_its_log() -> None:
    """After a long outage of the agreement log, the group recovers within 120 seconds."""
    world = run(108_835)
    assert world.time < 120.0


def settled(*names: str, seed: int = 1) -> World:
    """Return a world in which these members follow a plan."""
    world = World(seed)
    happen(world, Action(0.0, "publish"))
    for name in names:
        happen(world, Action(0.0, "start", name))
    quiet(world)
    world.longest_orphaned_s = 0.0
    return world


def test_decisive_assignment_record_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members repeat the assignment record that they follow, before retention could delete it."""
    monkeypatch.setattr(member, "REPEAT_ASSIGNMENT_S", 2.0)
    world = settled("a", "b")
    generation = world.coordinator.generation
    home = (world.agreement_topic.partitions or [])[world.agreement_topic.home()]
    before = len(home.records)
    world.run(world.time + 30.0)
    repeated = [record for _, record in home.records[before:]]
    assert 2 <= len(repeated) <= 15
    assert all(isinstance(record, AssignmentRecord) for record in repeated)
    assert all(record == repeated[0] for record in repeated)
    assert world.coordinator.generation == generation
    assert world.healed() is None


FAULTS = [
    "agreement_accept",
    "agreement_refuse",
    "agreement_lose",
    "agreement_doubt",
    "agreement_away",
    "agreement_delete",
    "agreement_grow",
    "agreement_lead",
    "agreement_loseend",
    "plans_away",
    "plans_delete",
    "plans_grow",
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.6, 0.9])
def test_time_without_an_owner_is_bounded(fault: str, delay_s: float) -> None:
    """After a fault in a rebalance, every partition has an owner again within ten seconds."""
    world = settled("a", "b", "c")
    happen(world, Action(world.time, "start", "d"))
    world.run(world.time + delay_s)
    happen(world, Action(world.time, fault))
    world.run(world.time + 60.0)
    assert world.longest_orphaned_s < 10.0
    quiet(world)
    assert world.longest_orphaned_s < 10.0


def test_member_without_a_range_share_needs_no_log() -> None:
    """Without an agreement log, a member without partitions reports that it follows `range`."""
    world = World(1)
    happen(world, Action(0.0, "agreement_away"))
    for name in "abcdefg":
        happen(world, Action(0.0, "start", name))
    world.run(10.0)
    statuses = [
        member.plans.status(member.client.share)
        for member in world.members.values()
        if member.plans and not member.client.share
    ]
    assert [status.rule for status in statuses] == ["range"]
    assert str(statuses[0].fallback_reason).startswith("keeping its share of range: ")


def numbers(world: World, name: str) -> list[int]:
    return sorted(number for _, number in world.members[name].client.share)


def test_member_keeps_a_share_assigned_by_the_broker() -> None:
    """If the broker computes assignments, a member writes no announcement and never rejoins."""
    world = World(1)
    world.agreement_topic.broker_assigns = True
    happen(world, Action(0.0, "publish"))
    happen(world, Action(0.0, "start", "a"))
    world.run(60.0)
    assert world.coordinator.generation == 1
    records = [
        record for home in world.agreement_topic.partitions or () for _, record in home.records
    ]
    assert {type(record) for record in records} == {Mark}
    assert numbers(world, "a") == list(range(PARTITIONS))
    assert "the broker assigns" in world.state()


def test_member_accepts_a_new_share_within_a_generation() -> None:
    """If the broker changes the share within a generation, the member owns the new share."""
    world = settled("a")
    member = world.members["a"].plans
    assert member is not None
    member.assigned([(TOPIC, 0)])
    member.fetch(lambda _: None, 0.0, nothing=None)
    assert numbers(world, "a") == [0]


def test_member_may_unsubscribe_in_its_callback() -> None:
    """A member that unsubscribes in its callback leaves the group, and owns no partition."""
    world = World(1)
    happen(world, Action(0.0, "start", "a"))
    member, client = world.members["a"].plans, world.members["a"].client
    assert member is not None

    def leave(event: Event, share: Sequence[Pair]) -> None:
        del share
        if event == "assign":
            member.unsubscribe()

    client.notify = leave  # type: ignore[method-assign] # the application's callback
    world.run(10.0)
    assert member.state is State.OUTSIDE
    assert numbers(world, "a") == []
    assert "in no group" in world.state()


@pytest.mark.parametrize("later_s", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(1, 4))
def test_plan_is_followed_once_the_coordinator_is_back(seed: int, later_s: float) -> None:
    """Members that the coordinator has removed rejoin, and never fall back to `range`."""
    world = settled("a", "b", "c", seed=seed)
    for what in ("coordinator_away", "agreement_away"):
        happen(world, Action(world.time, what))
    world.run(world.time + SESSION_S + 2.0)
    happen(world, Action(world.time, "coordinator_back"))
    world.run(world.time + later_s)
    happen(world, Action(world.time, "agreement_back"))
    world.longest_orphaned_s = 0.0
    ends = world.time + 20.0
    while world.time < ends:
        world.run(world.time + 0.05)
        assert "range" not in {
            member.plans.status(()).rule for member in world.members.values() if member.plans
        }, world.state()
    assert world.healed() is None


def test_records_of_a_deleted_group_do_not_count() -> None:
    """If generations begin at 1 again, members soon agree, despite records of old generations."""
    world = settled("a", "b")
    for what, names in (("unsubscribe", "ab"), ("delete_group", " "), ("subscribe", "ab")):
        for name in names:
            happen(world, Action(world.time, what, name))
        world.run(world.time + 1.0)
    assert world.coordinator.generation <= 2
    quiet(world)
    assert world.longest_orphaned_s < 5.0


def test_members_move_together_if_the_coordination_topic_grows() -> None:
    """All members soon use the partition to which the group's key maps after the growth."""
    world = settled("a", "b", "c")
    happen(world, Action(world.time, "agreement_grow"))
    generation = world.coordinator.generation
    world.run(world.time + 40.0)
    assert generation < world.coordinator.generation <= generation + 3
    assert world.healed() is None
    logs: list[Any] = [m.plans._listener.log for m in world.members.values() if m.plans]  # noqa: SLF001
    places = {log.number for log in logs if isinstance(log, SimulatedAgreementLog)}
    assert places == {world.agreement_topic.home()}


@pytest.mark.parametrize("fault", ["plans_delete", "plans_grow"])
def test_plans_of_a_recreated_or_larger_topic_are_adopted(fault: str) -> None:
    """Members adopt plans from the changed topic, although no member joins or leaves."""
    world = settled("a", "b")
    happen(world, Action(world.time, fault))
    world.run(world.time + 40.0)
    happen(world, Action(world.time, "plans_create"))
    happen(world, Action(world.time, "publish"))
    world.run(world.time + 60.0)
    assert world.healed() is None


def test_plan_is_followed_again_after_its_lease_is_renewed() -> None:
    """After its plan expires, the group uses `range`; after a renewal, it uses the plan again."""
    world = settled("a", "b")
    world.lease_until = world.clock.utc() - SKEW
    happen(world, Action(world.time, "publish"))
    world.run(world.time + 10.0)
    assert world.healed() is not None
    world.lease_until = None
    world.tell()
    world.run(world.time + 10.0)
    assert world.healed() is None


def join_and_lose(interruption: Interruption | None) -> None:
    """Run a group through joins, a new plan and a loss of its log; interrupt one member."""
    world = World(3)
    happen(world, Action(0.0, "publish"))
    for name in "ab":
        happen(world, Action(0.0, "start", name))
    world.members["a"].interruption = interruption
    world.run(4.0)
    happen(world, Action(world.time, "publish"))
    world.run(7.0)
    happen(world, Action(world.time, "agreement_lose"))
    happen(world, Action(world.time, "start", "c"))
    world.run(12.0)
    happen(world, Action(world.time, "agreement_accept"))
    happen(world, Action(world.time, "agreement_delete"))
    world.run(18.0)
    quiet(world)


def lines() -> dict[Line, int]:
    """Return how often each line is executed in a run without an interruption."""
    counting = Interruption()
    join_and_lose(counting)
    return counting.reached


@pytest.mark.long
@pytest.mark.parametrize("share", range(4))
def test_member_recovers_from_an_interruption_at_any_line(share: int) -> None:
    """If an exception interrupts `poll` at any line, the member later follows the plan again.

    The line is interrupted at its first or a middle execution. A partition never has two owners,
    and each status is correct.
    """
    reached = lines()
    assert len(reached) > 200
    for number, (line, times) in enumerate(sorted(reached.items())):
        if number % 4 != share:
            continue
        interruption = Interruption(line, 1 if number % 8 < 4 else (times + 1) // 2)
        join_and_lose(interruption)
        assert interruption.raised, line

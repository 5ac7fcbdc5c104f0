"""The rules of one roll call, without Kafka: what members make of the same log."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from fairlead.followers.confluent.roll_call import (
    INCOMPLETE_S,
    REPEAT_S,
    TURN_S,
    UNSURE_S,
    RollCall,
    draw_up,
)
from fairlead.followers.core.plan_cache import PlanState
from fairlead.wire.pins import Announcement, Pin
from fairlead.wire.record import Identity
from tests.fairlead.followers.helpers import DAY, make_plan

COUNTS = {"t": 4}


def here(member: str, *given: int, seen: int = -1, generation: int = 1) -> Announcement:
    return Announcement(
        generation, member, member, ("t",), {"t": given} if given else {}, Identity(1, seen)
    )


def plan(version: int = 1, **shares: list[int]) -> PlanState:
    document = make_plan(
        {name: {"t": share} for name, share in shares.items()},
        partition_counts=COUNTS,
        version=version,
    )
    return PlanState(document, Identity(1, version))


def calls(*records: Announcement) -> dict[str, RollCall]:
    """Return everybody's call after all of them have announced themselves, at time 0."""
    everybody = {record.member: RollCall(record, COUNTS) for record in records}
    for call in everybody.values():
        for record in records:
            call.hear(record, now=0.0)
    return everybody


def pin(*records: Announcement, state: PlanState | None = None) -> Pin:
    return draw_up(records, state or PlanState(), now=DAY, member=records[0].member)


def test_last_to_announce_pins_at_once_when_surely_nobody_is_missing() -> None:
    """All is ceded, and somebody has two: range leaves nobody without a share before that."""
    due = {
        name: call.pin_due_at() for name, call in calls(here("a", 0, 1), here("b", 2, 3)).items()
    }
    assert due == {"b": 0.0, "a": TURN_S}


def test_waits_a_moment_for_members_without_a_share() -> None:
    """All is ceded, one each: others may have got nothing and still be on their way."""
    everybody = calls(*(here(name, number) for number, name in enumerate("abcd")))
    assert everybody["d"].pin_due_at() == UNSURE_S


def test_waits_longer_while_partitions_are_not_ceded() -> None:
    """A slow member may still come; one that knows no plans never does."""
    assert calls(here("a", 0, 1))["a"].pin_due_at() == INCOMPLETE_S


def test_whoever_knows_the_newest_plan_goes_first() -> None:
    """Else the group would adopt an older one, only to rebalance again."""
    everybody = calls(here("a", 0, 1, seen=7), here("b", 2, 3, seen=4))
    assert [everybody[name].pin_due_at() for name in "ab"] == [0.0, TURN_S]


def test_pin_that_does_not_come_back_is_repeated() -> None:
    """A pin can be lost with the log's leader."""
    call = calls(here("a", 0, 1, 2, 3))["a"]
    call.pinned(now=1.0)
    assert call.pin_due_at() == 1.0 + REPEAT_S


def test_minority_with_another_subscription_is_refused() -> None:
    """The others' plan does not count on it."""
    odd = Announcement(1, "odd", "odd", ("t", "u"), {"t": (3,), "u": (0,)})
    records = (here("a", 0, 1), odd, here("b", 2))
    everybody = {record.member: RollCall(record, COUNTS) for record in records}
    for call in everybody.values():
        for record in (*records, pin(*records)):
            call.hear(record, now=0.0)
    problems = {
        name: bool(v and v.problem) for name, v in ((n, c.verdict()) for n, c in everybody.items())
    }
    assert problems == {"a": False, "b": False, "odd": True}


@pytest.mark.parametrize("state", [PlanState(), PlanState(problem="unreadable")])
def test_without_a_plan_everybody_keeps_what_range_gave(state: PlanState) -> None:
    """The fallback moves nothing."""
    assert pin(here("a", 0, 1), here("b", 2, 3), state=state).shares == {
        "a": {"t": (0, 1)},
        "b": {"t": (2, 3)},
    }


@pytest.mark.parametrize("seed", range(50))
def test_no_partition_has_two_owners_whoever_reads_how_much(seed: int) -> None:
    """Random logs: late members, several pins, members that know no plans, different plans."""
    rng = random.Random(seed)
    names = [f"m{number}" for number in range(rng.randint(1, 6))]
    partitions = rng.sample(range(12), 12)
    cuts = sorted(rng.choices(range(13), k=len(names) - 1))
    shares = [partitions[a:b] for a, b in pairwise([0, *cuts, 12])]
    members = [here(name, *sorted(share)) for name, share in zip(names, shares, strict=True)]
    plans_nothing = {record.member for record in members if rng.random() < 0.2}
    announcing = [record for record in members if record.member not in plans_nothing]
    log: list[Announcement | Pin] = []
    for number, record in enumerate(rng.sample(announcing, len(announcing))):
        log.append(record)
        if rng.random() < 0.5 or number + 1 == len(announcing):
            heard = tuple(said for said in log if isinstance(said, Announcement))
            wish = {name: sorted(rng.sample(range(4), 2)) for name in names[:1]}
            log.append(draw_up(heard, plan(number + 1, **wish), now=DAY, member=record.member))
    owned = [
        p for member in members if member.member in plans_nothing for p in member.given.get("t", ())
    ]
    for record in announcing:
        call = RollCall(record, {"t": 12})
        for entry in log:
            call.hear(entry, now=0.0)
        verdict = call.verdict()
        assert verdict is not None
        owned += verdict.share.get("t", ())
    assert sorted(owned) == list(range(12))


def dealt(**shares: list[int]) -> Pin:
    """Return a pin that deals out what it likes."""
    return Pin(1, "a", ("t",), {name: {"t": tuple(numbers)} for name, numbers in shares.items()}, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        dealt(a=[0, 1], b=[1, 2, 3]),
        dealt(a=[0, 1, 4], b=[2, 3]),
        dealt(a=[0, 1], b=[2]),
        dealt(a=[0, 1], b=[2, 3], c=[]),
        dealt(),
        replace(dealt(a=[0, 1], b=[2, 3]), topics=("u",)),
        replace(dealt(a=[0, 1], b=[2, 3]), log="another"),
    ],
    ids=["twice", "not ceded", "kept back", "unheard", "nobody", "unsubscribed", "another log"],
)
def test_pin_that_does_not_deal_out_what_was_ceded_counts_for_nobody(wrong: Pin) -> None:
    """Whoever wrote it: all members refuse it alike, and the next one decides."""
    members = (here("a", 0, 1), here("b", 2, 3))
    good = dealt(a=[3], b=[0, 1, 2])
    for call in calls(*members).values():
        call.hear(wrong, now=1.0)
        assert call.verdict() is None
        call.hear(good, now=1.0)
        assert call.pin == good


def test_members_of_two_leader_epochs_do_not_count_on_each_other() -> None:
    """The first leader's pin was lost after some had read it: the second one's is for others."""
    members = (here("a", 0, 1), here("b", 2, 3))
    read, missed = RollCall(members[0], COUNTS), RollCall(members[1], COUNTS)
    read.hear(members[0], now=0.0, epoch=1)
    lost = pin(members[0], state=plan(a=[0, 1]))
    read.hear(lost, now=0.0, epoch=1)
    for call in (read, missed):
        call.hear(members[1], now=1.0, epoch=2)
        call.hear(pin(members[1], state=plan(2, b=[2, 3])), now=1.0, epoch=2)
    verdicts = [call.verdict() for call in (read, missed)]
    assert [v and v.share for v in verdicts] == [{"t": (0, 1)}, {"t": (2, 3)}]


def test_expired_plan_is_not_pinned() -> None:
    """The pin says why."""
    document = make_plan({"a": {"t": [0]}}, partition_counts=COUNTS)
    decision = draw_up(
        (here("a", 0, 1),),
        PlanState(document, Identity(1, 1), DAY),
        now=datetime.now(UTC),
        member="a",
    )
    assert decision.plan_version is None
    assert "expired" in str(decision.fallback_reason)

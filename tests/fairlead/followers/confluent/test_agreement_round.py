"""Agreement without Kafka: members that read the same log never claim the same partition."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from fairlead.followers.confluent.agreement_round import TURN_S, AgreementRound, draw_up
from fairlead.followers.core.plan_cache import PlanState
from fairlead.wire.agreement import Announcement, AssignmentRecord
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


def rounds(*records: Announcement) -> dict[str, AgreementRound]:
    """Return, for each member, an agreement round that has read all announcements at time 0."""
    everybody = {record.member: AgreementRound(record, COUNTS) for record in records}
    for round_ in everybody.values():
        for record in records:
            round_.hear(record, now=0.0)
    return everybody


def assignment(*records: Announcement, state: PlanState | None = None) -> AssignmentRecord:
    return draw_up(records, state or PlanState(), now=DAY, member=records[0].member)


def test_member_with_the_newest_plan_writes_first() -> None:
    """The member with the newest plan may write an assignment at once, the other after `TURN_S`."""
    everybody = rounds(here("a", 0, 1, seen=7), here("b", 2, 3, seen=4))
    assert [everybody[name].write_due_at() for name in "ab"] == [0.0, TURN_S]


def test_minority_with_another_subscription_is_refused() -> None:
    """A member whose subscription differs from the majority's gets an error; others do not."""
    odd = Announcement(1, "odd", "odd", ("t", "u"), {"t": (3,), "u": (0,)})
    records = (here("a", 0, 1), odd, here("b", 2))
    everybody = {record.member: AgreementRound(record, COUNTS) for record in records}
    for round_ in everybody.values():
        for record in (*records, assignment(*records)):
            round_.hear(record, now=0.0)
    problems = {
        name: bool(v and v.problem) for name, v in ((n, c.verdict()) for n, c in everybody.items())
    }
    assert problems == {"a": False, "b": False, "odd": True}


@pytest.mark.parametrize("seed", range(50))
def test_no_partition_has_two_owners_for_any_reading_progress(seed: int) -> None:
    """With random logs, and members that announce nothing, each partition gets one owner."""
    rng = random.Random(seed)
    names = [f"m{number}" for number in range(rng.randint(1, 6))]
    partitions = rng.sample(range(12), 12)
    cuts = sorted(rng.choices(range(13), k=len(names) - 1))
    shares = [partitions[a:b] for a, b in pairwise([0, *cuts, 12])]
    members = [here(name, *sorted(share)) for name, share in zip(names, shares, strict=True)]
    plans_nothing = {record.member for record in members if rng.random() < 0.2}
    announcing = [record for record in members if record.member not in plans_nothing]
    log: list[Announcement | AssignmentRecord] = []
    for number, record in enumerate(rng.sample(announcing, len(announcing))):
        log.append(record)
        if rng.random() < 0.5 or number + 1 == len(announcing):
            heard = tuple(record for record in log if isinstance(record, Announcement))
            wish = {name: sorted(rng.sample(range(4), 2)) for name in names[:1]}
            log.append(draw_up(heard, plan(number + 1, **wish), now=DAY, member=record.member))
    owned = [
        p for member in members if member.member in plans_nothing for p in member.given.get("t", ())
    ]
    for record in announcing:
        round_ = AgreementRound(record, {"t": 12})
        for entry in log:
            round_.hear(entry, now=0.0)
        verdict = round_.verdict()
        assert verdict is not None
        owned += verdict.share.get("t", ())
    assert sorted(owned) == list(range(12))


def dealt(**shares: list[int]) -> AssignmentRecord:
    """Return an assignment record with these shares, which need not be valid."""
    return AssignmentRecord(
        1, "a", ("t",), {name: {"t": tuple(numbers)} for name, numbers in shares.items()}, 1
    )


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
    ids=["twice", "not given up", "kept back", "unheard", "nobody", "unsubscribed", "another log"],
)
def test_invalid_assignment_record_is_ignored(wrong: AssignmentRecord) -> None:
    """A record that does not match the announcements is ignored; the next valid record decides."""
    members = (here("a", 0, 1), here("b", 2, 3))
    good = dealt(a=[3], b=[0, 1, 2])
    for round_ in rounds(*members).values():
        round_.hear(wrong, now=1.0)
        assert round_.verdict() is None
        round_.hear(good, now=1.0)
        assert round_.assignment == good


def test_lost_assignment_does_not_change_another_members_share() -> None:
    """If the log loses a record that only `a` has read, `a` and `b` still share no partition."""
    members = (here("a", 0, 1), here("b", 2, 3))
    read, missed = AgreementRound(members[0], COUNTS), AgreementRound(members[1], COUNTS)
    read.hear(members[0], now=0.0, epoch=1)
    lost = assignment(members[0], state=plan(a=[0, 1]))
    read.hear(lost, now=0.0, epoch=1)
    for round_ in (read, missed):
        round_.hear(members[1], now=1.0, epoch=2)
        round_.hear(assignment(members[1], state=plan(2, b=[2, 3])), now=1.0, epoch=2)
    verdicts = [round_.verdict() for round_ in (read, missed)]
    assert [v and v.share for v in verdicts] == [{"t": (0, 1)}, {"t": (2, 3)}]

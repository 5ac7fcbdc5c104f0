"""Leaders of both languages make the same decisions, and read and write the same user data."""

import base64
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from fairlead.followers.core.cooperation import first_round
from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.plan_or_fallback import decide
from fairlead.wire.members import (
    AssignmentNote,
    GroupMember,
    SubscriptionNote,
    decode_assignment,
    decode_subscription,
    encode_note,
)
from fairlead.wire.record import NOTHING, Identity
from tests.jvm.asking import Program
from tests.jvm.cases import DAY, Case, draw_case
from tests.lengths import form

CASES = form(short=1000, long=20_000)
SEEN = (NOTHING, Identity(3, 7, sha256="9f"), Identity(3, 7, withdrawn=True))


def draw_members(rng: random.Random, case: Case) -> list[GroupMember]:
    """Return the case's members: randomly static, dynamic or with equal client ids.

    Some members own partitions.
    """
    members = []
    for number, (name, topics) in enumerate(case.subscriptions.items()):
        kind = rng.choice(["static", "told", "dynamic", "dynamic", "twin", "silent"])
        free = [(t, p) for t, count in case.partition_counts.items() for p in range(count)]
        held = rng.sample(free, rng.randint(0, len(free) // 2)) if rng.random() < 0.5 else []
        owned: dict[str, list[int]] = {}
        for topic, partition in held:
            owned.setdefault(topic, []).append(partition)
        members.append(
            GroupMember(
                member_id=f"{name}-{number}" if kind != "silent" else name,
                topics=tuple(topics),
                instance_id=name if kind in {"static", "told"} else None,
                client_id={"twin": "twin", "silent": None}.get(kind, name),
                seen=rng.choice(SEEN),
                lapsed=rng.random() < 0.3,
                owned=owned,
            )
        )
    return members


def described(rng: random.Random, member: GroupMember) -> tuple[dict[str, Any], bytes]:
    """Return a member as input for Checks.java, and the member's user data."""
    instance_id = member.instance_id if rng.random() < 0.5 else None
    note = SubscriptionNote(member.client_id, instance_id, member.seen, lapsed=member.lapsed)
    user_data = encode_note(note) if member.client_id else b"\x00somebody else's"
    return {
        "member_id": member.member_id,
        "topics": list(member.topics),
        "instance_id": member.instance_id,
        "owned": [[topic, p] for topic, numbers in member.owned.items() for p in numbers],
        "user_data": base64.b64encode(user_data).decode(),
    }, user_data


@pytest.mark.long
def test_decisions_of_leaders_are_equal(checks: Program) -> None:
    """Java and Python assign the same shares in the first round.

    They also agree on the need for a second round, and read the same notes from members.
    """
    rng = random.Random(11)
    cases = []
    for number in range(CASES):
        case = draw_case(rng)
        members = draw_members(rng, case)
        plan = case.plan if number % 3 else None
        inputs = [described(rng, member) for member in members]
        question: dict[str, Any] = {
            "ask": "decide",
            "members": [member for member, _ in inputs],
            "counts": {t: c for t, c in case.partition_counts.items() if c},
            "plan": base64.b64encode(plan.to_bytes()).decode() if plan else None,
        }
        cases.append((question, plan, members, [user_data for _, user_data in inputs]))
    answers = checks.lines(question for question, *_ in cases)
    for (question, plan, members, notes), answer in zip(cases, answers, strict=True):
        state = PlanState(plan, Identity(1, 1))
        decision = decide(state, members, question["counts"], now=DAY)
        first = first_round(decision.shares, members)
        left = {m: {t: p for t, p in share.items() if p} for m, share in first.items()}
        mine = [json.loads(answer)[0], *json.loads(answer)[1:]]
        assert mine == [
            left,
            left != decision.shares,
            *(encode_note(replace(decode_subscription(note), again=0)).decode()
              for note in notes),
        ], question  # fmt: skip


NOTES = [
    AssignmentNote(),
    AssignmentNote(7, SEEN[1], decided=SEEN[1], incomplete=True),
    AssignmentNote(None, SEEN[2], 'why, ä \U0001f600 " \\ \n\x7f', lapsed=True, decided=SEEN[0]),
]


@pytest.mark.parametrize(
    "user_data",
    [*map(encode_note, NOTES), b"", b"garbage", b'{"fairlead":2,"plan_version":1}'],
)
def test_notes_of_assignments_are_equal(checks: Program, user_data: bytes) -> None:
    """Java and Python read and write equal notes in user data, and ignore all other bytes."""
    note = decode_assignment(user_data)
    written, followed = checks.ask("note", user_data=base64.b64encode(user_data).decode())
    assert written == encode_note(note).decode()
    assert followed.replace("the fallback: ", "range: ") == note.followed()

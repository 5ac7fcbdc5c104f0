"""For the same records, Java and Python cache the same plans and request the same rebalances."""

import base64
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlead.followers.core.plan_cache import PlanCache, PlanRecord, PlanState
from fairlead.followers.core.rejoin import RejoinSchedule
from fairlead.wire.record import Headers, Identity, withdrawn_value
from fairlead.wire.signing import Verifier
from tests.fairlead.followers.helpers import make_plan
from tests.jvm.asking import Program
from tests.lengths import form
from tests.records import ORIGIN, PUBLIC, signed, unsigned

HISTORIES = form(short=300, long=10_000)
PLAN = make_plan({"a": {"t": [0]}}, partition_counts={"t": 1})
SOON = datetime(2030, 1, 1, tzinfo=UTC)

Step = tuple[bytes | None, Headers] | None


def draw_step(rng: random.Random) -> Step:
    """Return a random record, or None for a new connection. Versions and epochs often repeat."""
    version, epoch = rng.randint(1, 3), rng.randint(1, 2)
    lease = SOON + timedelta(hours=rng.randint(0, 2))
    plan = replace(PLAN, version=version, assignor=rng.choice(["one", "one", "other"]))
    value = plan.to_bytes()
    kind = rng.randrange(12)
    if kind == 0:
        return None
    if kind == 1:
        return None, []
    if kind == 2:
        return rng.choice([b"", b"garbage", value[:-1], b"null"]), signed(value)
    if kind == 3:
        return value, unsigned(value)
    if kind in {4, 5}:
        gone = withdrawn_value("group", version)
        return gone, signed(gone, version=version, epoch=epoch, kind="withdrawn")
    return value, signed(value, version=version, epoch=epoch, lease_until=lease)


def python_knows(steps: list[Step], verifier: Verifier | None) -> list[Any]:
    """Return Python's state after each step, in the format of Checks.java."""
    cache = PlanCache("group", ORIGIN, verifier, known=PlanState())
    states = []
    for offset, step in enumerate(steps):
        if step is None:
            cache = PlanCache("group", ORIGIN, verifier, known=cache.state)
        else:
            cache.apply(PlanRecord(offset, b"group", step[0], tuple(step[1])))
        state = cache.state
        until = state.lease_until
        states.append(
            [
                state.plan.version if state.plan else None,
                list(state.seen),
                None if until is None else round(until.timestamp() * 1000),
                state.problem is not None,
                state.skipped,
            ]
        )
    return states


@pytest.mark.long
@pytest.mark.parametrize("keys", [None, PUBLIC], ids=["unsigned", "signed"])
def test_states_are_equal_after_each_record(checks: Program, keys: str | None) -> None:
    """For random plans, withdrawals, garbage and new connections, both caches are the same."""
    rng = random.Random(5)
    verifier = None if keys is None else Verifier.from_text(keys)
    histories = [[draw_step(rng) for _ in range(20)] for _ in range(HISTORIES)]

    def b64(raw: bytes) -> str:
        return base64.b64encode(raw).decode()

    def step_for_java(step: Step) -> Any:
        if step is None:
            return None
        value, headers = step
        return [None if value is None else b64(value), [[n, b64(text)] for n, text in headers]]

    questions = [
        {"ask": "cache", "public_keys": keys, "records": [step_for_java(step) for step in steps]}
        for steps in histories
    ]
    for steps, answer in zip(histories, checks.lines(questions), strict=True):
        assert json.loads(answer) == python_knows(steps, verifier), steps


def draw_seen(rng: random.Random) -> Identity:
    """Return a random identity of a record, from a small set."""
    return Identity(1, rng.randint(0, 2), rng.random() < 0.2, rng.choice(["a", "b"]))


def test_rebalance_requests_are_made_at_the_same_moments(checks: Program) -> None:
    """For random plans, leases and rebalances, Java and Python make the same requests."""
    rng = random.Random(9)
    questions, expected = [], []
    for _ in range(HISTORIES):
        schedule = RejoinSchedule(0.0, random.Random(1))
        steps: list[list[Any]] = []
        due = []
        for now in range(30):
            seen, lapsed, number = draw_seen(rng), rng.random() < 0.4, rng.randint(0, 2)
            kind = rng.choice(["settle", "due", "due", "due", "unsettle"])
            if kind == "unsettle":
                schedule.unsettle()
                steps.append([])
            elif kind == "settle":
                schedule.settle(seen, lapsed=lapsed, turn_s=float(number))
                steps.append([kind, list(seen), lapsed, number])
            else:
                until = datetime.fromtimestamp(number, UTC)
                due.append(
                    schedule.due(seen=seen, now=float(now), lapsed=lapsed, lease_until=until)
                )
                steps.append([kind, list(seen), lapsed, number, now])
        questions.append({"ask": "schedule", "steps": steps})
        expected.append(due)
    assert any(map(any, expected))
    for question, due, answer in zip(questions, expected, checks.lines(questions), strict=True):
        assert json.loads(answer) == due, question

"""The effect of each kind of record on the followed plan."""

import json
import logging
import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.followers.core.plan_cache import PlanCache, PlanRecord, PlanState
from fairlead.wire.document import PlanDocument
from fairlead.wire.record import Identity, Kind, withdrawn_value
from fairlead.wire.signing import Verifier
from tests.fairlead.followers.helpers import make_plan
from tests.lengths import form
from tests.records import ORIGIN, PUBLIC, signed, unsigned

KEY = b"group"
SIGNED = Verifier.from_text(PUBLIC)


def plan(version: int, group: str = "group", assignor: str = "lag-aware") -> PlanDocument:
    made = make_plan({"a": {"t": [0, 1]}}, partition_counts={"t": 2}, group=group, version=version)
    return replace(made, assignor=assignor)


def record(offset: int, value: bytes | None, key: bytes = KEY) -> PlanRecord:
    """Return a record as a planner without a private key publishes it."""
    return PlanRecord(offset, key, value, tuple(unsigned(value or b"")))


def sent(offset: int, version: int, *, withdrawn: bool = False, **changes: Any) -> PlanRecord:
    """Return a signed record of a plan or a withdrawal, as the planner sends it."""
    value = withdrawn_value("group", version) if withdrawn else plan(version).to_bytes()
    kind: Kind = "withdrawn" if withdrawn else "plan"
    return PlanRecord(
        offset, KEY, value, tuple(signed(value, version=version, kind=kind, **changes))
    )


def after(*records: PlanRecord, verifier: Verifier | None = None) -> PlanState:
    """Return the state of a plan follower that has read these records."""
    cache = PlanCache("group", ORIGIN, verifier)
    for each in records:
        cache.apply(each)
    return cache.state


def version(state: PlanState) -> int | None:
    return state.plan.version if state.plan else None


def edited(**changes: object) -> bytes:
    """Return the bytes of plan version 2 with some JSON fields replaced."""
    return json.dumps({**json.loads(plan(2).to_bytes()), **changes}).encode()


HOSTILE = form(short=60, long=100_000)


@contextmanager
def room_for(more: int) -> Iterator[None]:
    """Limit this process's memory to its present use plus `more` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (psutil.Process().memory_info().data + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@pytest.mark.long
def test_hostile_plans_need_little_memory() -> None:
    """Reading many valid plans of ten million partitions needs at most 64 MiB more memory."""
    rng = random.Random(3)
    cache = PlanCache("group", ORIGIN, None)
    shares = ["0-9999999", ",".join(str(2 * number) for number in range(20_000))]
    with room_for(64 << 20):
        for offset in range(HOSTILE):
            changes = {
                "version": offset + 1,
                "partition_counts": {"t": 10_000_000},
                "members": {"a": {"topics": ["t"], "partitions": {"t": rng.choice(shares)}}},
                "weights": {},
            }
            value = edited(**changes)
            headers = unsigned(value)
            cache.apply(PlanRecord(offset, KEY, value, tuple(headers)))
    assert version(cache.state) == HOSTILE


def test_only_newer_versions_replace_a_plan() -> None:
    """The version never decreases, in any order of records."""
    records = [record(n, plan(v).to_bytes()) for n, v in enumerate((2, 1, 3, 3))]
    state = after(*records)
    assert (version(state), state.seen.version) == (3, 3)


def test_plan_after_a_tombstone_is_followed() -> None:
    """After a tombstone, only a plan with a higher version or epoch is followed."""
    first, gone = record(0, plan(5).to_bytes()), record(1, None)
    assert after(first, gone) == PlanState(None, Identity(1, 5, withdrawn=True))
    assert version(after(first, gone, record(2, plan(5).to_bytes()))) is None
    assert version(after(first, gone, record(2, plan(6).to_bytes()))) == 6
    assert version(after(first, gone, sent(2, 1, epoch=2))) == 1


def test_tombstone_before_the_current_plan_withdraws_nothing() -> None:
    """If records are read again, a tombstone does not withdraw the plan that came after it."""
    records = sent(0, 1), record(1, None), sent(2, 2)
    cache = PlanCache("group", ORIGIN, None, known=after(*records))
    for hostile in records:
        cache.apply(hostile)
    assert version(cache.state) == 2
    cache.apply(record(3, None))
    assert version(cache.state) is None


def test_newer_epoch_wins_over_a_higher_version() -> None:
    """Version 1 of a newer epoch replaces version 7; later records of the old epoch are ignored."""
    state = after(sent(0, 7, epoch=1), sent(1, 1, epoch=2), sent(2, 8, epoch=1))
    assert state.seen[:2] == (2, 1)


def test_withdrawal_covers_its_version_and_earlier_ones() -> None:
    """After version 2 is withdrawn, plans 1 and 2 are ignored; a newer plan is followed."""
    state = after(sent(0, 1), sent(1, 2), sent(2, 2, withdrawn=True), sent(3, 2), sent(4, 1))
    assert (state.plan, state.seen.rank) == (None, (1, 2, True))
    assert version(after(sent(0, 2, withdrawn=True), sent(1, 3, epoch=2))) == 3


def test_same_plan_sent_again_only_extends_its_lease() -> None:
    """A later lease extends the plan's lease, an earlier one does not; the plan is unchanged."""
    now = datetime.now(UTC).replace(microsecond=0)
    cache = PlanCache("group", ORIGIN, SIGNED)
    cache.apply(sent(0, 1, lease_until=now))
    first = cache.state
    for offset, (minutes, holds) in enumerate([(5, 5), (3, 5), (9, 9)], start=1):
        cache.apply(sent(offset, 1, lease_until=now + timedelta(minutes=minutes)))
        assert cache.state == replace(first, lease_until=now + timedelta(minutes=holds))
    assert cache.state.plan is first.plan


def test_known_version_with_other_bytes_is_refused() -> None:
    """The first plan with a version is kept, even if a second one has a valid signature."""
    other = plan(1, assignor="another").to_bytes()
    second = PlanRecord(1, KEY, other, tuple(signed(other)))
    state = after(sent(0, 1), second, verifier=SIGNED)
    assert state.plan is not None
    assert state.plan.assignor == "lag-aware"
    assert state.problem == "Version 1 was already read, with another content"


def test_tombstone_is_refused_if_plans_are_signed() -> None:
    """The tombstone is ignored, because it has no signature; the plan is still followed."""
    state = after(sent(0, 2), record(1, None), sent(2, 1), verifier=SIGNED)
    assert (version(state), state.problem) == (2, "A tombstone is not signed")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00\xff\xfe", id="random bytes"),
        pytest.param(plan(2).to_bytes()[:-20], id="truncated JSON"),
        pytest.param(b"[" * 100_000, id="nested too deep"),
        pytest.param(edited(format=99), id="wrong format number"),
        pytest.param(edited(group="other"), id="another group's name"),
        pytest.param(edited(version=-1), id="negative version"),
        pytest.param(
            edited(
                members={name: {"topics": ["t"], "partitions": {"t": "0"}} for name in ("a", "b")}
            ),
            id="a partition owned twice",
        ),
        pytest.param(
            edited(members={"a": {"topics": ["t"], "partitions": {"t": "0-2000000000"}}}),
            id="partitions the topic does not have",
        ),
    ],
)
def test_unreadable_record_leaves_the_last_good_plan(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names the record's offset, the reason, and the plan that is still followed."""
    with caplog.at_level(logging.WARNING):
        state = after(record(0, plan(1).to_bytes()), record(7, value))
    assert (version(state), state.seen.version, state.skipped) == (1, 1, 1)
    (warning,) = caplog.messages
    assert "offset 7" in warning
    assert str(state.problem) in warning
    assert "Version 1 stays" in warning


@given(st.binary())
def test_random_bytes_leave_the_last_good_plan(value: bytes) -> None:
    """Random bytes raise no error and replace no plan."""
    assert version(after(record(0, plan(1).to_bytes()), record(1, value))) == 1


def test_value_that_disagrees_with_its_hash_is_skipped() -> None:
    """A value that does not match its hash is skipped, even if it is a valid plan."""
    headers = tuple(unsigned(plan(1).to_bytes()))
    assert after(PlanRecord(0, KEY, plan(2).to_bytes(), headers)).plan is None

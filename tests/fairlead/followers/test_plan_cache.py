"""What each kind of record does to the plan that is followed."""

import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.followers.plan_cache import PlanCache, PlanRecord, PlanState
from fairlead.plans.document import PlanDocument, record_headers
from tests.fairlead.followers.helpers import make_plan

KEY = b"group"
SECRET = b"secret"


def plan(version: int, group: str = "group") -> PlanDocument:
    return make_plan({"a": {"t": [0, 1]}}, partition_counts={"t": 2}, group=group, version=version)


def record(offset: int, value: bytes | None, key: bytes = KEY) -> PlanRecord:
    """Return a record as the planner publishes it without a signing key."""
    return PlanRecord(offset, key, value, tuple(record_headers(value or b"")))


def after(*records: PlanRecord, signing_key: bytes | None = None) -> PlanState:
    """Return what a follower knows after these records."""
    cache = PlanCache("group", signing_key=signing_key)
    for each in records:
        cache.apply(each)
    return cache.state


def version(state: PlanState) -> int | None:
    return state.plan.version if state.plan else None


def edited(**changes: object) -> bytes:
    """Return the bytes of a plan of version 2 with some of its JSON replaced."""
    return json.dumps({**json.loads(plan(2).to_bytes()), **changes}).encode()


def test_newer_version_replaces_and_older_ones_are_ignored() -> None:
    """Versions only go up, whatever the order of records."""
    records = [record(n, plan(v).to_bytes()) for n, v in enumerate((2, 1, 3, 3))]
    state = after(*records)
    assert (version(state), state.offset) == (3, 2)


def test_records_of_other_groups_are_none_of_ours() -> None:
    """Keys share partitions; another group's plan is not even a problem."""
    state = after(record(0, plan(1, group="other").to_bytes(), key=b"other"))
    assert state == PlanState()


def test_tombstone_clears_and_a_later_plan_counts_again() -> None:
    """After a tombstone there is no plan, and any version may follow."""
    first, gone = record(0, plan(5).to_bytes()), record(1, None)
    assert after(first, gone) == PlanState(None, 1)
    assert version(after(first, gone, record(2, plan(1).to_bytes()))) == 1


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
    """It is skipped with one warning that says where it stands, why, and what stays."""
    with caplog.at_level(logging.WARNING):
        state = after(record(0, plan(1).to_bytes()), record(7, value))
    assert (version(state), state.offset, state.skipped) == (1, 0, 1)
    (warning,) = caplog.messages
    assert "offset 7" in warning
    assert str(state.problem) in warning
    assert "Version 1 stays" in warning


@given(st.binary())
def test_no_bytes_break_the_follower(value: bytes) -> None:
    """Whatever stands in the topic, the last good plan stays."""
    assert version(after(record(0, plan(1).to_bytes()), record(1, value))) == 1


def test_value_that_disagrees_with_its_hash_is_skipped() -> None:
    """Bytes changed on the way are no plan, even where they still parse."""
    headers = tuple(record_headers(plan(1).to_bytes()))
    assert after(PlanRecord(0, KEY, plan(2).to_bytes(), headers)).plan is None


def test_signature_is_demanded_where_a_key_is_set() -> None:
    """With a signing key, unsigned and wrongly signed plans are no plans."""
    value = plan(1).to_bytes()
    signed, wrong = (
        PlanRecord(0, KEY, value, tuple(record_headers(value, signing_key=key)))
        for key in (SECRET, b"wrong")
    )
    assert version(after(signed, signing_key=SECRET)) == 1
    assert after(wrong, signing_key=SECRET).plan is None
    assert after(record(0, value), signing_key=SECRET).plan is None


def test_good_plan_clears_the_problem() -> None:
    """A problem is the newest record's; how many were skipped stays known."""
    state = after(record(0, b"garbage"), record(1, plan(1).to_bytes()))
    assert (state.problem, state.skipped) == (None, 1)


def test_plan_of_five_megabytes_is_read() -> None:
    """Size alone is no reason to refuse a plan."""
    count = 500_000
    weights = {"t": np.random.default_rng(1).integers(10**9, 10**10, count).tolist()}
    big = make_plan({"a": {"t": [0]}}, partition_counts={"t": count}, weights=weights)
    value = big.to_bytes()
    assert len(value) > 5_000_000
    assert version(after(record(0, value))) == 1

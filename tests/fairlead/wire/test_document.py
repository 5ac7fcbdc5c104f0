"""The plan document: valid bytes are read back, and invalid bytes are refused."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import InvalidPlanError
from fairlead.wire.document import MAX_PARTITIONS, MemberShare, PlanDocument

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
names = st.text(
    st.characters(exclude_categories=["Cs"]),  # no surrogates: UTF-8 cannot encode them
    min_size=1,
    max_size=8,
)
times = st.datetimes(timezones=st.just(UTC))


@st.composite
def documents(draw: st.DrawFn) -> PlanDocument:
    """Generate a plan in which each partition has one owner or none."""
    counts = draw(st.dictionaries(names, st.integers(0, 12), max_size=4))
    members = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    shares: dict[str, dict[str, Any]] = {member: {} for member in members}
    for topic, count in counts.items():
        owner = np.array(
            draw(st.lists(st.integers(-1, len(members) - 1), min_size=count, max_size=count)),
            dtype=np.int32,
        )
        for index, member in enumerate(members):
            if (owner == index).any():
                shares[member][topic] = np.flatnonzero(owner == index).astype(np.int32)
    weight = st.floats(0, 1e15) | st.integers(0, 2**53)
    return PlanDocument(
        group=draw(names),
        version=draw(st.integers(1, 2**31 - 1)),
        plan_id=draw(names),
        assignor=draw(names),
        created_at=draw(times),
        snapshot_at=draw(times),
        topic_ids={topic: draw(names) for topic in counts if draw(st.booleans())},
        partition_counts=counts,
        members={
            member: MemberShare(tuple(sorted(counts)), share) for member, share in shares.items()
        },
        weights={
            topic: np.array(
                draw(st.lists(weight, min_size=count, max_size=count)), dtype=np.float64
            )
            for topic, count in counts.items()
            if draw(st.booleans())
        },
    )


def _plan() -> dict[str, Any]:
    """Return a valid document as JSON, for tests to alter."""
    return {
        "format": 2,
        "group": "orders",
        "version": 7,
        "plan_id": "e0c4",
        "assignor": "lag-aware",
        "created_at": NOW.isoformat(),
        "snapshot_at": NOW.isoformat(),
        "partition_counts": {"t0": 3},
        "topic_ids": {"t0": "Q0wK"},
        "members": {
            "a": {"topics": ["t0"], "partitions": {"t0": "0-1"}},
            "b": {"topics": ["t0"], "partitions": {"t0": "2"}},
        },
        "weights": {"t0": [100000, 60000, 50000.5]},
    }


def _read(raw: Any, **options: Any) -> PlanDocument:
    return PlanDocument.from_bytes(json.dumps(raw).encode(), **options)


@given(documents())
def test_plans_are_read_back(plan: PlanDocument) -> None:
    """For any plan, reading and writing again gives the same bytes."""
    value = plan.to_bytes()
    read = PlanDocument.from_bytes(value, group=plan.group)
    assert read.to_bytes() == value
    assert (read.version, read.created_at, read.topic_ids) == (
        plan.version,
        plan.created_at,
        plan.topic_ids,
    )
    assert {name: dict(share.partitions) for name, share in read.members.items()} == {
        name: {topic: pytest.approx(owned) for topic, owned in share.partitions.items()}
        for name, share in plan.members.items()
    }


def test_bytes_do_not_depend_on_the_order_of_insertion() -> None:
    """Equal plans have equal bytes, for any order of topics and members."""
    forward, backward = _plan(), _plan()
    backward["members"] = dict(reversed(backward["members"].items()))
    assert _read(forward).to_bytes() == _read(backward).to_bytes()


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_invalid_bytes_raise_only_our_error(value: bytes) -> None:
    """Random bytes and texts raise InvalidPlanError, and no other error."""
    with pytest.raises(InvalidPlanError):
        PlanDocument.from_bytes(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.sampled_from(sorted(_plan())), json_values)
def test_any_value_of_a_field_is_read_or_refused(name: str, value: Any) -> None:
    """Every JSON value of a field is either accepted or refused with InvalidPlanError."""
    try:
        plan = _read(_plan() | {name: value})
    except InvalidPlanError:
        return
    plan.to_bytes()


def _with(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def spoil(raw: dict[str, Any]) -> None:
        for key in path[:-1]:
            raw = raw[key]
        raw[path[-1]] = value

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_with("format", value=3), "has format 3; this version reads format 2"),
        (_with("format", value=1), "has format 1; this version reads format 2"),
        (_with("format", value=True), "has format True"),
        (_with("topic_ids", value={"t1": "Q0wK"}), "topic_ids.t1: the topic is not in"),
        (_with("topic_ids", value={"t0": 7}), "t0 is 7, not a string"),
        (_with("version", value=0), "versions count from 1"),
        (_with("version", value=True), "version is True, not a count"),
        (_with("group", value=""), "group is '', not a string"),
        (_with("created_at", value="2026-03-01T12:00:00"), "is not a time such as"),
        (_with("partition_counts", "t0", value=-1), "t0 is -1, not a count"),
        (_with("partition_counts", value={}), "'t0' has no partition count"),
        (_with("partition_counts", "t1", value=MAX_PARTITIONS), "more than 10,000,000 partitions"),
        (_with("members", "b", "partitions", "t0", value="1-2"), "t0-1 has more than one owner"),
        (_with("members", "b", "partitions", "t0", value="3"), "the topic has 3 partitions"),
        (_with("members", "b", "partitions", "t0", value=None), "is None, not a string"),
        (_with("members", "b", "topics", value="t0"), "not a list of topics"),
        (_with("weights", "t0", value=[1, 2]), "2 values for 3 partitions"),
        (_with("weights", "t0", value=[1, 2, -3]), "negative or not finite"),
        (_with("weights", "t0", value=["1", "2", "3"]), "not a list of numbers"),
        (_with("weights", "t1", value=[]), "weights.t1: the topic is not in partition_counts"),
        (_with("members", "b", "topics", value=["t1"]), "of 't0', to which it does not subscribe"),
    ],
)
def test_broken_invariants_are_named(spoil: Callable[[dict[str, Any]], None], message: str) -> None:
    """The error names the broken invariant and the field."""
    raw = _plan()
    spoil(raw)
    with pytest.raises(InvalidPlanError, match=message):
        _read(raw)


@pytest.mark.parametrize("name", sorted(set(_plan()) - {"format"}))
def test_missing_fields_are_named(name: str) -> None:
    """If a required field is missing, the error names the field."""
    raw = _plan()
    del raw[name]
    with pytest.raises(InvalidPlanError, match=f"lacks '{name}'"):
        _read(raw)


def test_deep_nesting_is_refused() -> None:
    """A document nested too deeply for the reader's stack raises InvalidPlanError."""
    with pytest.raises(InvalidPlanError, match="not UTF-8 JSON"):
        PlanDocument.from_bytes(b"[" * 200_000)


def test_repeated_claims_need_no_memory() -> None:
    """If 1,000 members claim all partitions of a topic, reading stops at the second member."""
    raw = _plan() | {
        "partition_counts": {"t0": 9_000_000},
        "members": {
            f"m{index}": {"topics": ["t0"], "partitions": {"t0": "0-8999999"}}
            for index in range(1000)
        },
        "weights": {},
    }
    with pytest.raises(InvalidPlanError, match="t0-0 has more than one owner"):
        _read(raw)


def test_repeated_name_is_refused() -> None:
    """An object that repeats a name is refused; JSON readers would keep only the last value."""
    twice = json.dumps(_plan()).replace('"b":', '"a":', 1).encode()
    with pytest.raises(InvalidPlanError, match="occurs twice"):
        PlanDocument.from_bytes(twice)

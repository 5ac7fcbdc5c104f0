"""A leader's decision: to follow the plan, or to fall back to `range`, with the reason."""

from datetime import UTC, datetime, timedelta

import pytest

from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.plan_or_fallback import decide
from fairlead.wire.members import GroupMember
from fairlead.wire.record import Identity
from fairlead.wire.record_reading import SKEW
from tests.fairlead.followers.helpers import DAY, make_plan

MEMBERS = [GroupMember("a-1", ("t",), client_id="a"), GroupMember("b-1", ("t",), client_id="b")]
PLAN = make_plan({"a": {"t": [0]}, "b": {"t": [1, 2, 3]}}, partition_counts={"t": 4})
SEEN = Identity(1, 1)
KNOWN = PlanState(PLAN, SEEN, DAY + timedelta(hours=1))
RANGE = {"a-1": {"t": [0, 1]}, "b-1": {"t": [2, 3]}}


def test_plan_is_followed_by_name() -> None:
    """Each member gets the partitions that the plan lists under the member's client id."""
    decision = decide(KNOWN, MEMBERS, {"t": 4}, now=DAY)
    assert decision.shares == {"a-1": {"t": [0]}, "b-1": {"t": [1, 2, 3]}}
    assert (decision.plan_version, decision.fallback_reason) == (1, None)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (PlanState(), "no plan has been published"),
        (PlanState(seen=SEEN), "the plan was withdrawn"),
        (PlanState(problem="why", skipped=1), "there is no readable plan: why"),
        (KNOWN, "plan version 1 expired at 2026-01-01 01:00:00+00:00"),
    ],
)
def test_range_with_a_reason_without_a_usable_plan(state: PlanState, reason: str) -> None:
    """Without a usable plan, partitions are assigned by `range`; the decision has the reason."""
    decision = decide(state, MEMBERS, {"t": 4}, now=DAY + timedelta(hours=1) + SKEW)
    assert decision.shares == RANGE
    assert (decision.plan_version, decision.fallback_reason) == (None, reason)


def test_clocks_may_differ_by_a_minute() -> None:
    """A plan is followed until a minute after its lease, in case the consumer's clock is ahead."""
    just_before = DAY + timedelta(hours=1) + SKEW - timedelta(seconds=1)
    assert decide(KNOWN, MEMBERS, {"t": 4}, now=just_before).plan_version == 1


def test_members_with_one_name_share_no_partition() -> None:
    """If two members have the same client id, each partition still gets only one owner."""
    twins = [GroupMember(f"a-{number}", ("t",), client_id="a") for number in range(2)]
    decision = decide(KNOWN, twins, {"t": 4}, now=DAY)
    owned = [p for share in decision.shares.values() for p in share["t"]]
    assert sorted(owned) == [0, 1, 2, 3]


def test_static_members_come_first_in_range() -> None:
    """Static members come first, by instance id, then the others by member id, as in Kafka."""
    members = [
        GroupMember("a", ("t",)),
        GroupMember("z", ("t",), instance_id="one"),
        GroupMember("b", ("t",)),
    ]
    shares = decide(PlanState(), members, {"t": 3}, now=DAY).shares
    assert shares == {"z": {"t": [0]}, "a": {"t": [1]}, "b": {"t": [2]}}


def test_the_longest_lease_is_valid() -> None:
    """Adding the clock tolerance to the latest possible end of a lease causes no overflow."""
    state = PlanState(PLAN, SEEN, datetime.max.replace(tzinfo=UTC))
    assert decide(state, MEMBERS, {"t": 4}, now=DAY).plan_version == 1

"""When a member requests a rebalance to adopt a newer plan."""

import random
from datetime import UTC, datetime, timedelta

from fairlead.followers.core.rejoin import RejoinSchedule
from fairlead.wire.record import Identity


def test_no_request_before_the_group_has_settled() -> None:
    """During a rebalance a member makes no request: the rebalance adopts the newest plan."""
    schedule = RejoinSchedule(jitter_s=0.0)
    assert not schedule.due(seen=Identity(1, 1), now=0.0)
    schedule.settle(Identity(1, 0))
    schedule.unsettle()
    assert not schedule.due(seen=Identity(1, 1), now=0.0)


def test_one_request_per_plan_within_the_jitter() -> None:
    """A member makes one request for a plan, at a random time within the jitter."""
    schedule = RejoinSchedule(jitter_s=10.0, rng=random.Random(1))
    schedule.settle(Identity(1, 0))
    times = [now for now in range(30) if schedule.due(seen=Identity(1, 1), now=now)]
    assert len(times) == 1
    assert times[0] <= 10


def test_plan_that_the_group_knows_causes_no_request() -> None:
    """A member makes no request for a plan that was the newest in the group's last rebalance."""
    schedule = RejoinSchedule(jitter_s=0.0)
    schedule.settle(Identity(1, 0))
    schedule.settle(Identity(1, 5))
    assert not schedule.due(seen=Identity(1, 5), now=0.0)


def test_stream_of_plans_does_not_delay_the_request() -> None:
    """Further plans do not postpone the request that the first plan scheduled."""
    schedule = RejoinSchedule(jitter_s=10.0, rng=random.Random(1))
    schedule.settle(Identity(1, 0))
    assert any(schedule.due(seen=Identity(1, 1 + now), now=now) for now in range(12))


def test_later_members_request_only_if_earlier_ones_do_not() -> None:
    """A member with `turn_s=4` makes its request only if no other does for four seconds."""
    schedule = RejoinSchedule(jitter_s=0.0)
    schedule.settle(Identity(1, 0), turn_s=4.0)
    assert [schedule.due(seen=Identity(1, 1), now=now) for now in (0.0, 3.0, 4.0)] == [
        False,
        False,
        True,
    ]


def test_plan_that_is_sent_again_causes_no_request() -> None:
    """A known plan that is sent again causes no request; its withdrawal causes one."""
    schedule = RejoinSchedule(jitter_s=0.0)
    schedule.settle(Identity(1, 5, sha256="9f2c"))
    assert not schedule.due(seen=Identity(1, 5, sha256="9f2c"), now=0.0)
    assert schedule.due(seen=Identity(1, 5, withdrawn=True), now=0.0)


def test_expired_plan_causes_one_request_per_lease() -> None:
    """Each renewal of an expired lease causes one request, even if members' clocks differ."""
    first = datetime(2026, 1, 1, tzinfo=UTC)
    second = first + timedelta(hours=6)
    plan = Identity(1, 5)
    schedule = RejoinSchedule(jitter_s=0.0)
    schedule.settle(plan, lapsed=True)
    assert not schedule.due(seen=plan, now=0.0, lapsed=True, lease_until=first)
    requests = []
    for until in (first, first, second):
        requests.append(schedule.due(seen=plan, now=0.0, lease_until=until))
        schedule.settle(plan, lapsed=True)
    assert requests == [True, False, True]


def test_longer_lease_of_a_followed_plan_causes_no_request() -> None:
    """A longer lease changes no member's share, so no rebalance is needed."""
    schedule = RejoinSchedule(jitter_s=0.0)
    schedule.settle(Identity(1, 5))
    until = datetime(2026, 1, 1, tzinfo=UTC)
    assert not schedule.due(seen=Identity(1, 5), now=0.0, lease_until=until)

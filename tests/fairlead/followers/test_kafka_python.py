"""Real kafka-python consumers on a real broker follow plans."""

import pytest
from tests.fairlead.followers.helpers import Fleet, eventually, make_plan

pytestmark = pytest.mark.kafka


def test_group_owns_what_a_published_plan_says(fleet: Fleet) -> None:
    """Two consumers that start after the plan own exactly their shares, and say its version."""
    topic = fleet.topics[0]
    shares = {"a": {topic: [0]}, "b": {topic: [1, 2, 3]}}
    fleet.publish(make_plan(shares, partition_counts={topic: 4}, group=fleet.group))
    members = {name: fleet.join(name) for name in shares}
    eventually(
        lambda: {name: member.owned for name, member in members.items()} == shares,
        "each owns its share",
    )
    assert [m.consumer.plan_assignor.plan_version for m in members.values()] == [1, 1]

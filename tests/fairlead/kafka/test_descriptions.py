"""Reading unusual descriptions of groups, which no client can cause in a test."""

from typing import Any

import pytest

from fairlead.errors import GroupAbsentError, GroupError, GroupUnsettledError
from fairlead.kafka.descriptions import NUL, group_error, read_description


def member(client_id: str, **more: Any) -> dict[str, Any]:
    """Return a member as kafka-python describes it."""
    return {
        "member_id": f"{client_id}-1",
        "client_id": client_id,
        "client_host": "/127.0.0.1",
        "member_metadata": {"topics": ["t"]},
        "member_assignment": None,
    } | more


def group(*members: dict[str, Any]) -> dict[str, Any]:
    """Return a group as kafka-python describes it."""
    return {
        "error": None,
        "group_state": "Stable",
        "protocol_type": "consumer",
        "protocol_data": "range",
        "members": list(members),
    }


@pytest.mark.parametrize(
    "broken", [member(f"a{NUL}b"), member(f"a{NUL}b", member_metadata=b"nonsense")]
)
def test_nul_is_an_error_of_its_group_only(broken: dict[str, Any]) -> None:
    """A NUL in a name is an error of its group; else Postgres would refuse rows of all groups."""
    found = read_description("g", group(member("a"), broken))
    assert found.members == ()
    assert found.error is not None
    assert r"a\0b" in found.error
    assert NUL not in found.error


@pytest.mark.parametrize(
    ("partitions", "what"),
    [
        ([-5, 2**31 - 1, 0, 0], "a partition twice"),
        ([-5, 2**31 - 1], "partition -5"),
        ([3, 1, 3], "a partition twice"),
    ],
)
def test_impossible_assignment_is_an_error_of_its_group(partitions: list[int], what: str) -> None:
    """An assignment with an impossible or repeated partition is an error that names the member."""
    assigned = {"assigned_partitions": [{"topic": "t", "partitions": partitions}]}
    found = read_description("g", group(member("a"), member("b", member_assignment=assigned)))
    assert found.members == ()
    assert found.error == (
        f"The assignment of member b-1 (client b) names {what} of topic t: the group's leader "
        "computed it wrongly"
    )


@pytest.mark.parametrize(
    ("answer", "exception"),
    [
        ({"error": "[Error 69] GroupIdNotFoundError: gone"}, GroupAbsentError),
        ({"group_state": "Dead"}, GroupAbsentError),
        ({"error": "[Error 16] NotCoordinatorError"}, GroupUnsettledError),
        ({"error": "[Error 30] GroupAuthorizationFailedError"}, GroupUnsettledError),
        ({"group_state": "PreparingRebalance"}, GroupUnsettledError),
        ({"error": "[Error 69] GroupIdNotFoundError: g is not a classic group"}, GroupError),
        ({"protocol_type": "connect"}, GroupError),
    ],
)
def test_only_an_absent_group_ends_its_plan(
    answer: dict[str, str], exception: type[GroupError]
) -> None:
    """Only answers about an absent group become GroupAbsentError, which ends the group's plan."""
    assert type(group_error(read_description("g", group() | answer))) is exception


def test_a_rebalance_trigger_is_no_member() -> None:
    """The planner's own short-lived member, which triggers rebalances, is left out."""
    found = read_description("g", group(member("a"), member("fairlead-rebalance-trigger")))
    assert [described.name for described in found.members] == ["a"]

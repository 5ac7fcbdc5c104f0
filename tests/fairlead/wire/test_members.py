"""Names of members in plans, and members' user data."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.members import (
    AssignmentNote,
    GroupMember,
    SubscriptionNote,
    decode_assignment,
    decode_subscription,
    member_names,
)

# Few letters, so that names, client ids and member ids often collide.
letters = st.sampled_from("abcd")
groups = st.lists(
    st.builds(
        GroupMember,
        member_id=letters,
        topics=st.just(()),
        instance_id=st.none() | letters,
        client_id=st.none() | letters,
    ),
    unique_by=lambda member: member.member_id,
)


@given(groups)
def test_names_of_members_are_unique(members: list[GroupMember]) -> None:
    """All names differ, so each share in a plan belongs to one member."""
    names = member_names(members)
    assert names.keys() == {member.member_id for member in members}
    assert len(set(names.values())) == len(names)


def test_instance_id_takes_precedence_over_client_id() -> None:
    """A member's name is its member id if its client id is another member's instance id."""
    members = [
        GroupMember("m0", (), instance_id="one", client_id="app"),
        GroupMember("m1", (), client_id="one"),
        GroupMember("m2", (), client_id="app"),
    ]
    assert member_names(iter(members)) == {"m0": "one", "m1": "m1", "m2": "app"}


@given(st.none() | st.binary() | st.sampled_from([b"[]", b'{"fairlead":1,"client_id":3}']))
def test_foreign_user_data_are_an_empty_note(user_data: bytes | None) -> None:
    """Missing user data, and user data of other assignors, are decoded like empty user data."""
    assert decode_subscription(user_data) == SubscriptionNote()
    assert decode_assignment(user_data) == AssignmentNote()

"""Cooperative rebalances: two rounds reach any assignment, and no partition has two owners."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairlead.followers.core.cooperation import first_round
from fairlead.wire.fit import Shares
from fairlead.wire.members import GroupMember

MEMBERS = ("a", "b", "c")
owners = st.lists(st.sampled_from(MEMBERS), min_size=6, max_size=6)
claims = st.lists(st.sets(st.sampled_from(MEMBERS)), min_size=6, max_size=6)


def shares(by_partition: list[str]) -> Shares:
    return {
        member: {"t": [p for p, owner in enumerate(by_partition) if owner == member]}
        for member in MEMBERS
    }


def group(claimed: list[set[str]]) -> list[GroupMember]:
    return [
        GroupMember(
            member, ("t",), owned={"t": [p for p, who in enumerate(claimed) if member in who]}
        )
        for member in MEMBERS
    ]


@given(owners, claims)
def test_no_partition_has_two_readers(goal: list[str], claimed: list[set[str]]) -> None:
    """Even if members' claims contradict each other, no partition has two readers at a time."""
    for member, share in first_round(shares(goal), group(claimed)).items():
        for partition in share.get("t", []):
            assert claimed[partition] <= {member}


@given(owners, claims)
def test_partition_that_stays_is_not_revoked(goal: list[str], claimed: list[set[str]]) -> None:
    """A partition that only its future owner claims is assigned to this owner in round one."""
    first = first_round(shares(goal), group(claimed))
    for partition, owner in enumerate(goal):
        if claimed[partition] == {owner}:
            assert partition in first[owner]["t"]


@given(owners, claims)
def test_second_round_completes_the_goal(goal: list[str], claimed: list[set[str]]) -> None:
    """If members own what the first round assigned, the second round assigns all of `goal`."""
    first = first_round(shares(goal), group(claimed))
    settled = [replace(m, owned=first[m.member_id]) for m in group(claimed)]
    second = first_round(shares(goal), settled)
    wanted = shares(goal)
    assert {m: s.get("t", []) for m, s in second.items()} == {m: s["t"] for m, s in wanted.items()}

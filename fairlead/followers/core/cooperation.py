"""Cooperative rebalances (KIP-429): a member gives up a partition before another member gets it.

Belongs here: the part of an assignment that can take effect immediately. Belongs elsewhere: the
assignment (`plan_or_fallback`), and the second rebalance, which client libraries start: a member
that has given up partitions joins again.
"""

from collections.abc import Sequence

from fairlead.wire.fit import Shares
from fairlead.wire.members import GroupMember
from fairlead.wire.partitions import Pair, pairs


def first_round(shares: Shares, members: Sequence[GroupMember]) -> Shares:
    """Return each member's partitions, without those that another member still owns.

    If the owner of a partition receives a share without this partition, the owner gives the
    partition up and joins again. At this second rebalance, the partition has no owner and can be
    assigned. If two members claim to own a partition, no share contains the partition, because one
    of the claims is outdated.

    Parameters
    ----------
    shares
        The final assignment: the partition numbers of each member, by member id and topic.
    members
        All members; eager ones own nothing during a rebalance.

    Examples
    --------
    >>> members = [GroupMember("a", ("t",), owned={"t": [0, 1]}), GroupMember("b", ("t",))]
    >>> first_round({"a": {"t": [0]}, "b": {"t": [1, 2]}}, members)
    {'a': {'t': [0]}, 'b': {'t': [2]}}
    """
    holders: dict[Pair, set[str]] = {}
    for member in members:
        for pair in pairs(member.owned):
            holders.setdefault(pair, set()).add(member.member_id)
    if not holders:
        return shares
    first: Shares = {}
    for member_id, share in shares.items():
        free_or_mine: tuple[set[str], ...] = (set(), {member_id})
        first[member_id] = {
            topic: numbers
            for topic, partitions in share.items()
            if (
                numbers := [p for p in partitions if holders.get((topic, p), set()) in free_or_mine]
            )
        }
    return first

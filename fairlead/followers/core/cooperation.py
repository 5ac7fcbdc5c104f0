"""Cooperative rebalances (KIP-429): a partition is given up before it is given away.

Belongs here: what of a decision can take effect at once. Does not: the decision
(`plan_or_fallback`), nor the second round: whoever gives a partition up rejoins, which its client
library sees to.
"""

from collections.abc import Sequence

from fairlead.wire.fit import Shares
from fairlead.wire.members import GroupMember


def first_round(shares: Shares, members: Sequence[GroupMember]) -> Shares:
    """Leave out of every share what another member still holds on to.

    Whoever holds it finds it missing from its own share, gives it up and rejoins; by then nobody
    holds it. What a member owns and keeps stays in its share throughout. A partition that two
    members claim, one of them out of date, is left out for both: they cannot both be right.

    Parameters
    ----------
    shares
        Member id to topic to partition numbers: where everything is to go.
    members
        All members; eager ones hold nothing.

    Examples
    --------
    >>> members = [GroupMember("a", ("t",), owned={"t": [0, 1]}), GroupMember("b", ("t",))]
    >>> first_round({"a": {"t": [0]}, "b": {"t": [1, 2]}}, members)
    {'a': {'t': [0]}, 'b': {'t': [2]}}
    """
    holders: dict[tuple[str, int], set[str]] = {}
    for member in members:
        for topic, partitions in member.owned.items():
            for partition in partitions:
                holders.setdefault((topic, partition), set()).add(member.member_id)
    if not holders:
        return shares
    first: Shares = {}
    for member_id, share in shares.items():
        free_or_mine: tuple[set[str], ...] = (set(), {member_id})
        first[member_id] = {
            topic: kept
            for topic, partitions in share.items()
            if (kept := [p for p in partitions if holders.get((topic, p), set()) in free_or_mine])
        }
    return first

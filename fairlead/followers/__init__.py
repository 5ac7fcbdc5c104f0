"""Followers: consumers that read their group's plan, and follow it at a rebalance.

`core` is common to all clients; `kafka_python`, `aiokafka` and `confluent` are for one client each.
Two packages work without plans: `client_assignors` has assignors that consumers use directly, and
`cleanup` reports the partitions that a rebalance really takes away. The bytes that members exchange
are in `fairlead.wire`.

A consumer application needs only numpy and its client library. Plan followers need the classic
group protocol (`group.protocol=classic`), because under KIP-848 the broker assigns partitions. A
plan that expires starts no rebalance, but at the next rebalance the group no longer follows it.
"""

from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.status import FollowerStatus

__all__ = ["FollowOptions", "FollowerStatus"]

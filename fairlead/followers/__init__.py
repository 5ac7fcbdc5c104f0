"""Followers: consumers that read their group's plan, and follow it at a rebalance.

`core` is common to all clients; `kafka_python`, `aiokafka` and `confluent` are for one client each.
Without plans: `client_assignors` are assignors that consumers use directly, and `cleanup` reports
the partitions that a rebalance really takes. The bytes that members exchange are in
`fairlead.wire`.

A consumer application needs only numpy and its client library. Followers need the classic group
protocol (`group.protocol=classic`): under KIP-848 the broker assigns. An expired plan starts no
rebalance; the next one drops it.
"""

from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.status import FollowerStatus

__all__ = ["FollowOptions", "FollowerStatus"]

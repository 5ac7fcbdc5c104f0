"""Followers: consumers that read their group's plan at a rebalance and adopt it.

`core` is what followers have in common, whatever their client; `kafka_python`, `aiokafka` and
`confluent` are each a client's. Beside plans: `client_assignors` are assignors that consumers use
without plans, and `cleanup` tells what a rebalance truly takes. What members tell each other is in
`fairlead.wire`.

Numpy and the client library are all a consumer application needs. Followers need the classic
group protocol (`group.protocol=classic`): under KIP-848 the broker assigns. A plan that expires
is dropped at the next rebalance; it starts none.
"""

from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.status import FollowerStatus

__all__ = ["FollowOptions", "FollowerStatus"]

"""Followers: consumers that read their group's plan at a rebalance and adopt it.

`fit` adapts a plan to who is really there and `decision` is what a group's leader decides from it,
`cooperation` what of it can take effect at once; `members` says who the members are and what they
tell each other; `plan_cache` and `plan_reader` keep the last good plan at hand; `rejoin` decides
when a new plan is worth a rebalance; `follower` carries one consumer through its rebalances. None
of these knows a client library. Modules named after one make consumers of them.

confluent-kafka has no assignors; its members agree among themselves: `roll_call` holds the rules of
that, `pin_records` what they tell each other, `pins` and `pin_listener` the log they agree through,
`caller` one member's part in it and `membership` the consumer's. All read the time from a `clock`
that is handed in, and so run against a simulated one, too.

Beside plans: `direct` and `lags` let the assignors decide alone (`kafka_python_assignors`,
`aiokafka_assignors`), `holdings` tells what a rebalance truly takes (`kafka_python_cleanup`,
`aiokafka_cleanup`).

Numpy and the client library are all a consumer application needs. Followers need the classic
group protocol (`group.protocol=classic`): under KIP-848 the broker assigns. A plan that expires
is dropped at the next rebalance; it starts none.
"""

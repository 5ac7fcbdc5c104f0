"""Parts of plan followers that are common to all clients.

`follower` is one consumer's plan follower, for clients in which the group leader assigns
partitions; `plan_reader` tails the plan topic into a `plan_cache`; `plan_or_fallback` decides for
the leader; `rejoin` decides when to request a rebalance for a newer plan; `cooperation` implements
KIP-429; `status` describes a plan follower to people on call.
"""

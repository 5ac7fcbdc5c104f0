"""Parts of plan followers that are common to all clients.

`follower` is one consumer's plan follower, for clients in which the group leader assigns
partitions; `plan_reader` reads the plan topic in the background, and `plan_cache` stores the last
valid plan; `plan_or_fallback` assigns partitions for the leader; `rejoin` decides when to request a
rebalance for a newer plan; `cooperation` implements KIP-429; `status` describes a plan follower to
people on call.
"""

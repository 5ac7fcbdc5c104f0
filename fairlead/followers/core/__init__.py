"""Parts of followers that are common to all clients.

`follower` is one consumer's follower if the group leader decides; `plan_reader` tails the plan
topic into a `plan_cache`; `plan_or_fallback` is the leader's decision; `rejoin` asks for rebalances
for newer plans; `cooperation` implements KIP-429; `status` is for people on call.
"""

"""What followers have in common, whatever their client.

`follower` is one consumer's follower where the group's leader decides; `plan_reader` tails the plan
topic into a `plan_cache`; `plan_or_fallback` says which of the two holds; `rejoin` when a newer
plan is worth a rebalance; `cooperation` how KIP-429 hands over; `status` what people on call ask.
"""

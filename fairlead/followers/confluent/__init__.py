"""Follow plans with confluent-kafka: `PlanConsumer`.

`consumer` is what applications use, by `config`. `membership` takes it through its life in the
group; `participant` through roll calls, each an `attendance` whose rules are in `roll_call`;
`states` are what a member may be in; `rejoin_policy` says when to ask for another. `pin_listener`
keeps the `pin_log` open, through which members agree; `plan_source` reads the plan topic; `topics`
is what both ask the cluster.
"""

from fairlead.followers.confluent.consumer import PlanConsumer

__all__ = ["PlanConsumer"]

"""Follow plans with confluent-kafka: `PlanConsumer`.

`consumer` is what applications use, checked by `config`. A `member` owns the state; `generation` is
one round of agreement by the rules of `agreement_round`; `rejoin_policy` decides when to ask for a
rebalance. `log_listener` keeps the `agreement_log` open, through which members agree. `plan_source`
reads the plan topic, `clients` are shared by followers, `reporting` adds reports of work to
commits.
"""

from fairlead.followers.confluent.consumer import PlanConsumer

__all__ = ["PlanConsumer"]

"""Follow plans with confluent-kafka: `PlanConsumer`.

Applications use the class in `consumer`; `config` checks its settings. `member` holds a consumer's
state in the group; `generation` carries out one agreement round, by the rules in `agreement_round`;
`rejoin_policy` decides when to request a rebalance. Members agree through the `agreement_log`,
which `log_listener` keeps open. `plan_source` reads the plan topic, `clients` creates the clients
that followers share, and `reporting` adds reports of work to commits.
"""

from fairlead.followers.confluent.consumer import PlanConsumer

__all__ = ["PlanConsumer"]

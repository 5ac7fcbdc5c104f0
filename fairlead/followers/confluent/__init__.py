"""Follow plans with confluent-kafka: `PlanConsumer`.

Applications use the class in `consumer`; `config` checks its settings. `member` tracks a consumer's
state in the group. After each rebalance, the members agree on an assignment in an agreement round:
`agreement_round` contains the rules, `generation` applies them, `agreement_log` exchanges records
through the coordination topic, and `log_listener` reconnects to this topic. `rejoin_policy` decides
when to request a rebalance. `plan_source` reads the plan topic, `clients` creates the clients that
plan followers share, and `reporting` adds reports of processing times to commits.
"""

from fairlead.followers.confluent.consumer import PlanConsumer

__all__ = ["PlanConsumer"]

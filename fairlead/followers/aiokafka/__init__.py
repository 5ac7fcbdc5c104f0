"""Follow plans with aiokafka: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

`consumer` contains the consumer and the assignor; `plan_source` reads the plan topic; `join` makes
a consumer with several assignors join only once; `metadata` adds the rack to subscriptions;
`reporting` adds reports of processing times to commits.
"""

from fairlead.followers.aiokafka.consumer import PlanAssignor, PlanConsumer

__all__ = ["PlanAssignor", "PlanConsumer"]

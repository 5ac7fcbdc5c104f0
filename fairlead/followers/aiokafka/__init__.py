"""Follow plans with aiokafka: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

`consumer` is the consumer and the assignor; `plan_source` reads the plan topic; `join` lets a
consumer with several assignors join once.
"""

from fairlead.followers.aiokafka.consumer import PlanAssignor, PlanConsumer

__all__ = ["PlanAssignor", "PlanConsumer"]

"""Follow plans with kafka-python: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

`consumer` is the consumer and the assignor; `plan_source` reads the plan topic; `join` asks for
rebalances; `connect` makes clients that do not leak.
"""

from fairlead.followers.kafka_python.consumer import PlanAssignor, PlanConsumer

__all__ = ["PlanAssignor", "PlanConsumer"]

"""Follow plans with kafka-python: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

`consumer` contains the consumer and the assignor; `plan_source` reads the plan topic; `join`
requests rebalances; `reporting` adds reports of processing times to commits.
"""

from fairlead.followers.kafka_python.consumer import PlanAssignor, PlanConsumer

__all__ = ["PlanAssignor", "PlanConsumer"]

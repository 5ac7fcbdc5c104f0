"""The Dagster definitions of the planner. `build_defs(**overrides)` makes variants for tests."""

from typing import Any

import dagster as dg

from assets.assignment_plan import assignment_plan
from assets.candidate_plans import candidate_plans
from assets.checks import CHECKS
from assets.group_offsets import group_offsets
from assets.partition_lag import partition_lag
from assets.plan_adoption import plan_adoption
from assets.published_plan import published_plan
from assets.resources import KafkaResource, SettingsResource, SparkResource, StoreResource
from orchestration.jobs import adoption, planning
from orchestration.operations import OPERATIONS
from orchestration.planning_sensor import planning_sensor
from orchestration.samples import group_samples, sample
from orchestration.schedules import planning_schedule
from orchestration.sensors import approved_plans, group_discovery, plan_life


def build_defs(**overrides: Any) -> dg.Definitions:
    """Return the definitions; `overrides` replace arguments of `dagster.Definitions`."""
    arguments: dict[str, Any] = {
        "assets": [
            group_offsets,
            partition_lag,
            candidate_plans,
            assignment_plan,
            published_plan,
            plan_adoption,
        ],
        "asset_checks": CHECKS,
        "jobs": [planning, adoption, sample, *OPERATIONS],
        "schedules": [planning_schedule],
        "sensors": [
            group_discovery,
            approved_plans,
            plan_life,
            group_samples,
            planning_sensor,
        ],
        "resources": {
            "settings": SettingsResource(),
            "kafka": KafkaResource(),
            "store": StoreResource(),
            "spark": SparkResource(),
        },
        # Steps in one process share a Spark session; in separate processes, every step would start
        # its own.
        "executor": dg.in_process_executor,
    }
    return dg.Definitions(**(arguments | overrides))


defs = build_defs()

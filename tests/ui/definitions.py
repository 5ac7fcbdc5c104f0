"""The code location with a schedule and sensors whose next ticks a test can wait for."""

from copy import copy

import dagster as dg

from orchestration.definitions import build_defs
from orchestration.samples import group_samples
from orchestration.schedules import build_planning_schedule
from orchestration.sensors import approved_plans, group_discovery, plan_life


def often(sensor: dg.SensorDefinition) -> dg.SensorDefinition:
    """Return a sensor that ticks whenever the daemon looks: every five seconds."""
    again = copy(sensor)
    again._min_interval = 1  # noqa: SLF001 - a definition cannot be made of another one
    return again


defs = build_defs(
    schedules=[build_planning_schedule("* * * * *")],
    sensors=[*map(often, (group_discovery, approved_plans, plan_life)), group_samples],
)

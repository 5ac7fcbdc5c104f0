"""Fairlead's Dagster definitions for the UI's tests: sensors tick every five seconds.

The sensor `group_samples` keeps its own interval.
"""

from copy import copy

import dagster as dg

from orchestration.definitions import build_defs
from orchestration.samples import group_samples
from orchestration.sensors import approved_plans, group_discovery, plan_life


def often(sensor: dg.SensorDefinition) -> dg.SensorDefinition:
    """Return a copy of a sensor with the daemon's shortest interval, five seconds."""
    again = copy(sensor)
    again._min_interval = 1  # noqa: SLF001 - a definition cannot be made of another one
    return again


defs = build_defs(
    sensors=[*map(often, (group_discovery, approved_plans, plan_life)), group_samples]
)

"""The code location with a schedule whose next tick a test can wait for."""

from orchestration.definitions import build_defs
from orchestration.schedules import build_planning_schedule

defs = build_defs(schedules=[build_planning_schedule("* * * * *")])

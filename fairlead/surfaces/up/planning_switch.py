"""The switch of planning in Dagster: read whether planning is on, and turn it on, as the UI does.

Belongs here: two requests to Dagster's GraphQL. Does not: sensors and schedules (`orchestration`).
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.request import Request, urlopen

from fairlead.surfaces.links import LOCATION

#: The sensor that starts planning runs if a sample shows that a group needs a plan. Off by default.
SENSOR: Final = "planning_sensor"
SCHEDULE: Final = "planning_schedule"
#: Seconds that a code location may take to load after the webserver answers.
LOADING_S: Final = 900.0
_POLL_S: Final = 0.5
_ASK_S: Final = 10.0
_IN: Final = {"repositoryLocationName": LOCATION, "repositoryName": "__repository__"}
_START: Final = """
mutation Start($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) { __typename } }
"""
_STATES: Final = """
query States($sensor: SensorSelector!, $schedule: ScheduleSelector!) {
  sensor: sensorOrError(sensorSelector: $sensor) {
    ... on Sensor { state: sensorState { status } }
  }
  schedule: scheduleOrError(scheduleSelector: $schedule) {
    ... on Schedule { state: scheduleState { status } }
  }
}
"""


def describe(switches: Sequence[str] | None) -> str:
    """Describe in one line whether planning is on; `switches` is the result of `planning`."""
    if switches is None:
        return "Whether planning is on is unknown; run `fairlead doctor` later"
    if not switches:
        return "Planning is off: to turn it on, run `fairlead up --plan`"
    when = "when a sample shows that a plan helps" if SENSOR in switches else "at its times"
    return f"Planning is on ({', '.join(switches)}): groups are planned {when}"


def planning(dagster_url: str, *, turn_on: bool) -> list[str] | None:
    """Wait until Dagster has loaded `SENSOR` and `SCHEDULE`; return the names of those that are on.

    Returns None if Dagster does not answer in time.

    Parameters
    ----------
    dagster_url
        Dagster's address.
    turn_on
        Whether to turn on the sensor first.
    """
    sensor, schedule = _IN | {"sensorName": SENSOR}, _IN | {"scheduleName": SCHEDULE}
    deadline = time.monotonic() + LOADING_S
    while time.monotonic() < deadline:
        if turn_on:
            started = _ask(dagster_url, _START, sensor=sensor).get("startSensor") or {}
            turn_on = started.get("__typename") != "Sensor"
        if not turn_on:
            answer = _ask(dagster_url, _STATES, sensor=sensor, schedule=schedule)
            states = {
                name: ((answer.get(kind) or {}).get("state") or {}).get("status")
                for kind, name in (("sensor", SENSOR), ("schedule", SCHEDULE))
            }
            if all(states.values()):
                return [name for name, state in states.items() if state == "RUNNING"]
        time.sleep(_POLL_S)
    return None


def _ask(dagster_url: str, query: str, **variables: Mapping[str, str]) -> dict[str, Any]:
    """Return Dagster's answer to a GraphQL query; empty if it does not answer."""
    question = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{dagster_url}/graphql", question, headers)  # noqa: S310 - our own server
    try:
        with urlopen(request, timeout=_ASK_S) as answer:  # noqa: S310 - our own server
            return json.load(answer).get("data") or {}
    except (OSError, ValueError):
        return {}

"""Whether Dagster plans by itself, asked and turned on as its UI does.

Belongs here: two questions to Dagster's GraphQL. Does not: sensors and schedules (`orchestration`).
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.request import Request, urlopen

from fairlead.surfaces.links import LOCATION

#: Plans the groups for which a look calls; off until somebody turns it on.
SENSOR: Final = "planning_sensor"
SCHEDULE: Final = "planning_schedule"
#: For as long a code location may load after the webserver answers.
LOADING_S: Final = 180.0
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


@dataclass(frozen=True)
class Planning:
    """What plans groups by itself.

    Parameters
    ----------
    by
        Names of sensors and schedules that are on; None: Dagster did not tell.
    """

    by: tuple[str, ...] | None

    def __str__(self) -> str:
        """Say it in a line."""
        if self.by is None:
            return "Planning: Dagster does not say whether it is on; `fairlead doctor` asks again"
        if not self.by:
            return "Planning is off: nothing is planned by itself. `fairlead up --plan` turns it on"
        return (
            f"Planning is on ({', '.join(self.by)}): groups are planned when a look finds that a "
            "plan helps"
            if SENSOR in self.by
            else f"Planning is on ({SCHEDULE}): groups are planned when they are due"
        )


def planning(dagster_url: str, *, turn_on: bool) -> Planning:
    """Ask Dagster what plans by itself, once it has loaded the pipeline.

    Parameters
    ----------
    dagster_url
        Where it answers.
    turn_on
        Turn the sensor on first.
    """
    sensor, schedule = _IN | {"sensorName": SENSOR}, _IN | {"scheduleName": SCHEDULE}
    deadline = time.monotonic() + LOADING_S
    while time.monotonic() < deadline:
        if turn_on:
            started = _ask(dagster_url, _START, sensor=sensor).get("startSensor") or {}
            turn_on = started.get("__typename") != "Sensor"
        if not turn_on:
            found = _ask(dagster_url, _STATES, sensor=sensor, schedule=schedule)
            states = {
                name: ((found.get(kind) or {}).get("state") or {}).get("status")
                for kind, name in (("sensor", SENSOR), ("schedule", SCHEDULE))
            }
            if all(states.values()):
                return Planning(tuple(name for name, state in states.items() if state == "RUNNING"))
        time.sleep(_POLL_S)
    return Planning(None)


def _ask(dagster_url: str, query: str, **variables: Mapping[str, str]) -> dict[str, Any]:
    """Return what Dagster answers; nothing where it does not."""
    question = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{dagster_url}/graphql", question, headers)  # noqa: S310 - our own server
    try:
        with urlopen(request, timeout=_ASK_S) as answer:  # noqa: S310 - our own server
            return json.load(answer).get("data") or {}
    except (OSError, ValueError):
        return {}

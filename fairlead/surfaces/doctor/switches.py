"""The doctor's checks of Dagster: its home, daemons, sensors and their last ticks.

Belongs here: running `orchestration.switches` in a process, and checking its answer. Belongs
elsewhere: importing Dagster.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from fairlead.common.words import length
from fairlead.settings import Settings
from fairlead.surfaces.doctor.finding import Finding
from fairlead.surfaces.pipeline import HOME_VARIABLE, PIPELINE, dagster_home

#: The sensor that starts planning runs if samples show that a group needs a plan; off by default.
SENSOR: Final = "planning_sensor"
_PLANNING: Final = (SENSOR, "planning_schedule")
_SAMPLES: Final = "group_samples"
_OLD: Final = timedelta(minutes=15)


def examine_dagster(settings: Settings) -> Iterator[Finding]:
    """Check the instance in Dagster's home: daemons, sensors, and when each sensor last ran."""
    home = dagster_home(settings)
    if not (home / "dagster.yaml").exists():
        detail = (
            f"there is no dagster.yaml in {home}: whether sampling and planning are on is unknown"
        )
        how = f"`fairlead up` creates it; or set {HOME_VARIABLE} to Dagster's home"
        yield Finding("dagster", "warning", detail, how)
        return
    try:
        state = read_switches(home)
    except OSError as error:
        yield Finding("dagster", "failed", str(error), "check the storage in its dagster.yaml")
        return
    yield from findings(state)


def read_switches(home: Path) -> dict[str, Any]:
    """Return the answer of `orchestration.switches` for a Dagster home.

    Raises
    ------
    OSError
        Dagster cannot read its storage.
    """
    completed = subprocess.run(
        [sys.executable, "-m", f"{PIPELINE}.switches"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, HOME_VARIABLE: str(home)},
    )
    if completed.returncode:
        raise OSError(f"{home}: {completed.stderr.strip().rpartition(chr(10))[2]}")
    switches: dict[str, Any] = json.loads(completed.stdout)
    return switches


def planning_on(switches: Mapping[str, Any]) -> list[str]:
    """Return the names of the sensor and the schedule that start planning runs, if they are on."""
    return [name for name in _PLANNING if name in switches["on"]]


def findings(state: Mapping[str, Any]) -> Iterator[Finding]:
    """Return findings about Dagster's daemons, sensors and schedules.

    Parameters
    ----------
    state
        The result of `orchestration.switches`. `on` and `off` are names of sensors and schedules,
        `dead` are names of daemons. `ticked` maps sensors and schedules to the time of their last
        run, in seconds since 1970.
    """
    if dead := state["dead"]:
        detail = f"these daemons are dead: {', '.join(dead)}"
        yield Finding("dagster", "failed", detail, "fairlead up, or dagster-daemon run")
    else:
        yield Finding("dagster", "ok", "its daemons run")
    if _SAMPLES in state["off"]:
        detail = "the sensor is off: no samples are taken"
        yield Finding(_SAMPLES, "warning", detail, _start(_SAMPLES))
    else:
        yield from _ticked(_SAMPLES, state["ticked"].get(_SAMPLES))
    planning = planning_on(state)
    if not planning:
        detail = f"{' and '.join(_PLANNING)} are off: nothing is planned automatically"
        yield Finding("planning", "warning", detail, f"fairlead up --plan, or {_start(SENSOR)}")
        return
    yield Finding("planning", "ok", f"{', '.join(planning)} on")
    if SENSOR in planning:
        yield from _ticked(SENSOR, state["ticked"].get(SENSOR))


def _ticked(sensor: str, at: float | None) -> Iterator[Finding]:
    """Yield a warning if a sensor that is on has not run lately, else a finding in state `ok`.

    `at` is when the sensor last ran, in seconds since 1970; None: never.
    """
    now = datetime.now(UTC)
    how = "is the daemon running? `fairlead up`, or dagster-daemon run"
    if at is None:
        yield Finding(sensor, "warning", "the sensor is on, but has not run yet", how)
        return
    then = datetime.fromtimestamp(at, UTC)
    old = now - then > _OLD
    detail = f"the sensor last ran {length(now - then)} ago"
    yield Finding(sensor, "warning" if old else "ok", detail, how if old else "")


def _start(sensor: str) -> str:
    return f"turn {sensor} on in Dagster, under Automation"

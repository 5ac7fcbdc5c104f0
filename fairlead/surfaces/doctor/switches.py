"""What the doctor finds of Dagster: its home, daemons, sensors and when they last ticked.

Belongs here: asking in a process of its own, and what the answer means. Does not: Dagster, which
the library knows nothing of (`orchestration.switches` asks it).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fairlead.settings import Settings
from fairlead.surfaces.doctor.finding import Finding, ago
from fairlead.surfaces.pipeline import HOME_VARIABLE, PIPELINE, dagster_home

_PLANS_BY_ITSELF: Final = ("planning_sensor", "planning_schedule")
_LOOKS: Final = "group_samples"
_OLD: Final = timedelta(minutes=15)


def examine_dagster(settings: Settings) -> Iterator[Finding]:
    """Look at Dagster's home: whether daemons beat, what looks and plans, and when it last did."""
    home = dagster_home(settings)
    if not (home / "dagster.yaml").exists():
        said = f"there is no dagster.yaml in {home}: what looks and plans by itself is not known"
        how = f"`fairlead up` makes it; or set {HOME_VARIABLE} to where Dagster's home is"
        yield Finding("dagster", "warning", said, how)
        return
    asked = subprocess.run(
        [sys.executable, "-m", f"{PIPELINE}.switches"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, HOME_VARIABLE: str(home)},
    )
    if asked.returncode:
        said = f"{home}: {asked.stderr.strip().rpartition(chr(10))[2]}"
        yield Finding("dagster", "failed", said, "dagster.yaml there says where its storage is")
        return
    yield from switched(json.loads(asked.stdout))


def switched(found: Mapping[str, Any]) -> Iterator[Finding]:
    """Say what the switches of Dagster mean.

    Parameters
    ----------
    found
        As `orchestration.switches` tells them: sensors and schedules that are `on` and `off`,
        daemons that are `dead`, and when which sensor last ticked, in seconds since 1970.
    """
    if dead := found["dead"]:
        said = f"these daemons do not beat: {', '.join(dead)}"
        yield Finding("dagster", "failed", said, "fairlead up, or dagster-daemon run")
    else:
        yield Finding("dagster", "ok", "its daemons beat")
    if _LOOKS in found["off"]:
        said = "the sensor is off: nothing is looked at"
        yield Finding(_LOOKS, "warning", said, _start(_LOOKS))
    else:
        yield from _ticked(_LOOKS, found["ticked"].get(_LOOKS))
    planning = [name for name in _PLANS_BY_ITSELF if name in found["on"]]
    if not planning:
        said = f"{' and '.join(_PLANS_BY_ITSELF)} are off: nothing is planned by itself"
        yield Finding(
            "planning", "warning", said, f"fairlead up --plan, or {_start('planning_sensor')}"
        )
        return
    yield Finding("planning", "ok", f"{', '.join(planning)} on")
    if "planning_sensor" in planning:
        yield from _ticked("planning_sensor", found["ticked"].get("planning_sensor"))


def _ticked(sensor: str, at: float | None) -> Iterator[Finding]:
    """Say when a sensor that is on last ticked."""
    now = datetime.now(UTC)
    how = "is the daemon running? `fairlead up`, or dagster-daemon run"
    if at is None:
        yield Finding(sensor, "warning", "the sensor is on, and has not ticked yet", how)
        return
    then = datetime.fromtimestamp(at, UTC)
    old = now - then > _OLD
    said = f"the sensor last ticked {ago(then, now)}"
    yield Finding(sensor, "warning" if old else "ok", said, how if old else "")


def _start(sensor: str) -> str:
    return f"turn {sensor} on in Dagster, under Automation"

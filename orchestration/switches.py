"""`python -m orchestration.switches`: what runs in Dagster, as JSON, for `fairlead doctor`.

Belongs here: reading the instance of `DAGSTER_HOME`. Belongs elsewhere: advice
(`fairlead.surfaces.doctor`), which must work without Dagster.
"""

import json
from typing import Any

import dagster as dg


def switches(instance: dg.DagsterInstance) -> dict[str, Any]:
    """Return the state of Dagster's sensors, schedules and daemons.

    Keys: `on` and `off`, the names of sensors and schedules; `ticked`, the time at which each of
    them last ran, in seconds since 1970; `dead`, the names of daemons that should run but do not.
    A sensor that was never turned on or off, and never ran, is neither in `on` nor in `off`.
    """
    states = instance.all_instigator_state()
    daemons = instance.get_daemon_statuses()
    return {
        "on": sorted(state.name for state in states if state.is_running),
        "off": sorted(state.name for state in states if not state.is_running),
        "ticked": {state.name: at for state in states if (at := _last_tick(instance, state))},
        "dead": sorted(
            name for name, daemon in daemons.items() if daemon.required and not daemon.healthy
        ),
    }


def _last_tick(instance: dg.DagsterInstance, state: Any) -> float | None:
    """Return when a sensor or schedule last ticked, in seconds since 1970."""
    ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
    return ticks[0].timestamp if ticks else None


if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        print(json.dumps(switches(instance)))  # noqa: T201 - the answer to the parent process

"""`python -m orchestration.switches`: what of Dagster runs, as JSON, for `fairlead doctor`.

Belongs here: asking the instance of `DAGSTER_HOME`. Does not: what is to be done about it, which
must work without Dagster.
"""

import json

import dagster as dg


def switches(instance: dg.DagsterInstance) -> dict[str, list[str]]:
    """Return which sensors and schedules are on and off, and which daemons do not beat.

    A sensor that nobody has switched, and that is on by default, is in neither list.
    """
    states = instance.all_instigator_state()
    daemons = instance.get_daemon_statuses()
    return {
        "on": sorted(state.name for state in states if state.is_running),
        "off": sorted(state.name for state in states if not state.is_running),
        "dead": sorted(name for name, one in daemons.items() if one.required and not one.healthy),
    }


if __name__ == "__main__":
    with dg.DagsterInstance.get() as found:
        print(json.dumps(switches(found)))  # noqa: T201 - the answer

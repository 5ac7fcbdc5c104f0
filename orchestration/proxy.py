"""Tag each run with the name of the person who launched it, from a header that a proxy sets.

Open-source Dagster itself knows no users.

Belongs here: the run coordinator, and the tag that it writes. Belongs elsewhere: the use of the
name (`operations`). This module must import little, because Dagster's own processes import it.
"""

from collections.abc import Mapping
from typing import Any, Final, Self, cast

import dagster as dg

#: The run's tag with the name of the person who launched the run, from the proxy's header.
ACTOR_TAG: Final = "fairlead/actor"


class ProxyRunCoordinator(dg.QueuedRunCoordinator[dg.DagsterInstance]):
    """Dagster's queue, which tags each run with the person that a proxy names in a header.

    In dagster.yaml, beside other settings of the queue::

        run_coordinator:
          module: orchestration.proxy
          class: ProxyRunCoordinator
          config:
            header: X-Forwarded-User

    Parameters
    ----------
    header
        The header with the person's name.
    queue
        Arguments of `QueuedRunCoordinator`.

    Notes
    -----
    Only the proxy's header sets the tag. Any user could type the tag into the launchpad, add it to
    a backfill, or copy it by executing a run again. Therefore an existing tag is overwritten, or
    emptied if there is no header. Runs of schedules, sensors, backfills and automatic retries are
    submitted by the daemon, without a request, so they have no person.

    The webserver must be reachable only through the proxy, and the proxy must replace a header of
    this name that a client sends. Otherwise clients can claim any name. People who may run commands
    on Dagster's host, or write to its database, can claim any name, too.
    """

    def __init__(self, header: str = "X-Forwarded-User", **queue: Any) -> None:
        super().__init__(**queue)
        self._header = header

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Return the schema of the configuration: the queue's settings, and the header's name."""
        header = dg.Field(
            dg.StringSource,
            default_value="X-Forwarded-User",
            description="The header with the person's name.",
        )
        return {**cast("dict[str, Any]", super().config_type()), "header": header}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> Self:
        """Create the coordinator from dagster.yaml."""
        return cls(inst_data=inst_data, **config_value)

    def submit_run(self, context: Any) -> dg.DagsterRun:
        """Tag a run with the person, and put the run into the queue."""
        run = context.dagster_run
        actor = (context.get_request_header(self._header) or "").strip()
        if actor or ACTOR_TAG in run.tags:  # a tag cannot be removed, only emptied
            self._instance.add_run_tags(run.run_id, {ACTOR_TAG: actor})
        return super().submit_run(context)

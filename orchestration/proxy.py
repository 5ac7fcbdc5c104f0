"""Who launched a run, from the proxy that knows: open-source Dagster knows no user.

Belongs here: the run coordinator that writes the tag, and the tag. Does not: what is done with the
name (`operations`). Dagster's own processes import this module: it stays light.
"""

from collections.abc import Mapping
from typing import Any, Final, Self, cast

import dagster as dg

#: The run's tag that says who launched it, where a proxy in front of the UI knows.
ACTOR_TAG: Final = "fairlead/actor"


class ProxyRunCoordinator(dg.QueuedRunCoordinator[dg.DagsterInstance]):
    """Dagster's queue, which tags each run with the person that a proxy names in a header.

    In dagster.yaml, beside whatever else the queue is told::

        run_coordinator:
          module: orchestration.proxy
          class: ProxyRunCoordinator
          config:
            header: X-Forwarded-User

    Parameters
    ----------
    header
        The header in which the proxy passes the name on.
    queue
        As for `QueuedRunCoordinator`.

    Notes
    -----
    The tag says what the proxy said, and nothing else. Anybody can type a tag into the launchpad,
    give it to a backfill, or copy it by running somebody else's run again: whatever is there
    already is overwritten, or emptied where no header came. Runs of schedules, sensors, backfills
    and automatic retries come from the daemon, without a request: nobody launched them.

    A header is only as good as the way it came. The webserver must be reachable through the proxy
    alone, and the proxy must replace a header of this name that a client sends, not add to it: else
    everybody is whoever they say. Whoever may run commands beside Dagster, or write to its
    database, is not held up by any of this.
    """

    def __init__(self, header: str = "X-Forwarded-User", **queue: Any) -> None:
        super().__init__(**queue)
        self._header = header

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Return the queue's configuration, and the header's name."""
        header = dg.Field(
            dg.StringSource,
            default_value="X-Forwarded-User",
            description="The header in which the proxy passes the person's name on.",
        )
        return {**cast("dict[str, Any]", super().config_type()), "header": header}

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> Self:
        """Make one as dagster.yaml says."""
        return cls(inst_data=inst_data, **config_value)

    def submit_run(self, context: Any) -> dg.DagsterRun:
        """Put a run into the queue, tagged."""
        run = context.dagster_run
        actor = (context.get_request_header(self._header) or "").strip()
        if actor or ACTOR_TAG in run.tags:  # Dagster cannot remove a tag
            self._instance.add_run_tags(run.run_id, {ACTOR_TAG: actor})
        return super().submit_run(context)

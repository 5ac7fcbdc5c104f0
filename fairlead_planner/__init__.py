"""The planner for a Dagster project that there is: its definitions, or a component of them.

Belongs here: the doors. Does not: what is behind them (`orchestration`, `assets`), which the wheel
has as subpackages of this one, and a checkout beside it.

In a project's own definitions, one line more::

    defs = dg.Definitions.merge(dg.Definitions(assets=[...]), fairlead_planner.definitions())

or, where definitions are found in a folder, a `defs.yaml` in a folder of its own::

    type: fairlead_planner.PlannerComponent
"""

from typing import Any

import dagster as dg

from orchestration.definitions import build_defs
from orchestration.schedules import build_planning_schedule

__all__ = ["PlannerComponent", "definitions"]


def definitions(*, planning_schedule: str | None = None, **overrides: Any) -> dg.Definitions:
    """Return the planner's definitions, to be merged with others.

    Parameters
    ----------
    planning_schedule
        When cohorts are planned that are due, as cron writes it; None: as the setting
        `planning.schedule` says.
    overrides
        Arguments of `dagster.Definitions`, in place of the planner's.

    Notes
    -----
    They bring no executor along, since a project has one: jobs of the planner run in one process
    each, and what is materialized outside of them runs as the project's executor says. Resources
    are called `settings`, `kafka`, `store` and `spark`, and Dagster refuses to merge others of
    these names with them; the planner is then a code location of its own, whose module is
    `orchestration.definitions` of this package.
    """
    schedules = [build_planning_schedule(planning_schedule)]
    return build_defs(**({"schedules": schedules, "executor": None} | overrides))


class PlannerComponent(dg.Component, dg.Model, dg.Resolvable):
    """The planner, as `defs.yaml` says.

    Parameters
    ----------
    planning_schedule
        When cohorts are planned that are due, as cron writes it; None: as the setting
        `planning.schedule` says.
    """

    planning_schedule: str | None = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the planner's definitions."""
        del context
        return definitions(planning_schedule=self.planning_schedule)

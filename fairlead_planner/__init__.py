"""The planner for an existing Dagster project, as definitions or as a component.

Belongs here: the entry points. Belongs elsewhere: the definitions (`orchestration`, `assets`). In
the wheel, those are subpackages of this package; in a checkout, they are folders beside it.

To merge the definitions with a project's own::

    defs = dg.Definitions.merge(dg.Definitions(assets=[...]), fairlead_planner.definitions())

or, if definitions are loaded from a folder, add a folder with a `defs.yaml`::

    type: fairlead_planner.PlannerComponent
"""

from typing import Any

import dagster as dg

from orchestration.definitions import build_defs
from orchestration.schedules import build_planning_schedule

__all__ = ["PlannerComponent", "definitions"]


def definitions(*, planning_schedule: str | None = None, **overrides: Any) -> dg.Definitions:
    """Return the planner's definitions, to merge with a project's own.

    Parameters
    ----------
    planning_schedule
        Cron expression of the planning schedule; None: the setting `planning.schedule`.
    overrides
        Arguments of `dagster.Definitions`. Each replaces the planner's argument of the same name.

    Notes
    -----
    The definitions have no executor, since a project has its own. Each job of the planner runs in
    one process; other materializations use the project's executor. The planner's resources are
    called `settings`, `kafka`, `store` and `spark`. If the project has other resources with these
    names, Dagster refuses to merge. Then load the planner as a separate code location, from
    `orchestration.definitions` of this package.
    """
    schedules = [build_planning_schedule(planning_schedule)]
    return build_defs(**({"schedules": schedules, "executor": None} | overrides))


class PlannerComponent(dg.Component, dg.Model, dg.Resolvable):
    """The planner, configured in `defs.yaml`.

    Parameters
    ----------
    planning_schedule
        Cron expression of the planning schedule; None: the setting `planning.schedule`.
    """

    planning_schedule: str | None = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the planner's definitions."""
        del context
        return definitions(planning_schedule=self.planning_schedule)

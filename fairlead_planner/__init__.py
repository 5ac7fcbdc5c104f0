"""The planner for an existing Dagster project: its definitions, or a component of them.

Belongs here: the entry points. Does not: the definitions (`orchestration`, `assets`), which are
subpackages of this one in the wheel, and beside it in a checkout.

In a project's own definitions, merge them::

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
    """Return the planner's definitions, to merge with others.

    Parameters
    ----------
    planning_schedule
        Cron expression of the planning schedule; None: the setting `planning.schedule`.
    overrides
        Arguments of `dagster.Definitions`, in place of the planner's.

    Notes
    -----
    They have no executor, since a project has one: each job of the planner runs in one process, and
    other materializations run in the project's executor. Resources are called `settings`, `kafka`,
    `store` and `spark`. If the project has others of these names, Dagster refuses to merge: load
    the planner as a code location of its own, from `orchestration.definitions` of this package.
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

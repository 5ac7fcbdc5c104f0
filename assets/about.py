"""Owners and tags of definitions, for the UI.

Belongs here: the common arguments of assets, checks, jobs, schedules and sensors. Does not: their
work.
"""

from typing import Any, Final, Literal

OWNERS: Final = ["team:fairlead"]

#: The tag that shows what a run changes, so that people know which runs are safe.
CHANGES: Final = "fairlead/changes"

#: Values of the tag. `nothing`: only snapshots. `history`: rows in Postgres. `plans`: plans that no
#: consumer follows yet. `consumers`: the plan topic. `partitions`: Dagster's partitions.
Changed = Literal["nothing", "history", "plans", "consumers", "partitions"]


def about(what: Changed) -> dict[str, Any]:
    """Return the owners of a definition, and its tag."""
    return {"owners": OWNERS, "tags": {CHANGES: what}}

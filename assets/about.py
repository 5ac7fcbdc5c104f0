"""Owners and tags of Dagster definitions, shown in the UI.

Belongs here: arguments that assets, checks, jobs, schedules and sensors share. Belongs elsewhere:
the definitions themselves.
"""

from typing import Any, Final, Literal

OWNERS: Final = ["team:fairlead"]

#: The tag that shows what a run changes, so that people know which runs are safe.
CHANGES: Final = "fairlead/changes"

#: Values of the tag `CHANGES`: what a run writes. `nothing`: at most snapshots. `history`: rows in
#: Postgres other than plans. `plans`: plans that no consumer follows yet. `consumers`: plans that
#: consumers follow. `partitions`: Dagster's list of partitions.
Changed = Literal["nothing", "history", "plans", "consumers", "partitions"]


def about(what: Changed) -> dict[str, Any]:
    """Return the arguments `owners` and `tags` of a Dagster definition.

    `what` names the data that the definition's runs change.
    """
    return {"owners": OWNERS, "tags": {CHANGES: what}}

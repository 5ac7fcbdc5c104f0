"""What a definition says of itself beside its description: owners, what it changes, its source.

Belongs here: what assets, checks, jobs, schedules and sensors have in common for who looks at them
in the UI. Does not: what any of them does.
"""

import inspect
from typing import Any, Final, Literal

import dagster as dg

OWNERS: Final = ["team:fairlead"]

#: The tag that says what a run changes, so that people can tell what is safe to start.
CHANGES: Final = "fairlead/changes"

#: `nothing` but snapshots; the `history` in Postgres; `plans`, which nobody follows before they are
#: published; what `consumers` own, by the plan topic; or Dagster's own `partitions`.
Changed = Literal["nothing", "history", "plans", "consumers", "partitions"]


def changes(what: Changed) -> dict[str, str]:
    """Return the tags of a definition.

    Examples
    --------
    >>> changes("plans")
    {'fairlead/changes': 'plans'}
    """
    return {CHANGES: what}


def written_here() -> dict[str, Any]:
    """Return the metadata that lead from a definition in the UI to the line that calls this.

    Assets need none: Dagster's `with_source_code_references` gives them theirs.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None:
        return {}
    place = dg.LocalFileCodeReference(
        file_path=caller.f_code.co_filename, line_number=caller.f_lineno
    )
    return {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[place])}

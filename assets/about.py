"""Owners, tags and sources of definitions, for the UI.

Belongs here: the common arguments of assets, checks, jobs, schedules and sensors. Does not: their
work.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final, Literal

import dagster as dg

OWNERS: Final = ["team:fairlead"]

#: The tag that shows what a run changes, so that people know which runs are safe.
CHANGES: Final = "fairlead/changes"

#: Values of the tag. `nothing`: only snapshots. `history`: rows in Postgres. `plans`: plans that no
#: consumer follows yet. `consumers`: the plan topic. `partitions`: Dagster's partitions.
Changed = Literal["nothing", "history", "plans", "consumers", "partitions"]


def changes(what: Changed) -> dict[str, str]:
    """Return the tags of a definition.

    Examples
    --------
    >>> changes("plans")
    {'fairlead/changes': 'plans'}
    """
    return {CHANGES: what}


def about(what: Changed, callers: int = 2) -> dict[str, Any]:
    """Return the owners, tags and metadata of a definition; `callers` as in `written_here`."""
    return {"owners": OWNERS, "tags": changes(what), "metadata": written_here(callers)}


def written_here(callers: int = 1) -> dict[str, Any]:
    """Return metadata with a link from the UI to the caller's line.

    Parameters
    ----------
    callers
        Number of frames between that line and this function; 1: the line calls this function.
    """
    frame = inspect.currentframe()
    for _ in range(callers):
        frame = frame and frame.f_back
    return {} if frame is None else _written_at(frame.f_code.co_filename, frame.f_lineno)


def written_at(function: Callable[..., Any]) -> dict[str, Any]:
    """Return metadata with a link from the UI to a function.

    Dagster's `with_source_code_references` would link to the function's decorators.
    """
    code = inspect.unwrap(function).__code__
    return _written_at(code.co_filename, code.co_firstlineno)


def _written_at(path: str, line: int) -> dict[str, Any]:
    place = dg.LocalFileCodeReference(file_path=path, line_number=line)
    return {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[place])}

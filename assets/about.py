"""Owners, tags and sources of definitions, for people who look at them in the UI.

Belongs here: what assets, checks, jobs, schedules and sensors have in common. Does not: what any of
them does.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final, Literal

import dagster as dg

OWNERS: Final = ["team:fairlead"]

#: The tag with what a run changes, so that people know what is safe to start.
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


def about(what: Changed, callers: int = 2) -> dict[str, Any]:
    """Return the owners, tags and metadata of a definition; `callers` as in `written_here`."""
    return {"owners": OWNERS, "tags": changes(what), "metadata": written_here(callers)}


def written_here(callers: int = 1) -> dict[str, Any]:
    """Return the metadata that lead from a definition in the UI to the line that calls this.

    Parameters
    ----------
    callers
        How far up that line is; 1: it calls this function.
    """
    frame = inspect.currentframe()
    for _ in range(callers):
        frame = frame and frame.f_back
    return {} if frame is None else _written_at(frame.f_code.co_filename, frame.f_lineno)


def written_at(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the metadata that lead from a definition in the UI to a function.

    Dagster's `with_source_code_references` takes a function's decorators for the function.
    """
    code = inspect.unwrap(function).__code__
    return _written_at(code.co_filename, code.co_firstlineno)


def _written_at(path: str, line: int) -> dict[str, Any]:
    place = dg.LocalFileCodeReference(file_path=path, line_number=line)
    return {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[place])}

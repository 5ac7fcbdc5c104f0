"""The result of one check of the doctor.

Belongs here: its fields, and what several checks share. Does not: the checks.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    name
        Name of the check.
    state
        `ok`; `warning`: it works with a limit; `failed`: it does not work.
    detail
        The result in a sentence.
    remedy
        The remedy; "": none is needed.
    """

    name: str
    state: str
    detail: str
    remedy: str = ""


def existing(path: Path) -> Path:
    """Return a path if it exists, else its nearest folder that does."""
    return next(place for place in (path, *path.parents) if place.exists())

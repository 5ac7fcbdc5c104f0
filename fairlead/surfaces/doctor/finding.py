"""The result of one check of the doctor.

Belongs here: the fields of a result, and code that several checks share. Belongs elsewhere: the
checks.
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
        `ok`: no problem. `warning`: the planner works, but worse than it could, or the check could
        not find out. `failed`: a part of the planner does not work.
    detail
        The result in a sentence.
    remedy
        What to do; "" if nothing.
    """

    name: str
    state: str
    detail: str
    remedy: str = ""


def existing(path: Path) -> Path:
    """Return a path if it exists, else its nearest parent folder that exists."""
    return next(place for place in (path, *path.parents) if place.exists())

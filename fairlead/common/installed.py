"""Name and version of the installed distribution.

Belongs here: its metadata. Does not: the import name, `fairlead`.
"""

from importlib.metadata import version
from typing import Final

#: `fairlead` is another project on PyPI.
DISTRIBUTION: Final = "kafka-fairlead"


def installed_version() -> str:
    """Return the installed version."""
    return version(DISTRIBUTION)

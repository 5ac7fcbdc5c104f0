"""The package that Fairlead is installed from: its name and its version.

Belongs here: what importlib knows it by. Does not: the import name, `fairlead`.
"""

from importlib.metadata import version
from typing import Final

#: On PyPI `fairlead` is another project.
DISTRIBUTION: Final = "kafka-fairlead"


def installed_version() -> str:
    """Return the version that is installed."""
    return version(DISTRIBUTION)

"""Name and version of the installed distribution.

Does not belong here: the name of the imported package, `fairlead`.
"""

from importlib.metadata import version
from typing import Final

#: Name on PyPI, where `fairlead` is another project.
DISTRIBUTION: Final = "kafka-fairlead"


def installed_version() -> str:
    """Return the installed version."""
    return version(DISTRIBUTION)

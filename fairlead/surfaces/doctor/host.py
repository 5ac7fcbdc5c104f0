"""The doctor's checks of this host: Java, installed packages, the disk.

Belongs here: checks that need no network. Belongs elsewhere: services (`database`, `kafka`,
`switches`).
"""

import importlib.util
import shutil
from collections.abc import Iterator
from typing import Final
from urllib.request import urlopen

from fairlead.errors import FairleadError
from fairlead.settings import Settings
from fairlead.surfaces.doctor.finding import Finding, existing

_LEAST_DISK: Final = 2**30
_ANSWER_S: Final = 10.0


def examine_host(settings: Settings) -> Iterator[Finding]:
    """Check what planning needs on this machine."""
    from fairlead.sandbox.java import find_java  # noqa: PLC0415 - only the doctor needs it

    try:
        yield Finding("java", "ok", str(find_java()))
    except FairleadError as error:
        yield Finding("java", "failed", str(error))
    for package, what in (("pyspark", "planning runs"), ("dagster", "schedules, sensors, the UI")):
        if importlib.util.find_spec(package) is None:
            detail = f"{package} is missing: {what} need it"
            yield Finding(
                package, "warning", detail, "install Fairlead's wheel with its extra: planner"
            )
    place = existing(settings.state_dir.absolute())
    free = shutil.disk_usage(place).free
    detail = f"{free / 2**30:.1f} GiB free at {place}"
    if free < _LEAST_DISK:
        yield Finding(
            "disk", "failed", detail, "free some space, or set state_dir to another place"
        )
    else:
        yield Finding("disk", "ok", detail)


def answered(address: str) -> Finding:
    """Check that a web server answers."""
    try:
        with urlopen(address, timeout=_ANSWER_S):  # noqa: S310 - the user's address
            return Finding("answers", "ok", f"{address} answers")
    except (OSError, ValueError) as error:
        return Finding("answers", "failed", f"{address} does not answer: {error}", "see its log")

"""What the doctor finds of the archive of samples: whether it can be written, damaged files.

Belongs here: what prevents storing samples. Does not: the age of the last sample (`database`).
"""

import os
from collections.abc import Iterator
from pathlib import Path

from fairlead.archive import DAMAGED, FOLDER, SampleArchive
from fairlead.common.visible import visible
from fairlead.common.words import plural
from fairlead.errors import FileSystemError
from fairlead.settings import Settings
from fairlead.surfaces.doctor.finding import Finding


def examine_archive(settings: Settings) -> Iterator[Finding]:
    """Check the archive of samples; without it, groups are analysed by fewer samples.

    Raises
    ------
    ConfigurationError
        The warehouse is neither a path nor a URI.
    """
    archive = SampleArchive(settings.warehouse_path)
    path = f"{archive.warehouse}/{FOLDER}"
    try:
        damaged = archive.damaged()
    except FileSystemError as error:
        yield Finding("archive", "warning", str(error))
        return
    if "://" not in path and not _writable(Path(path)):
        detail = f"samples cannot be written to {path}"
        yield Finding(
            "archive", "warning", detail, "make it a directory that this user may write to"
        )
    elif damaged:
        detail = (
            f"{path}/{DAMAGED} has {plural(len(damaged), 'damaged file')}, the newest "
            f"{visible(damaged[-1])}: samples in them are not used"
        )
        remedy = "delete them if nobody needs them; they are deleted after sampling.retention"
        yield Finding("archive", "warning", detail, remedy)
    else:
        yield Finding("archive", "ok", f"samples are stored in {path}")


def _writable(place: Path) -> bool:
    """Whether a directory can be written to, or made."""
    while not place.exists():
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)

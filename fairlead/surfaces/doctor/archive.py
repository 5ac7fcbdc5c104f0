"""What the doctor finds of the archive of looks: whether it can be written, damaged files.

Belongs here: what keeps looks from being kept. Does not: how old the last look is (`database`).
"""

import os
from collections.abc import Iterator
from pathlib import Path

from fairlead.archive import DAMAGED, FOLDER, LookArchive
from fairlead.common.visible import visible
from fairlead.common.words import plural
from fairlead.errors import FileSystemError
from fairlead.settings import Settings
from fairlead.surfaces.doctor.finding import Finding


def examine_archive(settings: Settings) -> Iterator[Finding]:
    """Look at the archive of looks; groups are analysed without it, too, but by less.

    Raises
    ------
    ConfigurationError
        The warehouse is neither a path nor a URI.
    """
    archive = LookArchive(settings.warehouse_path)
    path = f"{archive.warehouse}/{FOLDER}"
    try:
        damaged = archive.damaged()
    except FileSystemError as error:
        yield Finding("archive", "warning", str(error))
        return
    if "://" not in path and not _writable(Path(path)):
        said = f"looks cannot be written to {path}"
        yield Finding("archive", "warning", said, "make it a directory that this user may write to")
    elif damaged:
        said = (
            f"{path}/{DAMAGED} has {plural(len(damaged), 'damaged file')}, the newest "
            f"{visible(damaged[-1])}: looks in them are not used"
        )
        remedy = "remove them once nobody needs them; after sampling.retention they are removed"
        yield Finding("archive", "warning", said, remedy)
    else:
        yield Finding("archive", "ok", f"looks are kept in {path}")


def _writable(place: Path) -> bool:
    """Whether a directory can be written to, or made."""
    while not place.exists():
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)

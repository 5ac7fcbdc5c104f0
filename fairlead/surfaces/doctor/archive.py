"""The doctor's checks of the archive of samples: write access, damaged files.

Belongs here: obstacles to storing samples. Belongs elsewhere: the age of the last sample
(`database`).
"""

import os
from collections.abc import Iterator
from pathlib import Path

from fairlead.archive import DAMAGED, FOLDER, SampleArchive
from fairlead.common.visible import visible
from fairlead.common.words import plural
from fairlead.errors import FileSystemError
from fairlead.settings import Settings
from fairlead.surfaces.doctor.finding import Finding, existing


def examine_archive(settings: Settings) -> Iterator[Finding]:
    """Check the archive of samples, which the analysis of groups needs.

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
    folder = existing(Path(path))
    if "://" not in path and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        detail = f"samples cannot be written to {path}"
        yield Finding(
            "archive", "warning", detail, "make it a directory that this user may write to"
        )
    elif damaged:
        detail = (
            f"{path}/{DAMAGED} has {plural(len(damaged), 'damaged file')}, the newest "
            f"{visible(damaged[-1])}: samples in them are not used"
        )
        remedy = (
            "delete them if you do not need them; Fairlead deletes them after sampling.retention"
        )
        yield Finding("archive", "warning", detail, remedy)
    else:
        yield Finding("archive", "ok", f"samples are stored in {path}")

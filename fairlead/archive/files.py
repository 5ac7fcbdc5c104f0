"""Files of the archive: one folder per day, and one Parquet file per sample.

Belongs here: listing, reading, writing and removing files, and setting damaged files aside. Belongs
elsewhere: the content of samples (`samples`), which files may be removed (`thinning`).

For example, the sample with the id `20260131T120000.000000Z-5f3a9c1e` is in the file
`samples/2026-01-31/20260131T120000.000000Z-5f3a9c1e.parquet`. A file is written under a name that
readers ignore, then renamed, and never changed. So a crash loses at most the sample that is being
written.

Damaged files, and files that are not samples, do not prevent reading the other files: they are
moved to `damaged/` with a warning, and removed when they are older than the samples' retention.
"""

import json
import logging
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from fairlead.common.disk import cannot
from fairlead.common.visible import visible
from fairlead.domain.samples import SAMPLES, taken_at
from fairlead.errors import ConfigurationError

_log = logging.getLogger(__name__)

FOLDER: Final = "samples"
#: Folder for damaged files. Their names begin with the time when they were moved there.
DAMAGED: Final = "damaged"
_SUFFIX: Final = ".parquet"
Filters = list[tuple[str, str, Any]]


@dataclass(frozen=True, order=True)
class SampleFile:
    """A file of the archive: the time of its sample, and its path below `FOLDER`."""

    at: datetime
    path: str

    @property
    def sample_id(self) -> str:
        """Id of the sample."""
        return self.path.rpartition("/")[2].removesuffix(_SUFFIX)


class SampleFiles:
    """The files below `FOLDER` in a warehouse; paths are relative to this folder.

    Parameters
    ----------
    warehouse
        A local path, or a URI that pyarrow understands.

    Raises
    ------
    ConfigurationError
        The warehouse is neither a local path nor such a URI.
    FileSystemError
        The warehouse cannot be reached.
    """

    def __init__(self, warehouse: str) -> None:
        path = warehouse.rstrip("/") if "://" in warehouse else str(Path(warehouse).absolute())
        try:
            self._system, root = fs.FileSystem.from_uri(path)
        except ValueError as error:
            raise ConfigurationError(
                f"warehouse: {path} is neither a path nor a URI: {error}"
            ) from error
        except OSError as error:
            raise cannot("reach", path, error) from error
        self.root = f"{root}/{FOLDER}"
        self.warehouse = path

    def taken_between(self, since: datetime, until: datetime) -> list[SampleFile]:
        """Return the files of samples taken between two times, the oldest first."""
        files = []
        for day in self.days():
            if not day_of(since) <= day <= day_of(until):
                continue
            for entry in self.entries(day):
                if entry.base_name.startswith("_"):
                    continue
                path = f"{day}/{entry.base_name}"
                try:
                    file = SampleFile(taken_at(entry.base_name.removesuffix(_SUFFIX)), path)
                except ValueError:
                    self._set_aside(path, "its name does not begin with a time")
                    continue
                if since <= file.at <= until:
                    files.append(file)
        return sorted(files)

    def days(self) -> list[str]:
        """Return the names of the folders of days, ascending."""
        return sorted(
            entry.base_name
            for entry in self._list("")
            if entry.type == fs.FileType.Directory and entry.base_name != DAMAGED
        )

    def entries(self, folder: str) -> list[fs.FileInfo]:
        """Return the Parquet files in a folder, including unfinished files."""
        return [
            entry
            for entry in self._list(folder)
            if entry.type == fs.FileType.File and entry.base_name.endswith(_SUFFIX)
        ]

    def damaged(self) -> list[str]:
        """Return the names of the files in the folder `damaged`, oldest first."""
        return sorted(entry.base_name for entry in self.entries(DAMAGED))

    def read(
        self, path: str, filters: Filters | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table | None:
        """Return the rows of a file; None if the file is gone or cannot be read.

        After an error, the file is first loaded into memory as a whole, and then decoded. If only
        the decoding fails, neither the disk nor the network is the cause. In this case the file is
        damaged, and is moved to the folder `damaged`.
        """
        whole = f"{self.root}/{path}"
        try:
            with self._system.open_input_file(whole) as source:
                return _rows_of(source, filters, columns)
        except FileNotFoundError:  # another reader has moved it
            return None
        except Exception:  # noqa: BLE001 - pyarrow has no class of its own for damage
            _log.debug("%s is read again", visible(whole), exc_info=True)
        try:
            with self._system.open_input_file(whole) as source:
                content = source.read_buffer()
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("%s cannot be read and is skipped: %s", visible(whole), error)
            return None
        try:
            return _rows_of(pa.BufferReader(content), filters, columns)
        except MemoryError:
            _log.warning("%s is skipped: there is not enough memory", visible(whole))
        except Exception as error:  # noqa: BLE001 - as above
            self._set_aside(path, str(error))
        return None

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a file; {} if the file is missing or has no JSON object."""
        try:
            with self._system.open_input_stream(f"{self.root}/{name}") as stream:
                fields = json.loads(stream.read())
        except (OSError, ValueError):
            return {}
        return fields if isinstance(fields, dict) else {}

    def write(self, name: str, content: Any) -> None:
        """Write a file so that readers find it complete or not at all, even after a power cut."""
        folder, _, base = f"{self.root}/{name}".rpartition("/")
        unfinished = f"{folder}/_{secrets.token_hex(4)}-{base}"
        try:
            self._system.create_dir(folder, recursive=True)
            with self._system.open_output_stream(unfinished) as stream:
                stream.write(content)
            self._sync(unfinished)
            self._system.move(unfinished, f"{folder}/{base}")
            self._sync(folder)
        except OSError as error:
            with suppress(OSError):
                self._system.delete_file(unfinished)
            raise cannot("write", f"{folder}/{base}", error) from error

    def remove(self, path: str) -> None:
        """Remove a file; do nothing if it does not exist."""
        try:
            self._system.delete_file(f"{self.root}/{path}")
        except FileNotFoundError:
            return  # another process has removed it
        except OSError as error:
            raise cannot("remove", f"{self.root}/{path}", error) from error

    def remove_day(self, day: str) -> None:
        """Remove the folder of a day if it is empty."""
        if not self._list(day):
            with suppress(OSError):
                self._system.delete_dir(f"{self.root}/{day}")

    def _set_aside(self, path: str, why: str) -> None:
        """Move a file to the folder `damaged`, unless another reader has moved it already."""
        name = f"{datetime.now(UTC):%Y%m%dT%H%MZ}-{path.replace('/', '-')}"
        what = f"{visible(f'{self.root}/{path}')} cannot be used: {visible(why)}"
        try:
            self._system.create_dir(f"{self.root}/{DAMAGED}")
            self._system.move(f"{self.root}/{path}", f"{self.root}/{DAMAGED}/{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            _log.warning("%s. The file cannot be moved to %s/damaged: %s", what, self.root, error)
            return
        _log.warning("%s. Moved to %s/damaged; other samples are used", what, self.root)

    def _list(self, folder: str) -> list[fs.FileInfo]:
        path = f"{self.root}/{folder}".rstrip("/")
        try:
            entries: list[fs.FileInfo] = self._system.get_file_info(
                fs.FileSelector(path, allow_not_found=True)
            )
        except NotADirectoryError:  # `path` is a file: `write` raises the error
            return []
        except OSError as error:
            raise cannot("list", path, error) from error
        return entries

    def _sync(self, path: str) -> None:
        """Wait until a local disk has stored a file or directory.

        Remote file systems need no wait, because they have stored a file when it is closed.
        """
        if isinstance(self._system, fs.LocalFileSystem):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def day_of(at: datetime) -> str:
    """Return the name of the folder for samples taken at this time."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def path_of(sample_id: str) -> str:
    """Return the path of a sample's file below `FOLDER`."""
    return f"{day_of(taken_at(sample_id))}/{sample_id}{_SUFFIX}"


def _rows_of(
    source: pa.NativeFile, filters: Filters | None, columns: Sequence[str] | None
) -> pa.Table:
    """Return the rows of a file.

    Raises ValueError if the columns are not those of `SAMPLES`, and the errors of pyarrow.
    """
    file = pq.ParquetDataset(source, filters=filters, page_checksum_verification=True)
    if not file.schema.equals(SAMPLES):
        raise ValueError("its columns are not those of this version of Fairlead")
    return file.read(columns=columns)

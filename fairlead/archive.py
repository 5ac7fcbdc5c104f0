"""The archive of samples: Parquet files, one folder per day and one file per sample.

Belongs here: writing, reading and removing samples. Does not: their columns
(`fairlead.domain.samples`), nor how often they are taken (`sampling_interval`).

`series/2026-01-31/20260131T120000.000000Z-5f3a9c1e.parquet` is the sample with that id. A file is
written under a name that readers ignore, then renamed, and never changed. So a crash loses at most
the sample that is being written.

Old samples are thinned out. Of each quarter of an hour that ended over 75 minutes ago, the archive
keeps each group's newest sample and its newest sample without an error. It removes the files that
have none of these.

A file that is damaged or foreign is moved to `damaged/`, with a warning, and kept there until the
retention ends. All other files remain readable.
"""

import hashlib
import json
import logging
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from fairlead.common.disk import cannot
from fairlead.common.tables import slices
from fairlead.common.visible import visible
from fairlead.domain.history import EVERY_SAMPLE, THINNED_TO
from fairlead.domain.samples import HISTORY, SAMPLES, taken_at
from fairlead.errors import ConfigurationError, FileSystemError

_log = logging.getLogger(__name__)

FOLDER: Final = "samples"
#: The folder of damaged files; their names begin with the time when they were moved there.
DAMAGED: Final = "damaged"
#: Age at which an unfinished file is removed; a younger one may still be in use.
_GRACE: Final = timedelta(minutes=15)
#: Groups in a Parquet row group: one group is read quickly, and a fleet has few row groups.
_ROWS_IN_PIECE: Final = 512
#: Maximum number of groups that are read by name; for more, the range of their names is read.
_FEW: Final = 64
_SUFFIX: Final = ".parquet"
#: File with the cost of the newest sample.
_TAKEN: Final = "taken.json"
#: File that names the old intervals of which several files are kept.
_THINNED: Final = "thinned.json"
Filters = list[tuple[str, str, Any]]
_Read = TypeVar("_Read")
#: Columns of names, which repeat between rows.
_NAMES: Final = [
    *("group", "sample_id", "state", "protocol", "group_type"),
    *("topics.list.element", "members.list.element", "member_ids.list.element"),
    *("client_ids.list.element", "subscriptions.list.element.list.element"),
]


@dataclass(frozen=True)
class Taken:
    """The cost of the newest sample.

    Parameters
    ----------
    began
        When sampling began; time-zone-aware.
    took_s
        Seconds for taking and writing the sample.
    groups, partitions
        How many were sampled.
    analysed_s
        Additional seconds for analysing the groups.
    """

    began: datetime
    took_s: float
    groups: int
    partitions: int
    analysed_s: float = 0.0


@dataclass(frozen=True, order=True)
class _File:
    """A file of the archive: when its sample was taken, and its path below the folder."""

    at: datetime
    path: str

    @property
    def sample_id(self) -> str:
        return self.path.rpartition("/")[2].removesuffix(_SUFFIX)


class SampleArchive:
    """Writes, reads and removes the samples of a warehouse.

    Parameters
    ----------
    warehouse
        A local path, or a URI that pyarrow and Spark both understand.

    Raises
    ------
    ConfigurationError
        It is neither.
    FileSystemError
        It cannot be reached.
    """

    #: Path of the archive to the cost that `note` could not write, for the next sample's due time.
    _unwritten: ClassVar[dict[str, Taken]] = {}

    def __init__(self, warehouse: str) -> None:
        path = warehouse.rstrip("/") if "://" in warehouse else str(Path(warehouse).absolute())
        try:
            self._files, root = fs.FileSystem.from_uri(path)
        except ValueError as error:
            raise ConfigurationError(
                f"warehouse: {path} is neither a path nor a URI: {error}"
            ) from error
        except OSError as error:
            raise cannot("reach", path, error) from error
        self._root = f"{root}/{FOLDER}"
        self.warehouse = path

    def append(self, samples: pa.Table, sample_id: str) -> None:
        """Write a sample; a second sample of the same id replaces the first.

        Parameters
        ----------
        samples
            Table of the schema `SAMPLES`. An empty one is not written.
        sample_id
            An id from `fairlead.domain.samples.new_snapshot_id`.

        Raises
        ------
        FileSystemError
            The disk is full, or permission is missing; no part of the sample remains.
        """
        if not samples.num_rows:
            return
        sink = pa.BufferOutputStream()
        pq.write_table(
            samples,
            sink,
            compression="zstd",
            use_dictionary=_NAMES,
            row_group_size=_ROWS_IN_PIECE,
            write_page_checksum=True,
        )
        self._move_in(_path_of(sample_id), sink.getvalue())

    def note(self, taken: Taken) -> None:
        """Store what the newest sample cost; on a full disk, keep it in this process only."""
        text = json.dumps(vars(taken), default=datetime.isoformat)
        try:
            self._move_in(_TAKEN, text.encode())
        except FileSystemError:
            self._unwritten[self._root] = taken

    def taken(self) -> Taken | None:
        """Return the cost of the newest sample; None if there is none or its cost is unknown."""
        known = [self._unwritten.get(self._root)]
        fields = self._json(_TAKEN)
        with suppress(ValueError, TypeError, KeyError):
            began = datetime.fromisoformat(fields.pop("began")).astimezone(UTC)
            known.append(Taken(**fields, began=began))
        return max(filter(None, known), key=lambda taken: taken.began, default=None)

    def _json(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a file of the archive; empty if there is none."""
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as stream:
                fields = json.loads(stream.read())
        except (OSError, ValueError):
            return {}
        return fields if isinstance(fields, dict) else {}

    def read(
        self,
        since: datetime,
        until: datetime,
        groups: Collection[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the samples between two moments, both included, sorted by group and time.

        Parameters
        ----------
        since, until
            Time-zone-aware.
        groups
            Groups to read; None: all. Reading a few groups, or a range of names, is quick.
        columns
            Columns of `SAMPLES`, including `group` and `at`; None: all.

        Raises
        ------
        FileSystemError
            The files cannot be listed.
        """
        wanted = SAMPLES.names if columns is None else list(columns)
        empty = SAMPLES.empty_table().select(wanted)
        if groups is not None and not groups:
            return empty
        tables = [
            self._rows(file.path, _only(groups), wanted)
            for file in self._files_of(since - THINNED_TO, until)
        ]
        samples = pa.concat_tables([empty, *(rows for rows in tables if rows is not None)])
        chosen = _between(samples, since, until)
        if groups is not None and len(groups) > _FEW:
            mine = pc.is_in(samples["group"], pa.array(groups, pa.string()))
            chosen = pc.and_(chosen, mine)
        # Sort two small columns first, so that the lists are copied only once.
        places = pc.indices_nonzero(chosen)
        keys = samples.select(["group", "at"]).take(places)
        order = pc.sort_indices(keys, [("group", "ascending"), ("at", "ascending")])
        return samples.take(places.take(order))

    def newest(self, groups: Collection[str]) -> pa.Table:
        """Return each group's newest sample, if it was taken since the last sampling began.

        Returns
        -------
        Table of the columns `HISTORY`, at most one row per group; empty if there is no sample.
        """
        cost = self.taken()
        if cost is None:
            return SAMPLES.empty_table().select(HISTORY)
        samples = self.read(cost.began, datetime.now(UTC), groups, HISTORY)
        lengths = pc.run_end_encode(samples["group"].combine_chunks()).run_ends
        return samples.take(pc.subtract(lengths, 1))

    def sample(
        self,
        sample_id: str,
        groups: Collection[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the rows of one sample, by group.

        Parameters
        ----------
        groups
            Groups to read; None: all in the sample.
        columns
            Columns of `SAMPLES`, including `group`; None: all.

        Raises
        ------
        FileNotFoundError
            The sample was removed, cannot be read, or lacks some of these groups.
        """
        if groups is not None and not groups:
            return SAMPLES.empty_table().select(SAMPLES.names if columns is None else columns)
        rows = self._rows(_path_of(sample_id), _only(groups), columns)
        if rows is not None and groups is not None:
            rows = rows.filter(pc.is_in(rows["group"], pa.array(groups, pa.string())))
        if rows is None or (groups is not None and rows.num_rows < len(groups)):
            raise FileNotFoundError(
                f"Sample {sample_id} was removed or cannot be read. To take another, materialize "
                "group_offsets"
            )
        return rows

    def groups(self, since: datetime, until: datetime) -> list[str]:
        """Return the groups that were sampled between two moments, ascending."""
        rows = self.read(since, until, columns=["group", "at"])
        return sorted(pc.unique(rows["group"]).to_pylist())

    def damaged(self) -> list[str]:
        """Return the names of the files in the folder `damaged`, oldest first."""
        return sorted(entry.base_name for entry in self._entries(DAMAGED))

    def tidy(self, now: datetime, retention: timedelta, keep: Collection[str] = ()) -> None:
        """Remove samples older than the retention, and thin out old ones (see the module).

        Parameters
        ----------
        keep
            Ids of samples that are kept until the retention ends.

        Raises
        ------
        FileSystemError
            The first error. Later steps are done nevertheless.
        """
        problem: FileSystemError | None = None
        for step in self._tidying(now, retention, frozenset(keep)):
            try:
                step()
            except FileSystemError as error:
                problem = problem or error
        if problem is not None:
            raise problem

    def _tidying(
        self, now: datetime, retention: timedelta, keep: Collection[str]
    ) -> Iterator[Callable[[], None]]:
        """Yield the steps of `tidy`; an error in one does not stop the others."""
        over, old = _interval(now - EVERY_SAMPLE - THINNED_TO), dict[int, list[_File]]()
        for file in self._files_of(datetime.min.replace(tzinfo=UTC), now):
            if file.at < now - retention:
                yield partial(self._remove, file.path)
            elif _interval(file.at) < over:
                old.setdefault(_interval(file.at), []).append(file)
        for day in self._days():
            for entry in self._entries(day):
                if entry.base_name.startswith("_") and entry.mtime < now - _GRACE:
                    yield partial(self._remove, f"{day}/{entry.base_name}")
            if day < _day_of(now - retention - timedelta(days=1)):
                yield partial(self._remove_day, day)
        yield partial(self._remove_damaged, f"{now - retention:%Y%m%dT%H%M}")
        yield partial(self._thin, old.values(), keep)

    def _thin(self, intervals: Iterable[Sequence[_File]], keep: Collection[str]) -> None:
        """Remove the files of old intervals that are not needed.

        Record which intervals need several files, so that later calls do not read them again.
        """
        known, several = self._json(_THINNED), dict[str, str]()
        for files in intervals:
            if len(files) == 1:
                continue
            name, needed = str(_interval(files[0].at)), files
            if known.get(name) != _digest(files, keep):
                readable = self._needed(files, keep)
                if readable is None:
                    continue
                needed = readable
            if len(needed) > 1:
                several[name] = _digest(needed, keep)
        if several != known:
            self._move_in(_THINNED, json.dumps(several).encode())

    def _needed(self, files: Sequence[_File], keep: Collection[str]) -> list[_File] | None:
        """Remove the files of an interval that are not needed; return the others.

        A file is needed if it is in `keep`, or has a group's newest sample of a quarter of an hour,
        or the newest one without an error.

        Parameters
        ----------
        files
            By time.

        Returns
        -------
        None if a file could not be read: it may be readable later.
        """
        newest, whole = set[tuple[str, int]](), set[tuple[str, int]]()
        needed, readable = list[_File](), True
        for file in reversed(files):
            rows = self._rows(file.path, columns=["group", "at", "error"])
            if rows is None:
                readable = False
                continue
            keys = [(row["group"], _interval(row["at"])) for row in rows.to_pylist()]
            sound = rows["error"].is_null().to_pylist()
            known = (
                key in whole or (key in newest and not is_sound)
                for key, is_sound in zip(keys, sound, strict=True)
            )
            if file.sample_id not in keep and all(known):
                self._remove(file.path)
                continue
            needed.append(file)
            newest.update(keys)
            whole.update(key for key, is_sound in zip(keys, sound, strict=True) if is_sound)
        return needed[::-1] if readable else None

    def _rows(
        self, path: str, filters: Filters | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table | None:
        """Return rows of a file; None: it cannot be read."""
        return self._read(path, lambda source: _rows_of(source, filters, columns))

    def _read(self, path: str, read: Callable[[pa.NativeFile], _Read]) -> _Read | None:
        """Return what a function reads from a file; None: the file is gone or cannot be read.

        If reading fails, it is repeated in memory. An error there is in the content of the file,
        not in the disk or the network, so the file is moved to `damaged`.
        """
        whole = f"{self._root}/{path}"
        try:
            with self._files.open_input_file(whole) as source:
                return read(source)
        except FileNotFoundError:  # another reader has moved it
            return None
        except Exception:  # noqa: BLE001 - pyarrow has no class of its own for damage
            _log.debug("%s is read again", visible(whole), exc_info=True)
        try:
            with self._files.open_input_file(whole) as source:
                content = source.read_buffer()
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("%s cannot be read and is skipped: %s", visible(whole), error)
            return None
        try:
            return read(pa.BufferReader(content))
        except MemoryError:
            _log.warning("%s is skipped: there is not enough memory", visible(whole))
        except Exception as error:  # noqa: BLE001 - as above
            self._set_aside(path, str(error))
        return None

    def _set_aside(self, path: str, why: str) -> None:
        """Move a file to the folder `damaged`; several readers may do so at the same time."""
        name = f"{datetime.now(UTC):%Y%m%dT%H%MZ}-{path.replace('/', '-')}"
        what = f"{visible(f'{self._root}/{path}')} cannot be used: {visible(why)}"
        try:
            self._files.create_dir(f"{self._root}/{DAMAGED}")
            self._files.move(f"{self._root}/{path}", f"{self._root}/{DAMAGED}/{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            _log.warning("%s. It cannot be moved to %s/damaged: %s", what, self._root, error)
            return
        _log.warning("%s. It was moved to %s/damaged; other samples are used", what, self._root)

    def _files_of(self, since: datetime, until: datetime) -> list[_File]:
        """Return the files of samples taken between two moments, by time."""
        files = []
        for day in self._days():
            if not _day_of(since) <= day <= _day_of(until):
                continue
            for entry in self._entries(day):
                if entry.base_name.startswith("_"):
                    continue
                path = f"{day}/{entry.base_name}"
                try:
                    file = _File(taken_at(entry.base_name.removesuffix(_SUFFIX)), path)
                except ValueError:
                    self._set_aside(path, "its name does not begin with a time")
                    continue
                if since <= file.at <= until:
                    files.append(file)
        return sorted(files)

    def _days(self) -> list[str]:
        """Return the folders of days, ascending."""
        return sorted(
            entry.base_name
            for entry in self._list("")
            if entry.type == fs.FileType.Directory and entry.base_name != DAMAGED
        )

    def _entries(self, folder: str) -> list[fs.FileInfo]:
        return [
            entry
            for entry in self._list(folder)
            if entry.type == fs.FileType.File and entry.base_name.endswith(_SUFFIX)
        ]

    def _list(self, folder: str) -> list[fs.FileInfo]:
        path = f"{self._root}/{folder}".rstrip("/")
        try:
            entries: list[fs.FileInfo] = self._files.get_file_info(
                fs.FileSelector(path, allow_not_found=True)
            )
        except NotADirectoryError:  # nothing was written yet; `append` reports the obstacle
            return []
        except OSError as error:
            raise cannot("list", path, error) from error
        return entries

    def _move_in(self, name: str, content: Any) -> None:
        """Write a file so that readers find all of it or nothing, also after a power cut."""
        folder, _, base = f"{self._root}/{name}".rpartition("/")
        unfinished = f"{folder}/_{secrets.token_hex(4)}-{base}"
        try:
            self._files.create_dir(folder, recursive=True)
            with self._files.open_output_stream(unfinished) as stream:
                stream.write(content)
            self._sync(unfinished)
            self._files.move(unfinished, f"{folder}/{base}")
            self._sync(folder)
        except OSError as error:
            with suppress(OSError):
                self._files.delete_file(unfinished)
            raise cannot("write", f"{folder}/{base}", error) from error

    def _sync(self, path: str) -> None:
        """Wait until a local disk has stored a file or a directory; remote ones store at close."""
        if isinstance(self._files, fs.LocalFileSystem):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _remove_damaged(self, oldest: str) -> None:
        for name in self.damaged():
            if name < oldest:
                self._remove(f"{DAMAGED}/{name}")

    def _remove(self, path: str) -> None:
        try:
            self._files.delete_file(f"{self._root}/{path}")
        except FileNotFoundError:
            return  # another process has removed it
        except OSError as error:
            raise cannot("remove", f"{self._root}/{path}", error) from error

    def _remove_day(self, day: str) -> None:
        """Remove the folder of a day if it is empty; object stores have no folders."""
        if not self._list(day):
            with suppress(OSError):
                self._files.delete_dir(f"{self._root}/{day}")


def with_history(
    archive: SampleArchive, newest: pa.Table, length: timedelta
) -> dict[str, pa.Table]:
    """Return each group's samples, by time, from `length` before `newest` up to it.

    Only `newest` has the details of members; in earlier samples they are null. For 300 members
    and 150 topics, details take 40 times the memory of the offsets.

    Parameters
    ----------
    archive
        Has the earlier samples. It may have `newest` too.
    newest
        One sample of some groups, of the schema `SAMPLES`; all rows have the same `at`.
    length
        Time before `newest` to read.
    """
    if not newest.num_rows:
        return {}
    at, sample_id = newest["at"][0].as_py(), newest["sample_id"][0]
    earlier = archive.read(at - length, at, newest["group"].to_pylist(), columns=HISTORY)
    earlier = earlier.filter(pc.not_equal(earlier["sample_id"], sample_id))
    return slices(pa.concat_tables([earlier, newest], promote_options="default"), "group")


def _digest(files: Sequence[_File], keep: Collection[str]) -> str:
    """Return a digest of the files' names, and of which of them are in `keep`."""
    text = json.dumps([(file.path, file.sample_id in keep) for file in files])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _interval(at: datetime) -> int:
    """Return the number of quarters of an hour from the epoch to a moment."""
    return int(at.timestamp() // THINNED_TO.total_seconds())


def _day_of(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def _path_of(sample_id: str) -> str:
    return f"{_day_of(taken_at(sample_id))}/{sample_id}{_SUFFIX}"


def _only(groups: Collection[str] | None) -> Filters | None:
    """Return Parquet filters for rows of these groups, or of few others; None: all rows."""
    if groups is None:
        return None
    if len(groups) <= _FEW:
        return [("group", "in", list(groups))]
    return [("group", ">=", min(groups)), ("group", "<=", max(groups))]


def _between(samples: pa.Table, since: datetime, until: datetime) -> pa.ChunkedArray:
    at = samples["at"]
    kind = SAMPLES.field("at").type
    return pc.and_(
        pc.greater_equal(at, pa.scalar(since, kind)), pc.less_equal(at, pa.scalar(until, kind))
    )


def _rows_of(
    source: pa.NativeFile, filters: Filters | None, columns: Sequence[str] | None
) -> pa.Table:
    """Return rows; raise ValueError if the columns are not `SAMPLES`, or an error of pyarrow."""
    file = pq.ParquetDataset(source, filters=filters, page_checksum_verification=True)
    if not file.schema.equals(SAMPLES):
        raise ValueError("its columns are not those of this version of Fairlead")
    return file.read(columns=columns)

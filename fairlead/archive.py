"""The archive of looks: Parquet, a file an interval and not a file a look.

Belongs here: where looks are kept, how long, and how they are read again. Does not: what is in them
(`look`), nor how often they are taken (`look_interval`).

A look is written at once, to a small file of its own in `open/`. Once a quarter of an hour is over,
its looks go into one file in `closed/`, sorted by group; an hour later, when the judgement asks for
no more than that, the last look of each group goes into one in `thinned/`. Every file is written
whole under a name that readers pass over, then moved; each says which looks it stands for. What a
newer file stands for is passed over at once, and removed only when nobody can still be reading it.
So a crash loses the look under way at most, two writers repeat work at worst, and no look is read
twice.

A file that is damaged or foreign is moved to `damaged/`, with a warning, and kept there for the
retention. All other files are read as before.
"""

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
from fairlead.common.visible import visible
from fairlead.domain.looks import EVERY_LOOK, KEPT_EVERY
from fairlead.domain.looks.look import LOOKS
from fairlead.errors import ConfigurationError, FileSystemError

_log = logging.getLogger(__name__)

#: How long a file that another one stands for stays, for those that read it.
GRACE: Final = timedelta(minutes=15)
FOLDER: Final = "looks"

_LEVELS: Final = ("open", "closed", "thinned")
_OPEN, _CLOSED, _THINNED = range(3)
#: The folder of damaged files; their names begin with the time when they were moved there.
DAMAGED: Final = "damaged"
_STANDS_FOR: Final = b"fairlead.looks"
#: Rows, which are groups: little is read for one group, and a fleet is still few pieces.
_ROWS_IN_PIECE: Final = 512
#: So many groups are looked for by name among all that are in a piece.
_FEW: Final = 64
Filters = list[tuple[str, str, Any]]
_Read = TypeVar("_Read")
_NAMES: Final = ["group", "topics.list.element", "members.list.element"]


@dataclass(frozen=True)
class Taken:
    """What taking the newest look cost.

    Parameters
    ----------
    began
        When; time-zone-aware.
    took_s
        How long it took, with writing it down.
    groups, partitions
        How many were looked at.
    judged_s
        How long judging what was seen took, beside that.
    """

    began: datetime
    took_s: float
    groups: int
    partitions: int
    judged_s: float = 0.0


@dataclass(frozen=True, order=True)
class _File:
    """A file of looks: its level, its interval (a stretch of `KEPT_EVERY`), its name."""

    level: int
    interval: str
    name: str
    written: datetime

    @property
    def path(self) -> str:
        return f"{_LEVELS[self.level]}/{self.name}"


class LookArchive:
    """Looks under a warehouse's path.

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

    #: By the archive's path. On a full disk, the next look of this process is due as usual.
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

    def append(self, look: pa.Table, look_id: str) -> None:
        """Write a look down; a repeated one replaces itself.

        Parameters
        ----------
        look
            Of the schema `LOOKS`. An empty one is not written.
        look_id
            Sorts by time, as a snapshot's id does.

        Raises
        ------
        FileSystemError
            The disk is full, or a right is missing; nothing of the look is left behind.
        """
        if look.num_rows:
            self._write(f"open/{look_id}.parquet", look, [look_id])

    def note(self, taken: Taken) -> None:
        """Remember what taking the newest look cost; on a full disk, in this process only."""
        text = json.dumps(vars(taken), default=datetime.isoformat)
        try:
            self._move_in("taken.json", text.encode())
        except FileSystemError:
            self._unwritten[self._root] = taken

    def taken(self) -> Taken | None:
        """Return what the newest look cost; None: there is none, or it is not known."""
        known = [self._noted(), self._unwritten.get(self._root)]
        return max(filter(None, known), key=lambda taken: taken.began, default=None)

    def _noted(self) -> Taken | None:
        try:
            with self._files.open_input_stream(f"{self._root}/taken.json") as stream:
                fields = json.loads(stream.read())
            began = datetime.fromisoformat(fields.pop("began"))
            return Taken(**fields, began=began)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def read(
        self, since: datetime, until: datetime, groups: Collection[str] | None = None
    ) -> pa.Table:
        """Read the looks of a time, `since` and `until` included, by group and time.

        Parameters
        ----------
        since, until
            Time-zone-aware.
        groups
            Of which groups; None: of all. A few are found among thousands at a fraction of the
            cost of all, and a stretch of them by name at its own.

        Raises
        ------
        FileSystemError
            The files cannot be listed.
        """
        if groups is not None and not groups:
            return LOOKS.empty_table()
        rows = self._all_rows(since, until, filters=_only(groups))
        looks = pa.concat_tables([LOOKS.empty_table(), *rows])
        wanted = _between(looks, since, until)
        if groups is not None and len(groups) > _FEW:
            mine = pc.is_in(looks["group"], pa.array(groups, pa.string()))
            wanted = pc.and_(wanted, mine)
        # In order first, by what is small: the arrays are copied once.
        chosen = pc.indices_nonzero(wanted)
        keys = looks.select(["group", "at"]).take(chosen)
        order = pc.sort_indices(keys, [("group", "ascending"), ("at", "ascending")])
        return looks.take(chosen.take(order))

    def newest(self, groups: Collection[str]) -> pa.Table:
        """Read the newest look at each group since the last look at all groups began.

        Returns
        -------
        Of the schema `LOOKS`, each group once at most; empty if no look was taken yet.
        """
        taken = self.taken()
        if taken is None:
            return LOOKS.empty_table()
        looks = self.read(taken.began, datetime.now(UTC), groups)
        lengths = pc.run_end_encode(looks["group"].combine_chunks()).run_ends
        return looks.take(pc.subtract(lengths, 1))

    def look(self, look_id: str, at: datetime, columns: Sequence[str] | None = None) -> pa.Table:
        """Read one look, by group; empty where it was thinned out or pruned.

        Parameters
        ----------
        look_id, at
            The look, and when it was taken: a file of its own, as long as its interval lasts.
        columns
            Of the schema `LOOKS`; None: all.
        """
        wanted = LOOKS.names if columns is None else list(columns)
        rows = self._rows(f"{_LEVELS[_OPEN]}/{look_id}.parquet", columns=wanted)
        return self.read(at, at).select(wanted) if rows is None else rows

    def groups(self, since: datetime, until: datetime) -> list[str]:
        """Return the groups that were looked at in a time, ascending; little is read for it."""
        names: set[str] = set()
        for rows in self._all_rows(since, until, columns=["group", "at"]):
            names.update(rows.filter(_between(rows, since, until))["group"].to_pylist())
        return sorted(names)

    def damaged(self) -> list[str]:
        """Return the names of the files in the folder `damaged`, oldest first."""
        return sorted(entry.base_name for entry in self._entries(DAMAGED))

    def tidy(self, now: datetime, retention: timedelta) -> None:
        """Remove what is old or stood for, then close and thin intervals that are over.

        Raises
        ------
        FileSystemError
            The first error. The steps after it were done all the same.
        """
        problem: FileSystemError | None = None
        for step in self._tidying(now, retention):
            try:
                step()
            except FileSystemError as error:
                problem = problem or error
        if problem is not None:
            raise problem

    def _tidying(self, now: datetime, retention: timedelta) -> Iterator[Callable[[], None]]:
        """Yield the steps of tidying, those that make room first."""
        files = self._list()
        covered = self._covered(files)
        oldest = _name(now - retention)
        for file in files:
            if file.interval < oldest or (file in covered and covered[file] < now - GRACE):
                yield partial(self._remove, file.path)
        for path, written in self._unfinished():
            if written < now - GRACE:
                yield partial(self._remove, path)
        yield partial(self._remove_damaged, oldest)
        closing = _name(now - KEPT_EVERY)
        thinning = _name(now - EVERY_LOOK - KEPT_EVERY)
        for interval in sorted({file.interval for file in files}):
            if not oldest <= interval <= closing:
                continue
            level = _THINNED if interval <= thinning else _CLOSED
            mine = [file for file in files if file.interval == interval and file not in covered]
            under = [file for file in mine if file.level < level]
            yield partial(self._gather, interval, under, level)

    def _gather(self, interval: str, files: Sequence[_File], level: int) -> None:
        """Write one file that stands for some."""
        rows: list[pa.Table] = []
        stands_for: set[str] = set()
        for file in files:
            found, looks_of = self._rows(file.path), self._looks_of(file)
            if found is not None and looks_of is not None:
                rows.append(found)
                stands_for |= looks_of
        if not rows:
            return
        looks = pa.concat_tables(rows).sort_by([("group", "ascending"), ("at", "ascending")])
        if level == _THINNED:
            looks = _last_of_each(looks)
        name = f"{_LEVELS[level]}/{interval}-{secrets.token_hex(4)}.parquet"
        self._write(name, looks, sorted(stands_for))

    def _current(self, since: datetime, until: datetime) -> list[_File]:
        first, last = _name(since - KEPT_EVERY), _name(until + KEPT_EVERY)
        files = [file for file in self._list() if first <= file.interval <= last]
        covered = self._covered(files)
        return [file for file in files if file not in covered]

    def _covered(self, files: Iterable[_File]) -> dict[_File, datetime]:
        """Return the files that others stand for, each with when the last of these was written."""
        by_interval: dict[str, list[_File]] = {}
        for file in files:
            by_interval.setdefault(file.interval, []).append(file)
        return {
            stored: written
            for gathered in by_interval.values()
            if len(gathered) > 1 and any(stored.level for stored in gathered)
            for stored, written in self._covered_in(gathered)
        }

    def _covered_in(self, files: Iterable[_File]) -> Iterator[tuple[_File, datetime]]:
        """Yield those of an interval's files all of whose looks stand in files before them."""
        known: set[str] = set()
        written = datetime.min.replace(tzinfo=UTC)
        found = {file: self._looks_of(file) for file in files}
        looks_of = {file: looks for file, looks in found.items() if looks is not None}
        for stored in sorted(
            looks_of, key=lambda file: (-file.level, -len(looks_of[file]), file.name)
        ):
            if looks_of[stored] <= known:
                yield stored, written
            else:
                written = max(written, stored.written)
            known |= looks_of[stored]

    def _looks_of(self, stored: _File) -> set[str] | None:
        """Return the ids of the looks that a file stands for; None: it cannot be read."""
        if stored.level == _OPEN:
            return {stored.name.removesuffix(".parquet")}
        return self._read(stored.path, _stands_for)

    def _all_rows(
        self,
        since: datetime,
        until: datetime,
        *,
        filters: Filters | None = None,
        columns: Sequence[str] | None = None,
    ) -> list[pa.Table]:
        """Return the rows of the files that may have looks of a time."""

        def attempt() -> list[pa.Table | None]:
            files = self._current(since, until)
            return [self._rows(file.path, filters, columns) for file in files]

        rows = attempt()
        if any(found is None for found in rows):
            rows = attempt()  # a damaged file may have stood for others that are still there
        return [found for found in rows if found is not None]

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
        except FileNotFoundError:  # another reader has set it aside
            return None
        except Exception:  # noqa: BLE001 - pyarrow has no class of its own for damage
            _log.debug("%s is read again", visible(whole), exc_info=True)
        try:
            with self._files.open_input_file(whole) as source:
                content = source.read_buffer()
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("%s cannot be read and is passed over: %s", visible(whole), error)
            return None
        try:
            return read(pa.BufferReader(content))
        except MemoryError:
            _log.warning("%s is passed over: there is not enough memory", visible(whole))
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
        _log.warning("%s. It was moved to %s/damaged; other looks are used", what, self._root)

    def _list(self) -> list[_File]:
        files = []
        for level, folder in enumerate(_LEVELS):
            for entry in self._entries(folder):
                name = entry.base_name
                if name.startswith("_"):
                    continue
                try:
                    files.append(_File(level, _interval_of(name), name, entry.mtime))
                except ValueError:
                    self._set_aside(f"{folder}/{name}", "its name does not begin with a time")
        return sorted(files)

    def _unfinished(self) -> list[tuple[str, datetime]]:
        """Return what writers that died have left, and when."""
        return [
            (f"{folder}/{entry.base_name}", entry.mtime)
            for folder in _LEVELS
            for entry in self._entries(folder)
            if entry.base_name.startswith("_")
        ]

    def _entries(self, folder: str) -> list[fs.FileInfo]:
        path = f"{self._root}/{folder}"
        try:
            entries = self._files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        except OSError as error:
            raise cannot("list", path, error) from error
        return [
            entry
            for entry in entries
            if entry.type == fs.FileType.File and entry.base_name.endswith(".parquet")
        ]

    def _write(self, name: str, looks: pa.Table, stands_for: Sequence[str]) -> None:
        described = looks.replace_schema_metadata({_STANDS_FOR: json.dumps(list(stands_for))})
        sink = pa.BufferOutputStream()
        pq.write_table(
            described,
            sink,
            compression="zstd",
            use_dictionary=_NAMES,
            row_group_size=_ROWS_IN_PIECE,
            write_page_checksum=True,
        )
        self._move_in(name, sink.getvalue())

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
            return  # somebody else tidies, too
        except OSError as error:
            raise cannot("remove", f"{self._root}/{path}", error) from error


def _only(groups: Collection[str] | None) -> Filters | None:
    """Return what pieces and rows are passed over by."""
    if groups is None:
        return None
    if len(groups) <= _FEW:
        return [("group", "in", list(groups))]
    return [("group", ">=", min(groups)), ("group", "<=", max(groups))]


def _between(looks: pa.Table, since: datetime, until: datetime) -> pa.ChunkedArray:
    at = looks["at"]
    kind = LOOKS.field("at").type
    return pc.and_(
        pc.greater_equal(at, pa.scalar(since, kind)), pc.less_equal(at, pa.scalar(until, kind))
    )


def _name(at: datetime) -> str:
    """Name the interval that a moment lies in."""
    length = KEPT_EVERY.total_seconds()
    start = datetime.fromtimestamp(at.timestamp() // length * length, UTC)
    return f"{start:%Y%m%dT%H%M}Z"


def _interval_of(name: str) -> str:
    """Return the interval of a file; of a look, the one that its id lies in."""
    at = datetime.strptime(name[:13], "%Y%m%dT%H%M").replace(tzinfo=UTC)
    return _name(at)


def _rows_of(
    source: pa.NativeFile, filters: Filters | None, columns: Sequence[str] | None
) -> pa.Table:
    """Read rows; raise ValueError for another layout than `LOOKS`, and any error of pyarrow."""
    file = pq.ParquetDataset(source, filters=filters, page_checksum_verification=True)
    if not file.schema.equals(LOOKS):
        raise ValueError("its layout is not that of this version of Fairlead")
    return file.read(columns=columns)


def _stands_for(source: pa.NativeFile) -> set[str]:
    with pq.ParquetFile(source) as file:
        metadata = file.schema_arrow.metadata or {}
    if _STANDS_FOR not in metadata:
        raise ValueError("it does not name the looks that it stands for")
    return set(json.loads(metadata[_STANDS_FOR]))


def _last_of_each(looks: pa.Table) -> pa.Table:
    """Return the last row of each group, of rows by group and time."""
    names = looks["group"].combine_chunks().dictionary_encode().indices.to_numpy()
    last = [*(names[1:] != names[:-1]), True] if names.size else []
    return looks.filter(pa.array(last, pa.bool_()))

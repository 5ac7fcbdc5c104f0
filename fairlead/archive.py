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
"""

import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from fairlead.domain.looks import EVERY_LOOK, KEPT_EVERY
from fairlead.domain.looks.look import LOOKS
from fairlead.errors import ConfigurationError

#: How long a file that another one stands for stays, for those that read it.
GRACE: Final = timedelta(minutes=15)
FOLDER: Final = "looks"

_LEVELS: Final = ("open", "closed", "thinned")
_OPEN, _CLOSED, _THINNED = range(3)
_STANDS_FOR: Final = b"fairlead.looks"
#: Rows, which are groups: little is read for one group, and a fleet is still few pieces.
_ROWS_IN_PIECE: Final = 512
#: So many groups are looked for by name among all that are in a piece.
_FEW: Final = 64
Filters = list[tuple[str, str, Any]]
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
    """

    def __init__(self, warehouse: str) -> None:
        path = warehouse.rstrip("/") if "://" in warehouse else str(Path(warehouse).absolute())
        self._files, root = fs.FileSystem.from_uri(path)
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
        """
        if look.num_rows:
            self._write(f"open/{look_id}.parquet", look, [look_id])

    def note(self, taken: Taken) -> None:
        """Remember what taking the newest look cost."""
        text = json.dumps(vars(taken), default=datetime.isoformat)
        self._move_in("taken.json", text.encode())

    def taken(self) -> Taken | None:
        """Return what the newest look cost; None: there is none, or it is not known."""
        try:
            with self._files.open_input_stream(f"{self._root}/taken.json") as stream:
                fields = json.loads(stream.read())
            began = datetime.fromisoformat(fields.pop("began"))
            return Taken(**fields, began=began)
        except (FileNotFoundError, ValueError, TypeError, KeyError):
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
        ConfigurationError
            A file has another layout than `LOOKS`, or is damaged.
        """
        if groups is not None and not groups:
            return LOOKS.empty_table()
        rows = [self._open(file, _only(groups)).read() for file in self._current(since, until)]
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
        path = f"{self._root}/{_LEVELS[_OPEN]}/{look_id}.parquet"
        try:
            return pq.read_table(path, filesystem=self._files, columns=wanted)
        except FileNotFoundError:
            return self.read(at, at).select(wanted)

    def groups(self, since: datetime, until: datetime) -> list[str]:
        """Return the groups that were looked at in a time, ascending; little is read for it."""
        names: set[str] = set()
        for file in self._current(since, until):
            rows = self._open(file).read(columns=["group", "at"])
            names.update(rows.filter(_between(rows, since, until))["group"].to_pylist())
        return sorted(names)

    def tidy(self, now: datetime, retention: timedelta) -> None:
        """Close and thin intervals that are over, and remove what is old or stood for."""
        files = self._list()
        covered = self._covered(files)
        closing = _name(now - KEPT_EVERY)
        thinning = _name(now - EVERY_LOOK - KEPT_EVERY)
        for interval in sorted({file.interval for file in files}):
            mine = [file for file in files if file.interval == interval and file not in covered]
            if interval <= thinning:
                self._gather(
                    interval, [stored for stored in mine if stored.level < _THINNED], _THINNED
                )
            elif interval <= closing:
                self._gather(
                    interval, [stored for stored in mine if stored.level < _CLOSED], _CLOSED
                )
        oldest = _name(now - retention)
        for file in files:
            if file.interval < oldest or (file in covered and covered[file] < now - GRACE):
                self._remove(file.path)
        for path, written in self._unfinished():
            if written < now - GRACE:
                self._remove(path)

    def _gather(self, interval: str, files: Sequence[_File], level: int) -> None:
        """Write one file that stands for some."""
        if not files:
            return
        rows: list[pa.Table] = []
        stands_for: list[str] = []
        for file in files:
            stands_for += self._looks_of(file)
            rows.append(self._open(file).read())
        looks = pa.concat_tables(rows).sort_by([("group", "ascending"), ("at", "ascending")])
        if level == _THINNED:
            looks = _last_of_each(looks)
        name = f"{_LEVELS[level]}/{interval}-{secrets.token_hex(4)}.parquet"
        self._write(name, looks, sorted(set(stands_for)))

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
        looks_of = {file: self._looks_of(file) for file in files}
        for stored in sorted(
            files, key=lambda file: (-file.level, -len(looks_of[file]), file.name)
        ):
            if looks_of[stored] <= known:
                yield stored, written
            else:
                written = max(written, stored.written)
            known |= looks_of[stored]

    def _looks_of(self, stored: _File) -> set[str]:
        """Return the ids of the looks that a file stands for."""
        if stored.level == _OPEN:
            return {stored.name.removesuffix(".parquet")}
        with pq.ParquetFile(f"{self._root}/{stored.path}", filesystem=self._files) as file:
            return set(_stands_for(file))

    def _open(self, stored: _File, filters: Filters | None = None) -> pq.ParquetDataset:
        path = f"{self._root}/{stored.path}"
        try:
            file = pq.ParquetDataset(path, filesystem=self._files, filters=filters)
        except pa.ArrowInvalid as error:
            raise ConfigurationError(f"{path} is damaged: remove it ({error})") from error
        if not file.schema.equals(LOOKS):
            raise ConfigurationError(
                f"{path} holds looks of another layout than this version of Fairlead reads: "
                "remove it"
            )
        return file

    def _list(self) -> list[_File]:
        return sorted(
            _File(level, _interval_of(entry.base_name), entry.base_name, entry.mtime)
            for level, entry in self._entries()
            if not entry.base_name.startswith("_")
        )

    def _unfinished(self) -> list[tuple[str, datetime]]:
        """Return what writers that died have left, and when."""
        return [
            (f"{_LEVELS[level]}/{entry.base_name}", entry.mtime)
            for level, entry in self._entries()
            if entry.base_name.startswith("_")
        ]

    def _entries(self) -> Iterator[tuple[int, fs.FileInfo]]:
        for level, folder in enumerate(_LEVELS):
            selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
            for entry in self._files.get_file_info(selector):
                if entry.type == fs.FileType.File and entry.base_name.endswith(".parquet"):
                    yield level, entry

    def _write(self, name: str, looks: pa.Table, stands_for: Sequence[str]) -> None:
        described = looks.replace_schema_metadata({_STANDS_FOR: json.dumps(list(stands_for))})
        sink = pa.BufferOutputStream()
        pq.write_table(
            described,
            sink,
            compression="zstd",
            use_dictionary=_NAMES,
            row_group_size=_ROWS_IN_PIECE,
        )
        self._move_in(name, sink.getvalue())

    def _move_in(self, name: str, content: Any) -> None:
        """Write a file so that readers find it whole or not at all."""
        folder, _, base = f"{self._root}/{name}".rpartition("/")
        self._files.create_dir(folder, recursive=True)
        unfinished = f"{folder}/_{secrets.token_hex(4)}-{base}"
        with self._files.open_output_stream(unfinished) as stream:
            stream.write(content)
        self._files.move(unfinished, f"{folder}/{base}")

    def _remove(self, path: str) -> None:
        try:
            self._files.delete_file(f"{self._root}/{path}")
        except FileNotFoundError:
            return  # somebody else tidies, too


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


def _stands_for(file: pq.ParquetFile) -> list[str]:
    found: list[str] = json.loads((file.schema_arrow.metadata or {}).get(_STANDS_FOR, b"[]"))
    return found


def _last_of_each(looks: pa.Table) -> pa.Table:
    """Return the last row of each group, of rows by group and time."""
    names = looks["group"].combine_chunks().dictionary_encode().indices.to_numpy()
    last = [*(names[1:] != names[:-1]), True] if names.size else []
    return looks.filter(pa.array(last, pa.bool_()))

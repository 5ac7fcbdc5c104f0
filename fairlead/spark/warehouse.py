"""The warehouse: snapshots and the tables computed from them, as Parquet under one path.

Belongs here: paths of tables, writing complete tables, reading them, and finding the snapshots that
a step of the pipeline works on. Belongs elsewhere: the content of the tables (`lag`, `planning`),
and samples (`fairlead.archive`).

A table is the folder `PATH/TABLE/SNAPSHOT_ID/`. Groups are a sorted column and have no folders of
their own: a folder costs milliseconds, and a snapshot can have thousands of groups.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from fairlead.archive import FOLDER, Filters, SampleArchive
from fairlead.common.disk import cannot
from fairlead.domain.samples import SAMPLES, GroupSnapshot, snapshot_id_at

#: Name of the file that is written last, to show that a table is complete.
_WHOLE: Final = "_SUCCESS"
#: Number of rows in a Parquet row group. Small, so that reading a few groups reads few rows.
_ROWS_IN_PIECE: Final = 50_000
_GROUPS: Final = pa.schema(
    {"group": pa.string(), "cohort": pa.string(), "snapshot_at": SAMPLES.field("at").type}
)


@dataclass(frozen=True)
class Recent:
    """A snapshot, and the groups in it that a step of the pipeline (such as lag) works on.

    Parameters
    ----------
    snapshot_id, snapshot_at
        The snapshot's id, and its time-zone-aware time.
    groups
        Groups of the requested cohorts (a cohort: groups that are planned together), ascending. The
        snapshot may have more groups.
    """

    snapshot_id: str
    snapshot_at: datetime
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Parts:
    """A table that executors write in parts.

    Parameters
    ----------
    files, folder
        The file system and the folder of the table.
    schema
        The schema of all parts.
    """

    files: fs.FileSystem
    folder: str
    schema: pa.Schema

    def write(self, number: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write a part, numbered from 0; replaces the part if an earlier attempt has written it.

        Until the file is complete, its name begins with an underscore, so that readers skip it.
        """
        name = f"part-{number:05}.parquet"
        unfinished = f"{self.folder}/_{secrets.token_hex(8)}.{name}"
        with pq.ParquetWriter(unfinished, self.schema, filesystem=self.files) as file:
            for batch in rows:
                file.write_batch(batch)
        self.files.move(unfinished, f"{self.folder}/{name}")


class Warehouse:
    """Parquet tables under a path.

    Parameters
    ----------
    path
        A local path, or a URI that pyarrow and Spark both understand (`s3://`, `hdfs://`, ...).
        Every Spark executor must reach it.
    """

    def __init__(self, path: str) -> None:
        #: The path of the warehouse, which executors use as well.
        self.path = path.rstrip("/") if "://" in path else str(Path(path).absolute())
        self._files, self._root = fs.FileSystem.from_uri(self.path)

    def write_snapshot(self, snapshot: GroupSnapshot, cohorts: Mapping[str, str]) -> None:
        """Write the sample of a snapshot, then its groups.

        `snapshots` does not return the snapshot before both are written.

        Parameters
        ----------
        cohorts
            Maps groups to their cohorts (groups that are planned together). A group that is missing
            in the mapping is a separate cohort.
        """
        samples, snapshot_id = snapshot.samples, snapshot.snapshot_id
        SampleArchive(self.path).append(samples, snapshot_id)
        names = samples["group"].to_pylist()
        columns = [names, [cohorts.get(name, name) for name in names], samples["at"]]
        self.write("groups", snapshot_id, pa.table(columns, schema=_GROUPS))

    def samples(self, recent: "Recent") -> pa.Table:
        """Return the samples of a snapshot's groups, a table of the schema `SAMPLES`.

        Raises
        ------
        FileNotFoundError
            The archive no longer has the samples of some of these groups.
        """
        return SampleArchive(self.path).sample(recent.snapshot_id, recent.groups)

    def write(self, table: str, snapshot_id: str, rows: pa.Table) -> None:
        """Write or replace a table of a snapshot.

        Until the table is complete, readers do not find it.

        Raises
        ------
        FileSystemError
            The table cannot be written.
        """
        try:
            with self.in_parts(table, snapshot_id, rows.schema) as parts:
                parts.write(0, rows.to_batches(max_chunksize=_ROWS_IN_PIECE))
        except OSError as error:
            raise cannot("write", f"{self._root}/{table}/{snapshot_id}", error) from error

    @contextmanager
    def in_parts(self, table: str, snapshot_id: str, schema: pa.Schema) -> Iterator["Parts"]:
        """Write or replace a table of a snapshot in parts, in a `with` block.

        Readers do not find the table before the block ends.
        """
        folder = f"{self._root}/{table}/{snapshot_id}"
        self._files.create_dir(folder, recursive=True)
        self._files.delete_dir_contents(folder)
        yield Parts(self._files, folder, schema)
        with self._files.open_output_stream(f"{folder}/{_WHOLE}"):
            pass

    def load(
        self,
        table: str,
        snapshot_id: str,
        filters: Filters | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Read a table of a snapshot into memory, without Spark.

        Parameters
        ----------
        filters, columns
            Rows and columns, as for `pyarrow.parquet.read_table`; None: all.

        Raises
        ------
        FileNotFoundError
            The table was not written.
        """
        if not self._exists(table, snapshot_id):
            raise FileNotFoundError(f"{self.path} has no table {table} of {snapshot_id}")
        return pq.read_table(
            f"{self._root}/{table}/{snapshot_id}",
            filesystem=self._files,
            filters=filters,
            columns=None if columns is None else list(columns),
        )

    def snapshots(self, table: str = "groups") -> list[str]:
        """Return the ids of the snapshots that have this table, in order of time."""
        names = self._folders(f"{self._root}/{table}")
        return sorted(name for name in names if self._exists(table, name))

    def snapshot_ids(self) -> list[str]:
        """Return the ids of snapshots, including those that are still being written."""
        return self._folders(f"{self._root}/groups")

    def of_groups(
        self, snapshot_id: str, table: str, wanted: Callable[[str, str], bool]
    ) -> list[Recent]:
        """Return the wanted groups of a snapshot, as a list of one item.

        The list is empty if the snapshot does not have the table, or has no wanted group.

        Parameters
        ----------
        table
            Table that the snapshot must have; every snapshot has `groups`.
        wanted
            Function that returns whether a group is wanted, from the names of group and cohort.
        """
        if not self._exists(table, snapshot_id):
            return []
        rows = self.load("groups", snapshot_id, columns=["group", "cohort", "snapshot_at"])
        names = [
            group
            for group, cohort in zip(
                rows["group"].to_pylist(), rows["cohort"].to_pylist(), strict=True
            )
            if wanted(group, cohort)
        ]
        if not names:
            return []
        return [Recent(snapshot_id, pc.max(rows["snapshot_at"]).as_py(), tuple(sorted(names)))]

    def newest(self, cohorts: Iterable[str], table: str, until: datetime) -> list[Recent]:
        """Return the newest snapshot of each cohort.

        Used if a run contains a step of the pipeline, but not the step that takes the snapshot.

        Parameters
        ----------
        cohorts
            Cohorts of the run; cohorts without a snapshot are left out.
        table
            Table that the snapshots must have; every snapshot has `groups`.
        until
            Time-zone-aware. Snapshots after this time are ignored: the clock was wrong when they
            were taken.

        Returns
        -------
        The snapshots, oldest first, each with the groups of the cohorts for which it is the newest.
        """
        missing = set(cohorts)
        snapshots: list[Recent] = []
        latest = snapshot_id_at(until)
        for snapshot_id in reversed(self.snapshots(table)):
            if not missing:
                break
            if snapshot_id[: len(latest)] > latest:
                continue
            groups = self.load("groups", snapshot_id)
            mine = groups.filter(pc.is_in(groups["cohort"], pa.array(sorted(missing), pa.string())))
            if mine.num_rows:
                missing -= set(mine["cohort"].to_pylist())
                names = tuple(sorted(mine["group"].to_pylist()))
                snapshots.append(Recent(snapshot_id, pc.max(groups["snapshot_at"]).as_py(), names))
        return snapshots[::-1]

    def prune(self, before: datetime) -> list[str]:
        """Remove the snapshots taken before a time, with all their tables.

        First removes the table `groups` of each snapshot. So if the removal is interrupted, the
        remaining tables do not count as snapshots, and the next call removes them.

        Returns
        -------
        The ids of the removed snapshots, in order of time.
        """
        oldest = snapshot_id_at(before)
        removed = set()
        tables = self._folders(self._root)
        for table in sorted(set(tables) - {FOLDER}, key=lambda name: name != "groups"):
            for snapshot_id in self._folders(f"{self._root}/{table}"):
                if snapshot_id < oldest:
                    self._files.delete_dir(f"{self._root}/{table}/{snapshot_id}")
                    removed.add(snapshot_id)
        return sorted(removed)

    def _folders(self, path: str) -> list[str]:
        entries = self._files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return [entry.base_name for entry in entries if entry.type == fs.FileType.Directory]

    def _exists(self, table: str, snapshot_id: str) -> bool:
        mark = self._files.get_file_info(f"{self._root}/{table}/{snapshot_id}/{_WHOLE}")
        return bool(mark.type == fs.FileType.File)

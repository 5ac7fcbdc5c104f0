"""The archive of samples, for planning and analysis.

Belongs here: writing samples, and reading them by group and time. Belongs elsewhere: files
(`files`), the columns of samples (`fairlead.domain.samples`), and how often samples are taken
(`sampling_interval`).
"""

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairlead.archive.files import Filters, SampleFiles, path_of
from fairlead.archive.thinning import tidy
from fairlead.common.tables import slices
from fairlead.domain.history import THINNED_TO
from fairlead.domain.samples import HISTORY, SAMPLES
from fairlead.errors import FileSystemError

#: Number of groups in a Parquet row group. Small, so that one group is read quickly; large enough
#: that a sample of many groups has few row groups.
_ROWS_IN_PIECE: Final = 512
#: Maximum number of groups that a Parquet filter lists by name. For more groups, the filter selects
#: a range of names: from the first of the groups to the last.
_FEW: Final = 64
#: File with the time of the newest sample, and the time that it took.
_TAKEN: Final = "taken.json"
#: Columns with dictionary encoding, since the same names are in many rows.
_NAMES: Final = [
    *("group", "sample_id", "state", "protocol", "group_type"),
    *("topics.list.element", "members.list.element", "member_ids.list.element"),
    *("client_ids.list.element", "subscriptions.list.element.list.element"),
]


@dataclass(frozen=True)
class Taken:
    """The cost of the newest sample: how long it took, and how large it is.

    Parameters
    ----------
    began
        When sampling began; time-zone-aware.
    took_s
        Seconds for taking and writing the sample.
    groups, partitions
        Numbers of groups and partitions in the sample.
    analysed_s
        Seconds for analysing the groups afterwards.
    """

    began: datetime
    took_s: float
    groups: int
    partitions: int
    analysed_s: float = 0.0


class SampleArchive:
    """Writes, reads and removes the samples of a warehouse.

    Parameters
    ----------
    warehouse
        A local path, or a URI that pyarrow and Spark both understand.

    Raises
    ------
    ConfigurationError
        The warehouse is neither a local path nor such a URI.
    FileSystemError
        The warehouse cannot be reached.
    """

    #: Maps the path of an archive to the cost that `note` could not write to a file. The time of
    #: the next sample is computed from this cost.
    _unwritten: ClassVar[dict[str, Taken]] = {}

    def __init__(self, warehouse: str) -> None:
        self._files = SampleFiles(warehouse)
        self.warehouse = self._files.warehouse

    def append(self, samples: pa.Table, sample_id: str) -> None:
        """Write a sample; replaces a sample with the same id.

        Parameters
        ----------
        samples
            Table of the schema `SAMPLES`. An empty table is not written.
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
        self._files.write(path_of(sample_id), sink.getvalue())

    def note(self, taken: Taken) -> None:
        """Store the cost of the newest sample in a file or, if this fails, in memory."""
        text = json.dumps(vars(taken), default=datetime.isoformat)
        try:
            self._files.write(_TAKEN, text.encode())
        except FileSystemError:
            self._unwritten[self._files.root] = taken

    def taken(self) -> Taken | None:
        """Return the cost of the newest sample; None if there is none or its cost is unknown."""
        known = [self._unwritten.get(self._files.root)]
        fields = self._files.read_json(_TAKEN)
        with suppress(ValueError, TypeError, KeyError):
            began = datetime.fromisoformat(fields.pop("began")).astimezone(UTC)
            known.append(Taken(**fields, began=began))
        return max(filter(None, known), key=lambda taken: taken.began, default=None)

    def read(
        self,
        since: datetime,
        until: datetime,
        groups: Collection[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the samples of a period, sorted by group and time.

        Parameters
        ----------
        since, until
            Limits of the period, both included; time-zone-aware.
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
            self._files.read(file.path, _only(groups), wanted)
            for file in self._files.taken_between(since - THINNED_TO, until)
        ]
        samples = pa.concat_tables([empty, *(rows for rows in tables if rows is not None)])
        chosen = _between(samples, since, until)
        if groups is not None and len(groups) > _FEW:
            named = pc.is_in(samples["group"], pa.array(groups, pa.string()))
            chosen = pc.and_(chosen, named)
        # Sort only two small columns, so that the columns of lists are copied only once.
        places = pc.indices_nonzero(chosen)
        keys = samples.select(["group", "at"]).take(places)
        order = pc.sort_indices(keys, [("group", "ascending"), ("at", "ascending")])
        return samples.take(places.take(order))

    def newest(self, groups: Collection[str]) -> pa.Table:
        """Return the newest sample of each group, if the last sampling included the group.

        Returns
        -------
        Table with the columns `HISTORY`, at most one row per group; empty if there is no sample.
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
        """Return the rows of one sample, one row per group.

        Parameters
        ----------
        groups
            Groups to read; None: all in the sample.
        columns
            Columns of `SAMPLES`, including `group`; None: all.

        Raises
        ------
        FileNotFoundError
            The sample was removed or cannot be read, or some of the groups are not in it.
        """
        if groups is not None and not groups:
            return SAMPLES.empty_table().select(SAMPLES.names if columns is None else columns)
        rows = self._files.read(path_of(sample_id), _only(groups), columns)
        if rows is not None and groups is not None:
            rows = rows.filter(pc.is_in(rows["group"], pa.array(groups, pa.string())))
        if rows is None or (groups is not None and rows.num_rows < len(groups)):
            raise FileNotFoundError(
                f"Sample {sample_id} was removed or cannot be read. To take another, materialize "
                "group_offsets"
            )
        return rows

    def groups(self, since: datetime, until: datetime) -> list[str]:
        """Return the groups that were sampled between two times, ascending."""
        rows = self.read(since, until, columns=["group", "at"])
        return sorted(pc.unique(rows["group"]).to_pylist())

    def damaged(self) -> list[str]:
        """Return the names of the files in the folder `damaged`, oldest first."""
        return self._files.damaged()

    def tidy(self, now: datetime, retention: timedelta, keep: Collection[str] = ()) -> None:
        """Remove samples older than the retention, and thin out old ones (see `thinning`).

        Parameters
        ----------
        keep
            Ids of samples to keep until the retention ends.

        Raises
        ------
        FileSystemError
            A file could not be removed or written; raised after everything else is done.
        """
        tidy(self._files, now, retention, keep)


def with_history(
    archive: SampleArchive, newest: pa.Table, length: timedelta
) -> dict[str, pa.Table]:
    """Return each group's sample in `newest`, and its samples in the period before, oldest first.

    Only rows from `newest` have the details of members. In rows from earlier samples these columns
    are null: for 300 members and 150 topics, the details would take 40 times the memory of offsets.

    Parameters
    ----------
    archive
        The archive with the earlier samples. It may also have `newest`.
    newest
        One sample of some groups, of the schema `SAMPLES`; all rows have the same `at`.
    length
        Length of the period before `newest`.
    """
    if not newest.num_rows:
        return {}
    at, sample_id = newest["at"][0].as_py(), newest["sample_id"][0]
    earlier = archive.read(at - length, at, newest["group"].to_pylist(), columns=HISTORY)
    earlier = earlier.filter(pc.not_equal(earlier["sample_id"], sample_id))
    return slices(pa.concat_tables([earlier, newest], promote_options="default"), "group")


def _only(groups: Collection[str] | None) -> Filters | None:
    """Return Parquet filters that select these groups; None: all rows.

    If there are many groups, the filters select all names from the first group to the last. So they
    also select groups between these that are not in `groups`.
    """
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

"""Samples of one group as numpy arrays, for the analysis.

Belongs here: choosing and ordering samples, and making arrays with the partitions that exist now.
Belongs elsewhere: storing samples (`archive`), and analysing them (`fairlead.domain.analysis`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.common.tables import as_array
from fairlead.domain.analysis.reported_work import ReportSeries
from fairlead.domain.analysis.sample_series import Int32, Int64, SampleSeries
from fairlead.domain.history import EVERY_SAMPLE, HISTORY, THINNED_TO
from fairlead.domain.samples import NONE, flat, list_starts
from fairlead.domain.samples.work_columns import OF_PARTITIONS
from fairlead.wire.work_report import TIMES_UNKNOWN

MICROSECONDS: Final = 1_000_000
#: Columns that `arrays_of` reads.
_READ: Final = [
    *("at", "topics", "counts", "begin", "end", "committed", "stable_end", "members", "owner")
]


def arrays_of(
    rows: pa.Table,
    topics: Sequence[str],
    counts: Sequence[int],
    members: Sequence[str],
    *,
    latest: bool = False,
    every: bool = False,
) -> SampleSeries:
    """Return a group's samples as arrays of samples x partitions.

    The result has all samples of the last hour. Of the 23 hours before, it has one sample for each
    15 minutes, unless `every` is set. The rows may be in any order, and a sample may occur twice.

    Parameters
    ----------
    rows
        One group's rows of the schema `fairlead.domain.samples.SAMPLES`, at least one.
    topics, counts
        The topics to include, with their numbers of partitions, as in `Problem`. If a sample does
        not have one of the partitions, the values of this partition are -1.
    members
        The members that come first in the result. All other members in the samples follow.
    latest
        Whether consumers without a commit start at the log's end.
    every
        Whether to include every sample. If so, the rows must be in order of time, and no sample may
        occur twice.
    """
    rows = rows.select(_READ)
    if not every:
        rows = _rows_at(rows, _chosen(moments(rows)))
    names = ("begin", "end", "committed", "owner")
    values = [*(flat(rows[name]) for name in names), _with_nulls(rows, "stable_end", "end")]
    begin, end, committed, owner, stable = _laid_out(rows, topics, counts, values)
    known, numbers = _numbered(rows, members)
    owner = np.where(owner >= 0, list_starts(rows["members"])[:-1, None] + owner, NONE)
    return SampleSeries(
        at=moments(rows) / MICROSECONDS,
        begin=begin,
        end=end,
        committed=committed,
        members=known,
        owner=np.append(numbers, np.int32(NONE))[owner],
        latest=latest,
        stable_end=stable if (stable >= 0).any() else None,
    )


def reports_of(
    rows: pa.Table, topics: Sequence[str], counts: Sequence[int], members: Sequence[str]
) -> ReportSeries | None:
    """Return the reports of work in the samples that `arrays_of` selects; None if there are none.

    Parameters
    ----------
    rows, topics, counts
        As for `arrays_of`.
    members
        `SampleSeries.members` of the same samples.
    """
    if rows["reporter"].null_count == rows.num_rows:
        return None
    rows = _rows_at(rows, _chosen(moments(rows)))
    names = ("reporter", *OF_PARTITIONS)
    values = [_with_nulls(rows, name, "end") for name in names]
    reporter, records, busy_ms, squares_ms2 = _laid_out(rows, topics, counts, values)
    _, numbers = _numbered(rows, members)
    first = list_starts(rows["members"])
    by = np.append(numbers, np.int32(NONE))[
        np.where(reporter >= 0, first[:-1, None] + reporter, NONE)
    ]
    sample = np.repeat(np.arange(rows.num_rows), np.diff(first))
    tokens = as_array(rows["tokens"]).flatten().dictionary_encode()
    codes = np.full(numbers.size, NONE, np.int64)
    reported = np.repeat(rows["tokens"].is_valid().to_numpy(), np.diff(first))
    codes[reported] = tokens.indices.fill_null(NONE).to_numpy(zero_copy_only=False)

    def of_members(values: Int64) -> Int64:
        table = np.full((rows.num_rows, len(members)), NONE, np.int64)
        table[sample, numbers] = values
        return table

    def counters(name: str) -> npt.NDArray[np.float64]:
        table = of_members(_with_nulls(rows, name, "members"))
        return np.where(table >= 0, table, np.nan)

    paused = counters("paused")
    paused[paused == TIMES_UNKNOWN] = np.nan
    return ReportSeries(
        by=by,
        records=records.astype(np.float64),
        busy_s=busy_ms / 1e3,
        squares_s2=squares_ms2 / 1e6,
        token=of_members(codes),
        elapsed_s=counters("elapsed_ms") / 1e3,
        waiting_s=counters("waiting_ms") / 1e3,
        handler_s=counters("handler_ms") / 1e3,
        paused=paused,
    )


def _laid_out(
    rows: pa.Table,
    topics: Sequence[str],
    counts: Sequence[int],
    values: Sequence[npt.NDArray[Any]],
) -> list[npt.NDArray[Any]]:
    """Convert flat arrays (one sample after the other) to arrays of samples x partitions."""
    firsts = np.cumsum(np.asarray(counts, dtype=np.int64)) - np.asarray(counts, dtype=np.int64)
    place = {
        name: (start, count) for name, start, count in zip(topics, firsts, counts, strict=True)
    }
    layouts, shape = _layouts(rows), (rows.num_rows, int(np.sum(counts)))
    if [layout for _, layout in layouts] == [list(zip(topics, counts, strict=True))]:
        return [column.reshape(shape) for column in values]
    # Index of each value in the flat array. If a value is missing, the index is -1 and selects the
    # -1 that is appended below.
    found_at = np.full(shape, NONE, dtype=np.int64)
    first = list_starts(rows["end"])
    for mine, layout in layouts:
        source, target = _positions(layout, place)
        found_at[mine[:, None], target] = first[mine][:, None] + source
    return [np.append(column, NONE)[found_at] for column in values]


def all_topics(rows: pa.Table, *, latest: bool = False) -> SampleSeries:
    """Return all samples in `rows` as arrays, with the topics and members of the last row."""
    (now,) = rows.slice(rows.num_rows - 1).select(["topics", "counts", "members"]).to_pylist()
    return arrays_of(rows, now["topics"], now["counts"], now["members"], latest=latest)


def _with_nulls(rows: pa.Table, name: str, like: str) -> Int64:
    """Return the values of a column of lists as one array; a null list is replaced by values -1.

    Parameters
    ----------
    like
        A column without nulls. Its lists have the lengths that the null lists would have.
    """
    starts = list_starts(rows[like])
    values = np.full(int(starts[-1]), NONE, dtype=np.int64)
    valid = as_array(rows[name]).is_valid().to_numpy(zero_copy_only=False)
    values[np.repeat(valid, np.diff(starts))] = flat(rows[name])
    return values


def _rows_at(rows: pa.Table, chosen: Int64) -> pa.Table:
    """Return the chosen rows. If they are consecutive, they are not copied."""
    first = int(chosen[0])
    if (np.diff(chosen) == 1).all():
        return rows.slice(first, chosen.size)
    return rows.take(pa.array(chosen))


def moments(rows: pa.Table) -> Int64:
    """Return the time of each sample, in microseconds since the epoch."""
    at: Int64 = rows["at"].to_numpy().view(np.int64)
    return at


def _chosen(at: Int64) -> Int64:
    """Return the indices of the samples to include, in order of time."""
    order = np.argsort(at, kind="stable")
    at = at[order]
    age = at[-1] - at
    last_of_interval = np.append(np.diff(at // _microseconds(THINNED_TO)) > 0, True)
    last_of_moment = np.append(np.diff(at) > 0, True)
    counts = last_of_moment & (last_of_interval | (age <= _microseconds(EVERY_SAMPLE)))
    chosen: Int64 = order[counts & (age <= _microseconds(HISTORY))]
    return chosen


def _microseconds(length: Any) -> int:
    return int(length.total_seconds() * MICROSECONDS)


def _layouts(rows: pa.Table) -> list[tuple[Int64, list[tuple[str, int]]]]:
    """Return each different layout (topics and their counts), preceded by its row numbers."""
    encoded = as_array(rows["topics"]).flatten().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    counts, names = flat(rows["counts"]), encoded.dictionary.to_pylist()
    both = np.column_stack((codes, counts))
    by_layout: dict[bytes, list[int]] = {}
    bounds = list(pairwise(list_starts(rows["counts"]).tolist()))
    for row, (start, end) in enumerate(bounds):
        by_layout.setdefault(both[start:end].tobytes(), []).append(row)
    return [
        (
            np.array(same, dtype=np.int64),
            [(names[code], count) for code, count in both[slice(*bounds[same[0]])].tolist()],
        )
        for same in by_layout.values()
    ]


def _positions(
    layout: Sequence[tuple[str, int]], place: dict[str, tuple[int, int]]
) -> tuple[Int64, Int64]:
    """Return two indices of each partition to copy: its index in a sample, and in the result."""
    source, target, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for topic, count in layout:
        first, wanted = place.get(topic, (0, 0))
        both = np.arange(min(count, wanted), dtype=np.int64)
        source.append(start + both)
        target.append(first + both)
        start += count
    return np.concatenate(source), np.concatenate(target)


def _numbered(rows: pa.Table, members: Sequence[str]) -> tuple[tuple[str, ...], Int32]:
    """Return all member names, and the members of all samples as indices into these names."""
    encoded = as_array(rows["members"]).flatten().dictionary_encode()
    known = encoded.dictionary.to_pylist()
    names = dict.fromkeys([*members, *known])
    number = {name: index for index, name in enumerate(names)}
    numbers = np.array([number[name] for name in known], dtype=np.int32)
    return tuple(names), numbers[encoded.indices.to_numpy(zero_copy_only=False)]

"""Columns of the table of samples for the work that consumers report.

Belongs here: filling the columns from the metadata of commits. Belongs elsewhere: the text of a
report (`fairlead.wire.work_report`), and computing figures
(`fairlead.domain.analysis.reported_work`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.domain.groups import CommittedOffsets, GroupDescription
from fairlead.wire.work_report import NUMBERS, member_hash, read_reports

Int64 = npt.NDArray[np.int64]

#: Columns with a value for each partition, and the position of this value in `WorkReport`.
OF_PARTITIONS: Final = {"report_records": 4, "report_busy_ms": 5, "report_squares_ms2": 6}
#: Columns with a value for each member, and the position of this value in `WorkReport`.
OF_MEMBERS: Final = {
    "elapsed_ms": 0,
    "waiting_ms": 1,
    "handler_ms": 2,
    "calls": 3,
    "paused": 7,
    "reported_at_ms": 8,
}
_ELAPSED: Final = OF_MEMBERS["elapsed_ms"]


def work_columns(
    groups: Sequence[GroupDescription],
    blocks: Sequence[tuple[GroupDescription, str]],
    starts: Int64,
    by_partition: Int64,
    committed: Mapping[str, CommittedOffsets],
) -> dict[str, pa.Array]:
    """Return the columns of reported work; null for a group in which no member reports.

    Parameters
    ----------
    groups
        G groups, in the order of the sample's rows.
    blocks, starts
        The B blocks (a block is one topic of one group), and the index of the first partition of
        each block, int64 (B + 1,).
    by_partition
        Index of the first partition of each group, int64 of shape (G + 1,).
    committed
        Maps each group to its commits.
    """
    total = int(starts[-1])
    texts: list[bytes] = []
    places: list[Int64] = [np.empty(0, np.int64)]
    ends = starts.tolist()
    for (group, topic), start, end in zip(blocks, ends, ends[1:], strict=False):
        commits = committed.get(group.group, {}).get(topic)
        if commits is not None and any(commits.metadata):
            exists = commits.partitions < end - start
            places.append(start + commits.partitions[exists].astype(np.int64))
            texts += compress(commits.metadata, exists.tolist())
    reports_read = read_reports(texts)
    place = np.concatenate(places)[reports_read.place]
    group_of = np.searchsorted(by_partition, place, side="right") - 1
    member_starts = np.cumsum([0, *(len(group.members) for group in groups)])
    member = _writers(groups, group_of, reports_read.owners)
    known = member >= 0
    place, group_of, member = place[known], group_of[known], member[known]
    numbers = reports_read.numbers[known]
    reporter = np.full(total, -1, np.int32)
    reporter[place] = member
    of_partition = np.zeros((total, NUMBERS), np.int64)
    of_partition[place] = numbers
    # Each partition's commit has its own report, so a member may have several reports. Only the
    # newest of them has the member's present counters.
    newest = np.argsort(numbers[:, _ELAPSED], kind="stable")
    member_row = member_starts[group_of] + member
    of_member = np.full((int(member_starts[-1]), NUMBERS), -1, np.int64)
    of_member[member_row[newest]] = numbers[newest]
    tokens = np.full(int(member_starts[-1]), None, object)
    tokens[member_row[newest]] = reports_read.tokens[known][newest]
    reports = np.bincount(group_of, minlength=len(groups)) > 0
    mask = pa.array(~reports, pa.bool_())

    return {
        "reporter": lists(by_partition, pa.array(reporter), mask),
        **{
            name: lists(by_partition, pa.array(of_partition[:, field]), mask)
            for name, field in OF_PARTITIONS.items()
        },
        "tokens": lists(member_starts, pa.array(tokens, pa.string()), mask),
        **{
            name: lists(member_starts, pa.array(of_member[:, field]), mask)
            for name, field in OF_MEMBERS.items()
        },
    }


def lists(starts: Int64, values: pa.Array, mask: pa.Array | None = None) -> pa.Array:
    """Return `values` as a column of lists, which begin at `starts`. Masked rows are null."""
    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values, mask=mask)


def _writers(
    groups: Sequence[GroupDescription], group_of: Int64, owners: npt.NDArray[np.str_]
) -> npt.NDArray[np.int32]:
    """Return the writer of each report as an index into the group's members; -1: unknown."""
    member = np.full(group_of.size, -1, np.int32)
    numbers, firsts = np.unique(group_of, return_index=True)  # `group_of` ascends
    bounds = pairwise([*firsts.tolist(), group_of.size])
    for number, (first, end) in zip(numbers.tolist(), bounds, strict=True):
        hashes = [member_hash(its.member_id) for its in groups[number].members]
        once = {text for text, count in Counter(hashes).items() if count == 1}
        known = {text: place for place, text in enumerate(hashes) if text in once}
        member[first:end] = [known.get(text, -1) for text in owners[first:end].tolist()]
    return member

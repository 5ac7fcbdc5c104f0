"""Looks at many groups as if they were one: what was looked at together is computed together.

Belongs here: laying the partitions of groups with the same looks side by side. Does not: a single
group's looks over partitions that come and go (`arrays`), nor what is computed (`lag`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fairlead.domain.judgement.looks import Int64, Looks
from fairlead.domain.looks.arrays import MICROSECONDS, flat, looks_of, moments, stable_ends, starts
from fairlead.domain.looks.look import NONE


@dataclass(frozen=True, eq=False)
class Stack:
    """Groups that were looked at at the same moments: P partitions in all.

    Parameters
    ----------
    newest
        The last look at each group, one row a group, of the schema
        `fairlead.domain.looks.look.LOOKS`.
    looks
        At the partitions of all, group by group as the last look has them. Owners are not in it:
        the last look says who they are.
    """

    newest: pa.Table
    looks: Looks

    @property
    def group_of(self) -> Int64:
        """Place of each partition's group in `newest`, int64 of shape (P,)."""
        return np.repeat(np.arange(self.newest.num_rows), np.diff(starts(self.newest["end"])))


def stacks(by_group: Mapping[str, pa.Table], latest: Collection[str]) -> Iterator[Stack]:
    """Lay groups with the same looks side by side.

    Parameters
    ----------
    by_group
        Group to its looks, by time; of the schema `LOOKS`, one row at least.
    latest
        The groups whose consumers start at the log's end without a commit.

    Yields
    ------
    Stacks with every group once. A group whose topics have changed between its looks stands alone.
    """
    together: dict[tuple[bytes, bool], list[pa.Table]] = {}
    for group, rows in by_group.items():
        if _unchanged(rows):
            key = moments(rows).tobytes(), group in latest
            together.setdefault(key, []).append(rows)
        else:
            newest = rows.slice(rows.num_rows - 1)
            (layout,) = newest.select(["topics", "counts"]).to_pylist()
            yield Stack(
                newest,
                looks_of(rows, layout["topics"], layout["counts"], (), latest=group in latest),
            )
    for (_, starts_latest), tables in together.items():
        yield _stacked(tables, latest=starts_latest)


def _unchanged(rows: pa.Table) -> bool:
    """Whether a group's looks know the same partitions, each moment once."""
    if (np.diff(moments(rows)) <= 0).any():
        return False
    for name in ("topics", "counts"):
        lengths = np.diff(starts(rows[name]))
        if (lengths != lengths[-1]).any():
            return False
        values = rows[name].combine_chunks().flatten()
        last = values.slice(len(values) - int(lengths[-1]))
        if not values.equals(pa.concat_arrays([last] * rows.num_rows)):
            return False
    return True


def _stacked(tables: list[pa.Table], *, latest: bool) -> Stack:
    looks = tables[0].num_rows
    rows = pa.concat_tables(tables).combine_chunks()
    ends = starts(rows["end"])
    first = ends[:-1].reshape(len(tables), looks)
    of_group = np.diff(ends).reshape(len(tables), looks)[:, -1]
    group_of = np.repeat(np.arange(len(tables)), of_group)
    within = np.arange(group_of.size) - np.repeat(np.cumsum(of_group) - of_group, of_group)
    places = first.T[:, group_of] + within
    begin, end, committed = (flat(rows[name])[places] for name in ("begin", "end", "committed"))
    stable = stable_ends(rows)[places]
    return Stack(
        newest=rows.take(pa.array(np.arange(looks - 1, rows.num_rows, looks))),
        looks=Looks(
            at=moments(rows)[:looks] / MICROSECONDS,
            begin=begin,
            end=end,
            committed=committed,
            members=(),
            owner=np.full(end.shape, NONE, np.int32),
            latest=latest,
            stable_end=stable if (stable >= 0).any() else None,
        ),
    )

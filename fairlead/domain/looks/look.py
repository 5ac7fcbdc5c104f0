"""A look: where some groups stand at a moment, one row a group.

Belongs here: the columns, and filling them from a snapshot. Does not: keeping looks (`archive`),
nor what they mean (`fairlead.domain.judgement`).
"""

from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignors.claims import effective_owner
from fairlead.common.tables import as_array
from fairlead.domain.groups import LogOffsets
from fairlead.domain.looks import EVERY_LOOK, HISTORY
from fairlead.domain.snapshot import GroupSnapshot

Codes = npt.NDArray[np.int64]

#: An offset that is not known or not committed; an owner that is nobody, or not known.
NONE: Final = -1
_BETWEEN: Final = "\0"


def looked_back(*, remembered: bool) -> timedelta:
    """Return how far back a group is judged by: by little where its members' speeds are known."""
    return EVERY_LOOK if remembered else HISTORY


LOOKS: Final = pa.schema(
    {
        "group": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
        "topics": pa.list_(pa.string()),
        "counts": pa.list_(pa.int32()),
        "begin": pa.list_(pa.int64()),
        "end": pa.list_(pa.int64()),
        "committed": pa.list_(pa.int64()),
        "stable_end": pa.list_(pa.int64()),
        "members": pa.list_(pa.string()),
        "owner": pa.list_(pa.int32()),
        "racks": pa.list_(pa.list_(pa.string())),
        "rack_set": pa.list_(pa.int32()),
        "log_bytes": pa.list_(pa.int64()),
    }
)
"""One row a group and look; ascending by group.

`topics`, ascending, with the number of partitions of each: those that exist, and that a member
reads or the group has committed. Their partitions stand one behind the other in `begin`, `end`,
`committed` (-1: not known, or not committed) and `owner` (index into `members`; -1: nobody, or not
known). An array a group: a fleet's look is thousands of rows, not millions. A row of a group that
reads two topics, of two partitions and of three::

    topics   a        b                  members  m, n
    counts   2        3
    place    0   1    2   3   4
    is       a-0 a-1  b-0 b-1 b-2
    end      40  52   7   9   -1         b-2 is not known
    owner    0   1    1   0   -1         n owns a-1 and b-0

`looks_of` (`arrays`) makes of a group's L rows matrices of shape (L, P), a column a partition as it
is now; `stacks` lays those of several groups side by side, and `Looks.beside` does so for a
judgement.

`stable_end` is the last stable offset of partitions that stood still (-1: not read); null if no
partition of the group did.

`racks` are the sets of racks that partitions are fetched from, `rack_set` the set of each partition
(-1: not known), `log_bytes` the size of its log (-1: not known). All three are null where nothing
is known of any partition of the group, as where no member names a rack.
"""


def look_of(snapshot: GroupSnapshot) -> pa.Table:
    """Lay a snapshot out as a look, of the schema `LOOKS`.

    A group that could not be described has no members, and owners that are not known. Partitions
    that do not exist any more are left out.
    """
    groups = snapshot.groups.sort_by("group").combine_chunks()
    names = groups["group"].to_pylist()
    place = {name: number for number, name in enumerate(names)}
    offsets = _existing(snapshot.offsets)
    topics = sorted(pc.unique(offsets["topic"]).to_pylist())
    group_of = _codes(offsets["group"], place)
    block_of = group_of * len(topics) + _codes(
        offsets["topic"], {t: n for n, t in enumerate(topics)}
    )
    blocks, starts, counts = np.unique(block_of, return_index=True, return_counts=True)
    claims, members = _claims(snapshot.members, place, topics)
    owner = claims.owner(blocks, starts, counts)
    ends = np.arange(len(names) + 1)
    rows_of = np.searchsorted(group_of, ends)
    blocks_of = np.searchsorted(blocks, ends * len(topics)) if topics else np.zeros_like(ends)
    topic_names = pa.array(topics, pa.string()).take(pa.array(blocks % max(1, len(topics))))
    return pa.table(
        {
            "group": groups["group"],
            "at": pa.repeat(pa.scalar(snapshot.snapshot_at, LOOKS.field("at").type), len(names)),
            "topics": _lists(blocks_of, topic_names),
            "counts": _lists(blocks_of, pa.array(counts.astype(np.int32))),
            "begin": _lists(rows_of, _filled(offsets["begin_offset"])),
            "end": _lists(rows_of, _filled(offsets["end_offset"])),
            "committed": _lists(rows_of, _filled(offsets["committed_offset"])),
            "stable_end": _where_any(rows_of, offsets["stable_offset"]),
            "members": _lists(claims.starts, members),
            "owner": _lists(rows_of, pa.array(owner)),
            **_sources(offsets, rows_of),
        },
        schema=LOOKS,
    )


class _Claims:
    """What members say they own: K claims of partitions, of M members in G groups.

    Parameters
    ----------
    starts
        Where each group's members start, and all end, shape (G + 1,).
    block, partition, member, generation
        Of each claim, shape (K,): place of group and topic, number of the partition, index of the
        member within its group, generation.
    """

    def __init__(
        self, starts: Codes, block: Codes, partition: Codes, member: Codes, generation: Codes
    ) -> None:
        self.starts = starts
        self._block, self._partition = block, partition
        self._member, self._generation = member, generation

    def owner(self, blocks: Codes, starts: Codes, counts: Codes) -> npt.NDArray[np.int32]:
        """Settle the claims on blocks of partitions, ascending; others are dropped."""
        at = np.searchsorted(blocks, self._block)
        known = at < blocks.size
        known[known] = blocks[at[known]] == self._block[known]
        known[known] = self._partition[known] < counts[at[known]]
        return effective_owner(
            starts[at[known]] + self._partition[known],
            self._member[known].astype(np.int32),
            self._generation[known],
            partition_total=int(counts.sum()),
        )


def _claims(
    members: pa.Table, place: dict[str, int], topics: list[str]
) -> tuple[_Claims, pa.Array]:
    """Return the claims of the table of members, and the members' names by group."""
    members = members.sort_by([("group", "ascending"), ("member", "ascending")]).combine_chunks()
    group_of = _codes(members["group"], place)
    starts = np.searchsorted(group_of, np.arange(len(place) + 1))
    owned = as_array(members["partitions"])
    row = np.repeat(np.arange(members.num_rows), pc.list_value_length(owned).to_numpy())
    claimed = owned.flatten()
    topic = _codes(claimed.field("topic"), {t: n for n, t in enumerate(topics)})
    generation = _filled(members["generation"]).to_numpy().astype(np.int64)
    known = topic >= 0
    row, topic = row[known], topic[known]
    partition = claimed.field("partition").to_numpy(zero_copy_only=False)[known].astype(np.int64)
    claims = _Claims(
        starts,
        group_of[row] * len(topics) + topic,
        partition,
        row - starts[group_of[row]],
        generation[row],
    )
    return claims, as_array(members["member"])


def _sources(offsets: pa.Table, rows_of: Codes) -> dict[str, pa.Array]:
    """Return where each group's partitions are fetched from; null where none is known."""
    encoded = pc.binary_join(as_array(offsets["racks"]), _BETWEEN).dictionary_encode()
    names = [text.split(_BETWEEN) for text in encoded.dictionary.to_pylist()]
    codes = pc.fill_null(encoded.indices, NONE).to_numpy(zero_copy_only=False).copy()
    sets: list[list[list[str]] | None] = []
    for first, last in zip(rows_of.tolist(), rows_of[1:].tolist(), strict=False):
        mine = codes[first:last]
        known = np.unique(mine[mine >= 0])
        codes[first:last] = np.where(mine >= 0, np.searchsorted(known, mine), NONE)
        sets.append([names[place] for place in known.tolist()] or None)
    mask = pa.array([known_members is None for known_members in sets], pa.bool_())
    return {
        "racks": pa.array(sets, LOOKS.field("racks").type),
        "rack_set": _lists(rows_of, pa.array(codes, pa.int32()), mask),
        "log_bytes": _lists(rows_of, _filled(offsets["log_bytes"]), mask),
    }


def partition_places(looks: pa.Table) -> tuple[Codes, Codes]:
    """Return where the partitions of looks stand, as `begin`, `end` and `owner` have them.

    Parameters
    ----------
    looks
        P partitions in all, in chunks or not.

    Returns
    -------
    topic_of, number
        The place of each partition's topic among the `topics` of all rows, and its number in the
        topic; int64 of shape (P,).

    Examples
    --------
    The row above:

    >>> row = pa.table({"topics": [["a", "b"]], "counts": [[2, 3]]})
    >>> [places.tolist() for places in partition_places(row)]
    [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]]
    """
    counts = looks["counts"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    topic_of = np.repeat(np.arange(counts.size), counts)
    return topic_of, np.arange(topic_of.size) - np.repeat(np.cumsum(counts) - counts, counts)


def readable_partitions(look: pa.Table) -> pa.Table:
    """Return a row for each partition of a look with known offsets.

    Parameters
    ----------
    look
        Of the schema `LOOKS`, each group once.

    Returns
    -------
    Columns group, topic, partition, and committed (-1: not committed).
    """
    look = look.combine_chunks()
    topic_of, number = partition_places(look)
    group_of = np.repeat(np.arange(look.num_rows), pc.list_value_length(look["end"]).to_numpy())
    begin, end, committed = (
        look[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        for name in ("begin", "end", "committed")
    )
    known = np.flatnonzero((begin >= 0) & (end >= 0))
    topics = look["topics"].combine_chunks().flatten()
    return pa.table(
        {
            "group": look["group"].take(pa.array(group_of[known])),
            "topic": topics.take(pa.array(topic_of[known])),
            "partition": pa.array(number[known].astype(np.int32)),
            "committed": pa.array(committed[known]),
        }
    )


def _existing(offsets: pa.Table) -> pa.Table:
    """Return the partitions that exist, by group, topic and number."""
    gone = pc.fill_null(pc.equal(offsets["error"], LogOffsets.GONE_TEXT), False)  # noqa: FBT003 - Arrow's
    return offsets.filter(pc.invert(gone)).combine_chunks()


def _codes(names: pa.Array | pa.ChunkedArray, place: dict[str, int]) -> Codes:
    """Return the place of each name; -1: it has none."""
    encoded = as_array(names).dictionary_encode()
    places = np.array([place.get(name, NONE) for name in encoded.dictionary.to_pylist()], np.int64)
    indices: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return places[indices] if places.size else indices


def _filled(values: pa.ChunkedArray) -> pa.Array:
    return pc.fill_null(as_array(values), NONE)


def _where_any(starts: Codes, values: pa.ChunkedArray) -> pa.Array:
    """Return each group's values; null for a group without any."""
    valid = as_array(values).is_valid().to_numpy(zero_copy_only=False)
    known = np.concatenate(([0], np.cumsum(valid)))
    nothing = known[starts[1:]] == known[starts[:-1]]
    return _lists(starts, _filled(values), pa.array(nothing, pa.bool_()))


def _lists(starts: npt.NDArray[Any], values: pa.Array, mask: pa.Array | None = None) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values, mask=mask)

"""Helpers for Arrow tables.

Belongs here: helpers for tables of any schema. Belongs elsewhere: schemas.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def slices(table: pa.Table, column: str) -> dict[str, pa.Table]:
    """Split a table by the values of a column; rows with the same value keep their order."""
    if not table.num_rows:
        return {}
    order = pc.sort_indices(table, sort_keys=[(column, "ascending")])
    if (np.diff(order.to_numpy()) != 1).any():  # the rows are not sorted yet
        table = table.take(order)
    table = table.combine_chunks()
    names = table[column].to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(names[1:] != names[:-1]) + 1))
    lengths = np.diff(np.append(starts, names.size))
    return {
        names[start]: table.slice(start, length)
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    }


def named(numbers: npt.NDArray[Any], names: Sequence[str]) -> pa.Array:
    """Return the name at each index, and null for each negative index.

    Examples
    --------
    >>> named(np.array([1, -1, 0]), ["a", "b"]).to_pylist()
    ['b', None, 'a']
    """
    return pa.array(names, pa.string()).take(pa.array(numbers, mask=numbers < 0))


def as_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; copies it only if it has several chunks."""
    if isinstance(values, pa.Array):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()

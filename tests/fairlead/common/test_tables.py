"""Arrow tables cut into slices."""

import pyarrow as pa

from fairlead.common.tables import slices


def test_slices_keep_the_order_of_rows() -> None:
    """One slice a value, whatever the order they come in."""
    table = pa.table({"group": ["b", "a", "b"], "value": [1, 2, 3]})
    cut = slices(table, "group")
    assert {group: rows["value"].to_pylist() for group, rows in cut.items()} == {
        "a": [2],
        "b": [1, 3],
    }

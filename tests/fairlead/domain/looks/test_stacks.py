"""Looks laid side by side say of each group what its looks alone say."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead.domain.looks.arrays import looks_of
from fairlead.domain.looks.lag import partition_lag
from fairlead.domain.looks.look import LOOKS
from fairlead.domain.looks.stacks import stacks

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EVERY_MINUTE = (3, 2, 1, 0)


def looked_at(
    group: str,
    layouts: list[dict[str, int]],
    minutes: tuple[float, ...] = EVERY_MINUTE,
    *,
    transaction: bool = False,
) -> pa.Table:
    """Return looks at a group, so many minutes before noon, each with topics and their sizes."""
    rng = np.random.default_rng(sum(map(ord, group)))
    rows: list[dict[str, Any]] = []
    for place, (layout, ago) in enumerate(zip(layouts, minutes, strict=True)):
        size = sum(layout.values())
        end = 1_000 * place + rng.integers(0, 500, size)
        committed = np.where(rng.random(size) < 0.2, -1, end - rng.integers(0, 2_000, size))
        # The last partition's commits stand in front of an open transaction.
        committed[-1:] = 900
        stable_end = [-1] * (size - 1) + [900] if transaction and place else None
        rows.append(
            {
                "group": group,
                "at": NOON - timedelta(minutes=ago),
                "topics": list(layout),
                "counts": list(layout.values()),
                "begin": [0] * size,
                "end": end.tolist(),
                "committed": np.maximum(committed, -1).tolist(),
                "stable_end": stable_end,
                "members": ["a"],
                "owner": [0] * size,
            }
        )
    return pa.Table.from_pylist(rows, LOOKS)


def test_stacked_groups_have_the_lag_that_they_have_alone() -> None:
    """Of any size, with grown topics, other moments, another reset policy, or a moment twice."""
    same, grown = [{"t": 3, "u": 2}] * 4, [{"t": 1}, {"t": 1}, {"t": 2}, {"t": 2}]
    groups = {
        "a": looked_at("a", same),
        "alike": looked_at("alike", [{"other": 4}] * 4),
        "empty": looked_at("empty", [{}] * 4),
        "grown": looked_at("grown", grown),
        "latest": looked_at("latest", same),
        "once": looked_at("once", [{"t": 2}], (0,)),
        "other moments": looked_at("other moments", same, (9, 5, 2, 0)),
        "transaction": looked_at("transaction", same, transaction=True),
        "twice": looked_at("twice", same, (3, 1, 1, 0)),
    }
    seen = {}
    for stack in stacks(groups, {"latest"}):
        found = partition_lag(stack.looks, stack.group_of)
        for place, name in enumerate(stack.newest["group"].to_pylist()):
            mine = stack.group_of == place
            seen[name] = {key: values[mine] for key, values in vars(found).items()}
    assert seen.keys() == groups.keys()
    for name, rows in groups.items():
        layout = rows.to_pylist()[-1]
        looks = looks_of(rows, layout["topics"], layout["counts"], (), latest=name == "latest")
        for key, values in vars(partition_lag(looks)).items():
            np.testing.assert_array_equal(seen[name][key], values, f"{name}: {key}")


def test_groups_with_the_same_looks_are_one_stack() -> None:
    """A fleet that is looked at together is computed together."""
    groups = {f"g{number}": looked_at(f"g{number}", [{"t": number}] * 4) for number in range(1, 9)}
    (stack,) = stacks(groups, ())
    assert stack.looks.partitions == sum(range(1, 9))

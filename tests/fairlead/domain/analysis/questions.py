"""Small input lines ("questions") for `fairlead decide`, built from a few numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairlead.domain.analysis.sample_series import SampleSeries
from tests.fairlead.domain.analysis.outside import written

Offset = Callable[[int, int], int | None]
Owner = Callable[[int, int], str | None]

#: Records of a partition: arrivals between two samples (PER_STEP), and a healthy lag (FRESH).
PER_STEP, FRESH = 60, 3


def arriving(partition: int, step: int) -> int:
    """Return the end offset at a sample if one record arrives a second."""
    return 1000 * (partition + 1) + PER_STEP * step


def prompt(partition: int, step: int) -> int:
    """Return the committed offset at a sample, for a member that keeps up."""
    return arriving(partition, step) - FRESH


def halves(partition: int, _: int) -> str:
    """Return the partition's owner: `a` for the first four partitions, otherwise `b`."""
    return "a" if partition < 4 else "b"


def question(
    series: int = 20,
    *,
    end: Offset = arriving,
    committed: Offset = prompt,
    owner: Owner = halves,
    stable_end: Offset = lambda *_: None,
    partitions: int = 8,
    **more: Any,
) -> dict[str, Any]:
    """Return an input line about members `a` and `b`, which read topic `t`; one sample a minute."""
    places = range(partitions)
    return {
        "topics": {"t": partitions},
        "members": {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}},
        "snapshots": [
            {
                "at": written(60.0 * step),
                "begin": {"t": [0 for _ in places]},
                "end": {"t": [end(place, step) for place in places]},
                "committed": {"t": [committed(place, step) for place in places]},
                "owners": {"t": [owner(place, step) for place in places]},
                "stable_end": {"t": [stable_end(place, step) for place in places]},
            }
            for step in range(series)
        ],
        **more,
    }


def skewed(partition: int, step: int) -> int:
    """Return the end offset; partitions 0 to 3 get twenty times as many records as the others."""
    return 1000 + PER_STEP * step * (20 if partition < 4 else 1)


def behind(partition: int, step: int) -> int:
    """Return the committed offset for `skewed`; of partitions 0 to 3, half the records are read."""
    return 1000 + (10 * PER_STEP * step if partition < 4 else PER_STEP * step - FRESH * (step > 0))


def series_at(
    end: Sequence[Sequence[int]],
    committed: Sequence[Sequence[int]],
    owner: Sequence[Sequence[int]] | Sequence[int],
    *,
    step_s: float = 60.0,
    members: tuple[str, ...] = ("a", "b"),
) -> SampleSeries:
    """Return samples at regular intervals; a single row of owners applies to all samples."""
    ends = np.array(end, np.int64)
    owners = np.array(owner, np.int32)
    return SampleSeries(
        at=np.arange(len(ends), dtype=np.float64) * np.float64(step_s),
        begin=np.zeros_like(ends),
        end=ends,
        committed=np.array(committed, np.int64),
        members=members,
        owner=np.broadcast_to(owners, ends.shape),
    )

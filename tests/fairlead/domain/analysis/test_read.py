"""Groups that are analysed together."""

from dataclasses import fields, replace

import numpy as np
import pytest

from fairlead.domain.analysis.read import read_together
from fairlead.domain.analysis.sample_series import SampleSeries


def group(rng: np.random.Generator, series: int) -> SampleSeries:
    """Return a random group: partitions stop, are slow or new; owners join, leave and lag."""
    partitions, members = int(rng.integers(1, 30)), int(rng.integers(0, 5))
    shape = (series, partitions)
    end = rng.poisson(rng.lognormal(3, 2, partitions), shape).cumsum(axis=0) + 100
    share = rng.choice([0.0, 0.2, 1.0, 1.0, 1.0], partitions)
    read = np.where(
        rng.random((series, 1)) < rng.choice([0.0, 0.6]), 0, np.diff(end, axis=0, prepend=end[:1])
    )
    committed = np.minimum(50 + (share * read).astype(int).cumsum(axis=0), end)
    committed[: series // 2, rng.random(partitions) < 0.1] = -1
    end[series // 2 :, rng.random(partitions) < 0.1] = 7
    end[rng.random(shape) < 0.01] = -1
    owner = np.broadcast_to(rng.integers(-1, max(members, 1), partitions), shape).copy()
    owner[series // 3 :] = np.where(rng.random(partitions) < 0.2, -1, owner[series // 3 :])
    names = tuple(f"m{number}" for number in range(members))
    owner = np.minimum(owner, members - 1)
    at = np.arange(0.0, 60.0 * series, 60.0)
    return SampleSeries(
        at,
        np.zeros(shape, np.int64),
        end,
        committed,
        names,
        owner.astype(np.int32),
        latest=rng.random() < 0.2,
    )


@pytest.mark.parametrize("seed", range(3))
def test_groups_together_are_analysed_as_alone(seed: int) -> None:
    """Analysing a group together with others gives bitwise the same result, in any order."""
    rng = np.random.default_rng(seed)
    groups = [group(rng, int(rng.choice([1, 2, 7, 20]))) for _ in range(60)]
    alone = [read_together([replace(series)])[0] for series in groups]
    assert any(seen.commits.stuck.any() for seen in alone)
    assert any(seen.commits.rare.any() for seen in alone)
    order = rng.permutation(len(groups)).tolist()
    beside = read_together([groups[place] for place in order])
    for place, found in zip(order, beside, strict=True):
        for part in ("rates", "commits", "recent"):
            ours, other = getattr(alone[place], part), getattr(found, part)
            for name in (field.name for field in fields(ours)):
                wanted = getattr(ours, name)
                np.testing.assert_array_equal(getattr(other, name), wanted, f"{part}.{name}")
        for name in ("in_one_log", "arrived", "position", "lag", "advanced"):
            wanted = getattr(alone[place].recent, name)
            np.testing.assert_array_equal(getattr(found.recent, name), wanted, name)

"""The rules of Landau et al., and how they are measured."""

from dataclasses import replace

import numpy as np
import pytest

from assignors.problem import Problem
from benchmarks.bin_packing import RULES, BinPacking, Rule, pack
from benchmarks.landau import (
    CADENCE,
    PACKED,
    STEP_S,
    Score,
    landau,
)
from benchmarks.simulation.controllers import ByAssignor
from benchmarks.simulation.loop import run
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.world import Float64, Int32

RATES = np.array([60.0, 55.0, 40.0, 30.0, 10.0])
OWNER = np.array([0, 0, 1, 1, 2], np.int32)


def packed(rule: Rule, rates: Float64 = RATES, owner: Int32 = OWNER) -> list[int]:
    problem = Problem.of({"t": rates.size}, {name: ["t"] for name in "abcd"})
    return [int(m) for m in pack(replace(problem, owner=owner), rates, rule, 100.0)]


def test_modified_rules_keep_what_fits() -> None:
    """The fullest one, a, keeps 60, not 55; b gives its 30 to a and keeps 40; c gives its 10 away.

    Worst fit puts the 10 where most room is, with b, best fit where least is, with a; the 55 that a
    could not keep comes last, into a consumer of its own, or to b where that still has room.
    """
    assert packed("MWF") == [0, 2, 1, 0, 1]
    assert packed("MBF") == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("rule", RULES)
def test_no_consumer_is_packed_beyond_its_capacity(rule: Rule) -> None:
    """As long as there are consumers enough, partitions that fit are packed where they fit."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        rates = rng.uniform(0, 60, 5)
        placed = packed(rule, rates, rng.integers(0, 4, 5).astype(np.int32))
        assert np.bincount(placed, weights=rates).max() <= 100


def test_worst_fit_is_far_ahead_of_range_and_moves_for_it() -> None:
    """As published: seconds, not minutes, at the 99th percentile, for an R-score of about 1."""
    world = ScenarioWorld.of(landau(15, 18), hours=0.5, step_s=STEP_S)
    ours = Score.of(run(world, BinPacking("MWF", PACKED), CADENCE))
    theirs = Score.of(run(world, ByAssignor("range"), CADENCE))
    assert theirs.p99_s > 20 * ours.p99_s
    assert theirs.r_score == 0
    assert 0.5 < ours.r_score < 3

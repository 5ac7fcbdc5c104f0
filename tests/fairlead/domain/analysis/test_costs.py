"""Costs of partitions: inferred from consumers at their limit, and remembered."""

import json

import numpy as np
import pytest

from assignors.problem import Problem
from fairlead.domain.analysis.commits import read_commits
from fairlead.domain.analysis.costs import Costs
from fairlead.domain.analysis.inferred_costs import inferred_costs
from fairlead.domain.analysis.sample_series import Float64, Int64, SampleSeries
from fairlead.domain.analysis.thresholds import WEEK_S

#: Records a second that a consumer of usual speed processes.
USUAL = 100.0
PARTITIONS = 12


def at_their_limit(costs: Float64, speeds: tuple[float, ...], *, moved: bool) -> SampleSeries:
    """Return an hour of samples of consumers at their limit; partitions have unequal traffic.

    If `moved`, each partition changes its consumer after half an hour.
    """
    at, rng = np.arange(0.0, 3601.0, 60.0), np.random.default_rng(3)
    owner = np.tile(np.arange(PARTITIONS, dtype=np.int32) % len(speeds), (at.size, 1))
    if moved:
        owner[31:] = (owner[31:] + 1) % len(speeds)
    read = np.zeros((at.size, PARTITIONS))
    for step in range(1, at.size):
        shares = rng.uniform(0.5, 1.5, PARTITIONS)
        for member, speed in enumerate(speeds):
            mine = owner[step] == member
            seconds = 60.0 * shares * mine / (shares * mine).sum()
            read[step] += seconds * speed / costs
    committed: Int64 = 1000 + read.cumsum(axis=0).astype(np.int64)
    end = committed + 50_000 + (2 * USUAL * at[:, None]).astype(np.int64)
    names = tuple("abcdef"[: len(speeds)])
    return SampleSeries(at, 0 * end, end, committed, names, owner)


def costs_of(series: SampleSeries, before: Costs | None = None) -> Costs:
    """Return the costs inferred from samples, starting from the costs `before`."""
    rates = np.ones(PARTITIONS)
    topic_of = np.zeros(PARTITIONS, np.int32)
    before = before or Costs.usual(PARTITIONS)
    return inferred_costs(series, read_commits(series), topic_of, rates, before)


def test_expensive_partition_is_found_after_it_moved() -> None:
    """If a moved partition's records take 8 times as long on both consumers, its cost is 8."""
    truth = np.ones(PARTITIONS)
    truth[4] = 8.0
    costs = costs_of(at_their_limit(truth, (USUAL,) * 3, moved=True))
    assert costs.value[4] == pytest.approx(8.0, rel=0.15)
    assert (np.delete(costs.value, 4) == 1.0).all()


def test_slow_consumer_has_no_expensive_partitions() -> None:
    """If all records of a consumer take twice as long, its partitions keep the usual cost."""
    costs = costs_of(at_their_limit(np.ones(PARTITIONS), (USUAL, USUAL, USUAL / 2), moved=False))
    assert costs.equal


def test_remembered_cost_stays_if_a_consumer_has_one_partition() -> None:
    """A consumer's only partition keeps its remembered cost or, without one, the usual cost.

    Samples cannot show whether the consumer is slow or the partition is expensive.
    """
    at = np.arange(0.0, 3601.0, 60.0)
    owner = np.tile(np.array([0] + [1] * (PARTITIONS - 1), np.int32), (at.size, 1))
    end = np.repeat((10 * at)[:, None], PARTITIONS, axis=1).astype(np.int64)
    committed = end.copy()
    committed[:, 0] = 5 * at
    series = SampleSeries(at, 0 * end, end, committed, ("a", "b"), owner)
    problem = Problem.of({"t": PARTITIONS}, {"a": ["t"], "b": ["t"]})
    before = Costs.of_rows({"t": {"0": [8.0, 0.1, -60.0]}}, problem, series.now)
    assert costs_of(series).equal
    assert costs_of(series, before).value[0] == pytest.approx(8.0)


def test_costs_survive_a_round_trip_as_rows() -> None:
    """`of_rows` restores costs that `rows` has written, even extreme ones, for up to a week."""
    problem = Problem.of({"t": 3}, {"a": ["t"]})
    places, logs = np.arange(3), np.log([1e-9, 1.0, 1e9])
    none = np.zeros((2, 3), np.int64)
    series = SampleSeries(np.array([0.0, 9.0]), none, none, none, (), none.astype(np.int32))
    costs = Costs.usual(3).with_estimates(places, logs, np.full(3, 1e-12), series)
    rows = json.loads(json.dumps(costs.rows(problem)))
    again = Costs.of_rows(rows, problem, 10.0)
    assert again.rows(problem) == rows
    assert Costs.of_rows(rows, problem, 10.0 + WEEK_S).equal


@pytest.mark.parametrize("row", [[-1, 0.1, 0], [1e300, 0.1, 0], [2, 0, 0], [2, float("nan"), 0]])
def test_invalid_cost_is_refused(row: list[float]) -> None:
    problem = Problem.of({"t": 1}, {"a": ["t"]})
    with pytest.raises(ValueError, match=r"costs\.t\.0"):
        Costs.of_rows({"t": {"0": row}}, problem, 1.0)

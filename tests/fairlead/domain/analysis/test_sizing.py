"""The number of consumers that a group needs."""

import numpy as np
import pytest

from assignors.problem import Problem
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.peers import Peers
from fairlead.domain.analysis.sizing import Size, missing_members, size, surely_too_much


def sized(
    arrivals: list[float],
    speeds: list[float],
    *,
    measured: bool = True,
    late: bool = False,
    known: bool = True,
) -> Size:
    """Return the number of consumers that a group with one topic needs, with the reason."""
    members = {f"m{number}": ["t"] for number in range(len(speeds))}
    problem, loads = Problem.of({"t": len(arrivals)}, members), np.array(arrivals)
    none = np.zeros(loads.size)
    outlook = Outlook(loads, none, none, none, np.array(speeds))
    limits = np.full(len(speeds), measured)
    peers = Peers.of(problem)
    return size(problem, outlook, peers, 0.95, measured=limits, late=late, known=known)


def unhurried(problem: Problem, outlook: Outlook) -> Size:
    """Return the number of consumers for a group that keeps up, with measured capacities."""
    measured = np.ones(len(problem.members), dtype=bool)
    peers = Peers.of(problem)
    return size(problem, outlook, peers, 0.95, measured=measured, late=False, known=True)


def test_fewest_consumers_for_undivided_partitions() -> None:
    """Two partitions of 40/s fit on a consumer of 100/s, so nine partitions need five consumers."""
    assert sized([40.0] * 9, [100.0] * 7).wanted == 5
    assert sized([40.0] * 9, [100.0] * 4, late=True).wanted == 5
    assert sized([10.0] * 36, [100.0] * 7).wanted == 4


def test_a_partition_above_the_target_is_mentioned() -> None:
    """The reason mentions a partition that exceeds the target utilisation of every consumer."""
    result = sized([9.8] * 3, [10.0] * 3, late=True)
    assert result.wanted == 3
    assert result.why == (
        "29.4/s arrive in 3 partitions, and 3 consumers can process 30/s, or 28.5/s at the target "
        "utilisation of 95%; one partition alone takes any consumer above this utilisation: no "
        "more are needed."
    )


def test_topics_without_readers_are_not_counted() -> None:
    problem = Problem.of({"t": 2, "u": 1}, {"a": ["t"]})
    loads, none = np.array([10.0, 10.0, 900.0]), np.zeros(3)
    outlook = Outlook(loads, none, none, none, np.array([100.0]))
    result = unhurried(problem, outlook)
    assert result.why.startswith("20/s arrive in 2 partitions")


def test_consumers_of_unknown_capacity_are_not_counted() -> None:
    problem = Problem.of({"t": 1, "u": 1}, {"a": ["t"], "b": ["u"]})
    loads, none = np.array([10.0, 10.0]), np.zeros(2)
    outlook = Outlook(loads, none, none, none, np.array([100.0, 0.0]))
    result = unhurried(problem, outlook)
    assert (result.wanted, result.why) == (None, "The capacity of members is unknown.")


def test_members_that_keep_up_without_a_known_limit_are_enough() -> None:
    """If only lower bounds of capacities are known, a group that keeps up needs no more members."""
    assert sized([5.0] * 3, [10.0, 10.0], measured=False).wanted == 2
    assert sized([5.0] * 3, [10.0, 10.0]).wanted == 3


def test_a_group_that_is_behind_keeps_its_consumers() -> None:
    assert sized([10.0] * 9, [100.0] * 4).wanted == 1
    assert sized([10.0] * 9, [100.0] * 4, late=True).wanted == 4


def test_more_consumers_do_not_help_a_partition_that_is_too_large() -> None:
    result = sized([150.0, 10.0, 10.0], [100.0] * 3, late=True)
    assert result.wanted is None
    assert "t-0" in result.why
    assert "6 partitions of t instead of 3" in result.why


def test_without_capacities_no_number_is_given() -> None:
    assert sized([10.0] * 3, [0.0] * 3).wanted is None
    assert sized([10.0] * 3, [100.0] * 3, known=False).wanted is None


def test_any_arrivals_need_one_consumer() -> None:
    assert sized([0.001] * 3, [100.0] * 3).wanted == 1


@pytest.mark.parametrize("seed", range(50))
def test_packing_is_near_its_lower_bound(seed: int) -> None:
    """The number of consumers is at most 11/9 of the least possible number, plus 1.

    This is the bound of best-fit-decreasing packing.
    """
    rng = np.random.default_rng(seed)
    loads = rng.uniform(0.1, 60.0, int(rng.integers(1, 200)))
    least = int(np.ceil(loads.sum() / 95.0))
    result = missing_members(loads, np.zeros(0), 95.0)
    assert least <= result <= 11 / 9 * max(least, int((loads > 47.5).sum())) + 1
    assert not surely_too_much(loads, np.full(result, 95.0))

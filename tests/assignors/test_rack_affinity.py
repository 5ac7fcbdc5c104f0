"""Racks in `sticky`: as few reads as possible cross racks, and no other aim gets worse."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from assignors import aims, flow
from assignors.assignment import Assignment
from assignors.problem import Int32, Problem
from assignors.rack_affinity import deal_by_rack
from assignors.registry import assign
from assignors.verifier import violations
from benchmarks import workloads
from tests.assignors.problems import (
    every_owner,
    far,
    in_racks,
    kept,
    minus_returned,
    random_problem,
    small_problems,
    spread,
    sticky_value,
)


def shares(problem: Problem, owner: Int32) -> Counter[tuple[int, int]]:
    """Count the partitions of each topic that each member owns."""
    return Counter(zip(problem.topic_of.tolist(), owner.tolist(), strict=True))


def test_given_shares_are_dealt_as_near_as_possible() -> None:
    nearer = 0
    for seed, problem in small_problems(200):
        nobody = np.full_like(problem.owner, -1)
        fresh = in_racks(replace(problem, owner=nobody, earlier=None), seed)
        start = flow.solve(replace(fresh, rack_sets=(), rack_set_of=None))
        owner = deal_by_rack(fresh, start)
        given = shares(fresh, start)
        assert shares(fresh, owner) == given
        same = [other for other in every_owner(fresh) if shares(fresh, other) == given]
        assert far(fresh, owner) == min(far(fresh, other) for other in same), f"seed {seed}"
        nearer += far(fresh, owner) < far(fresh, start)
    assert nearer > 10


def test_racks_change_no_other_aim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the flow solver, racks make no other aim worse, and few reads cross racks."""
    as_good = []
    for seed in range(150):
        problem = in_racks(random_problem(seed, equal=seed % 2 == 0, partitions=6), seed)
        best = assign("sticky", problem).owner
        with monkeypatch.context() as without:
            without.setattr(aims, "solve", lambda *_args, **_options: None)
            plain = assign("sticky", replace(problem, rack_sets=(), rack_set_of=None)).owner
            owner = assign("sticky", problem).owner
        assert not violations(problem, Assignment(problem, owner))
        assert sticky_value(problem, owner) == sticky_value(problem, plain), f"seed {seed}"
        assert spread(problem, owner) <= spread(problem, plain), f"seed {seed}"
        assert minus_returned(problem, owner) == minus_returned(problem, plain), f"seed {seed}"
        assert far(problem, owner) <= far(problem, plain), f"seed {seed}"
        if spread(problem, owner) == spread(problem, best):
            as_good.append(far(problem, owner) <= far(problem, best))
    assert np.mean(as_good) > 0.9


def test_large_groups_read_from_near_replicas() -> None:
    """Of 20,000 partitions, none is read across racks. After a member has left, under 0.5 % are."""
    group = workloads.in_three_racks(workloads.equal_group(20_000, 50, 200))
    settled = assign("sticky", group)
    assert far(group, settled.owner) == 0
    assert spread(group, settled.owner)[0] == 1
    left = workloads.one_member_gone(group)
    again = assign("sticky", left).owner
    assert kept(left, again) == (left.owner >= 0).sum()
    assert far(left, again) < 0.005 * left.partition_total

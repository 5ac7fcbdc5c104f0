"""Plans that reduce traffic between racks, and their limits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assignors.problem import Member, Problem
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.decide import PlanDecision, decide
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import RackTraffic
from fairlead.domain.analysis.rules import Rules
from tests.fairlead.domain.analysis.questions import series_at

TIMES, STEP_S = 20, 60.0
#: Each of eight partitions gets 100 records of ten bytes a second: 8 kB/s in all, 0.69 GB a day.
PER_S, RECORD_BYTES, PARTITIONS = 100, 10.0, 8
ALL_GB = PER_S * RECORD_BYTES * PARTITIONS * 86_400 / 1e9
#: Racks of replicas: rack 2 for the first four partitions, rack 1 for the others.
CROSSED = [["2"]] * 4 + [["1"]] * 4


def question(
    *,
    owned: dict[str, list[int]] | None = None,
    racks: tuple[str | None, ...] = ("1", "2"),
    near: list[list[str]] | None = None,
    committed: Any = None,
    per_s: Any = PER_S,
    count: bool = True,
    **rules: Any,
) -> Question:
    """Return a question about `a` and `b`, which own four partitions each and have no lag."""
    owned = owned or {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}
    members = {
        name: Member(["t"], {"t": owned[name]}, rack=rack)
        for name, rack in zip(("a", "b"), racks, strict=True)
    }
    problem = Problem.of(
        {"t": PARTITIONS}, members, replica_racks={"t": CROSSED if near is None else near}
    )
    steps = np.arange(1, TIMES + 1)[:, None]
    end = (steps * STEP_S * np.broadcast_to(per_s, PARTITIONS)).astype(np.int64)
    read = end - 3 if committed is None else committed(end)
    return Question(
        problem,
        series_at(end.tolist(), read.tolist(), problem.owner.tolist()),
        Rules(racks=count, **rules),
        record_bytes=np.full(PARTITIONS, RECORD_BYTES),
    )


def far_after(decision: PlanDecision) -> float:
    """Return the share of traffic that comes from other racks under the decision's plan."""
    assert decision.traffic is not None
    assert decision.owner is not None
    return decision.traffic.share(decision.owner)


def test_a_healthy_group_gets_a_plan_for_rack_traffic() -> None:
    """If all traffic is between racks, a plan swaps the partitions to make all traffic local."""
    decision = decide(question())
    assert (decision.outcome, decision.diagnosis.name) == ("plan", "healthy")
    assert decision.for_racks
    assert far_after(decision) == 0.0
    assert decision.moved == PARTITIONS
    assert decision.traffic is not None
    before = decision.traffic.gb_per_day(question().problem.owner)
    assert before == pytest.approx(ALL_GB, rel=0.02)
    assert decision.reason.endswith("between racks: 0.691 GB a day, then 0 GB")


@pytest.mark.parametrize(
    "group",
    [
        question(racks=(None, None)),
        question(near=[[]] * PARTITIONS),
        question(near=[["1", "2"]] * PARTITIONS),
        question(count=False),
    ],
    ids=["members name none", "brokers have none", "a replica in each", "policy ignores them"],
)
def test_no_plan_without_avoidable_rack_traffic(group: Question) -> None:
    """No plan is made if racks are unknown or ignored, or each has replicas of all partitions."""
    decision = decide(group)
    assert (decision.outcome, decision.moved) == ("no change", 0)
    assert "between racks" not in decision.reason


def test_price_and_least_saving_decide() -> None:
    """Traffic causes a plan only if its price exceeds the policy's `least_saving_per_day`."""
    high = decide(question(price_per_gb=2.0, least_saving_per_day=1.0))
    assert high.reason.endswith("between racks: 0.691 GB a day, then 0 GB, 1.38 a day, then 0.00")
    low = decide(question(price_per_gb=0.02, least_saving_per_day=1.0))
    assert low.outcome == "no change"


def test_little_traffic_is_not_worth_a_rebalance() -> None:
    per_s = [100, 100, 100, 100, 100, 100, 100, 40]
    near = [["1"]] * 4 + [["2"]] * 3 + [["1"]]
    assert decide(question(per_s=per_s, near=near)).outcome == "no change"


def test_no_member_falls_behind_for_racks() -> None:
    """A plan that reduces rack traffic gives no member more partitions than the member can read."""
    group = question(near=[["1"]] * PARTITIONS)
    speeds = {name: Capacity(500.0, measured=True, at=group.series.now) for name in ("a", "b")}
    decision = decide(replace(group, capacities=speeds))
    assert decision.planned is None or decision.planned.time_lag_s <= group.rules.objective_s
    assert decision.moved <= 1


def test_a_group_that_is_behind_gets_no_more_moves_for_racks() -> None:
    """The plan for a group that is behind moves as many partitions as if racks were ignored."""
    per_s = [400, 400, 400, 400, 20, 20, 20, 20]

    def behind(end: np.ndarray) -> np.ndarray:
        """Return committed offsets: half of the first four partitions' records are unread."""
        return np.where(np.arange(PARTITIONS) < 4, end // 2, end - 3)

    late = question(per_s=per_s, committed=behind)
    with_racks, without = (
        decide(late),
        decide(replace(late, rules=replace(late.rules, racks=False))),
    )
    assert without.moved > 0
    assert with_racks.moved == without.moved
    assert not with_racks.for_racks
    assert with_racks.planned is not None
    assert without.planned is not None
    assert with_racks.planned.time_lag_s <= max(late.rules.objective_s, without.planned.time_lag_s)


def test_without_known_sizes_the_reason_has_shares() -> None:
    decision = decide(replace(question(), record_bytes=None))
    assert decision.reason.endswith("read from other racks: 100%, then 0%")
    assert decision.chosen is not None
    assert decision.chosen.rack_gb_per_day is None


def test_unknown_record_sizes_are_like_others_of_the_topic() -> None:
    group = question()
    sizes = np.array([10.0, np.nan, 30.0, 20.0, 20.0, 20.0, 20.0, 20.0])
    traffic = RackTraffic.of(group.problem, np.ones(PARTITIONS), sizes)
    assert traffic is not None
    assert traffic.per_s.tolist() == [10.0, 20.0, 30.0, 20.0, 20.0, 20.0, 20.0, 20.0]


def test_two_days_of_changing_traffic_take_one_plan() -> None:
    """In 48 hourly decisions under varying rates, one plan is made; cross-rack traffic stays small.

    Six members in three racks read sixty partitions, each of which has replicas in one rack.
    """
    drawn = np.random.default_rng(3)
    partitions, count = 60, 6
    near = [[f"r{drawn.integers(3)}"] for _ in range(partitions)]
    base = drawn.zipf(1.8, partitions).clip(1, 40) * 20.0
    owner = drawn.permutation(np.arange(partitions) % count)
    shares, moves = [], []
    for hour in range(48):
        by_day = 1 + 0.3 * np.sin(hour / 24 * 2 * np.pi)
        per_s = base * np.exp(0.1 * drawn.standard_normal(partitions)) * by_day
        members = {
            f"m{number}": Member(
                ["t"], {"t": np.flatnonzero(owner == number)}, rack=f"r{number % 3}"
            )
            for number in range(count)
        }
        problem = Problem.of({"t": partitions}, members, replica_racks={"t": near})
        end = (np.arange(1, TIMES + 1)[:, None] * STEP_S * per_s).astype(np.int64)
        series = series_at(
            end.tolist(), (end - 3).tolist(), problem.owner.tolist(), members=problem.members
        )
        speed = Capacity(base.sum() / count * 1.625, measured=True, at=series.now)
        decision = decide(
            Question(
                problem,
                series,
                Rules(racks=True),
                capacities=dict.fromkeys(members, speed),
                record_bytes=np.full(partitions, RECORD_BYTES),
            )
        )
        assert decision.traffic is not None
        shares.append(decision.traffic.share(problem.owner))
        if decision.owner is not None:
            moves.append(decision.moved)
            owner = decision.owner
    assert len(moves) == 1
    assert shares[0] > 0.7
    assert max(shares[1:]) < 0.06

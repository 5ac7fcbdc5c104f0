"""Candidates: their input from the forecast, and their moves."""

import numpy as np

from assignors.problem import Member, Problem
from fairlead.domain.analysis.candidates import FLAGSHIP, Candidate, candidates
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.peers import Peers
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.weighing import CandidateInputs


def planned(
    owned: dict[str, dict[str, list[float]]], speeds: list[float], rules: Rules | None = None
) -> Candidate:
    """Plan for members; `owned` has the arrival rates of their partitions, by topic."""
    counts: dict[str, int] = {}
    members, arrivals = {}, dict[str, list[float]]()
    for name, topics in owned.items():
        mine = {}
        for topic, rates in topics.items():
            first = counts.get(topic, 0)
            mine[topic] = list(range(first, first + len(rates)))
            counts[topic] = first + len(rates)
            arrivals.setdefault(topic, []).extend(rates)
        members[name] = Member(list(topics), owned=mine)
    problem = Problem.of(counts, members)
    per_s = np.concatenate([arrivals[topic] for topic in problem.topics])
    none = np.zeros(per_s.size)
    outlook = Outlook(per_s, none, none, none, np.array(speeds))
    inputs = CandidateInputs(
        problem, outlook, none > 0, rules or Rules(), Peers.of(problem), outlook.capacities
    )
    (candidate,) = candidates(inputs, [FLAGSHIP], {})
    return candidate


UNEVEN = {"a0": {"a": [60.0, 60.0]}, "a1": {"a": [10.0]}}
FULL = {"b0": {"b": [75.0, 75.0]}, "b1": {"b": [75.0, 75.0]}}


def owners(candidate: Candidate) -> dict[str, dict[str, list[int]]]:
    """Return the owner of each partition under the plan."""
    assert candidate.assignment is not None
    return candidate.assignment.by_member()


def test_members_that_share_no_topics_are_planned_apart() -> None:
    """Overload of the readers of b does not affect the plan for the readers of a."""
    candidate = planned(UNEVEN | FULL, [100.0] * 4)
    assert owners(candidate)["a0"] == {"a": [1]}
    assert owners(candidate)["a1"] == {"a": [0, 2]}
    assert candidate.moved == 1
    assert candidate.assignment is not None
    assert "1 move" in (candidate.assignment.outcome or "")
    assert [moves for moves, _ in candidate.frontier] == [0, 1]


def test_a_plan_that_is_not_worth_its_moves_is_shown_for_its_reason() -> None:
    """Whether other members read another topic does not matter."""
    dear = Rules(move_downtime_s=1e7)
    assert planned(UNEVEN, [100.0] * 2, dear).moved == 1
    assert planned(UNEVEN | {"c0": {"c": [5.0]}}, [100.0] * 3, dear).moved == 1


def test_moves_are_counted_over_all_sets() -> None:
    """Two of three sets of members need a move; the set that is further behind is planned first."""
    later = {"c0": {"c": [90.0, 90.0]}, "c1": {"c": [10.0]}}
    candidate = planned(UNEVEN | FULL | later, [100.0] * 6, Rules(max_moves=1))
    assert candidate.moved == 1
    assert owners(candidate)["c1"] == {"c": [0, 2]}
    assert planned(UNEVEN | FULL | later, [100.0] * 6).moved == 2


def test_a_negligible_gain_takes_no_move_of_another_set() -> None:
    """Moves of b gain almost nothing, so a gets the only move."""
    hardly = {"b0": {"b": [200.0, 40.0, 3.0]}, "b1": {"b": [236.0]}}
    assert planned(hardly, [100.0] * 2).moved == 1
    candidate = planned(UNEVEN | hardly, [100.0] * 4, Rules(max_moves=1))
    assert owners(candidate)["a1"] == {"a": [0, 2]}
    assert owners(planned(UNEVEN | hardly, [100.0] * 4)) == owners(candidate)


def test_no_member_stays_overloaded_in_a_full_group() -> None:
    """In a group at 98 %, a plan relieves a member at 101 %, although loads are nearly even."""
    nearly = {"a": {"t": [60.0, 41.0]}, "b": {"t": [57.0, 38.0]}}
    candidate = planned(nearly, [100.0] * 2)
    assert candidate.forecast is not None
    assert candidate.forecast.utilisation == 0.98
    roomy = {"a": {"t": [50.0, 43.0]}, "b": {"t": [51.0, 40.0]}}
    assert planned(roomy, [100.0] * 2).moved == 0

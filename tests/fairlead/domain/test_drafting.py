"""Decisions, and drafts of plans, from a snapshot and its candidates."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairlead.domain.advice import advice_in
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.candidate_rows import analyse_group
from fairlead.domain.drafting import MOVED, PLACED, decisions
from fairlead.domain.policy import Policy
from fairlead.domain.records import Decision, Findings, PlanDraft
from fairlead.domain.samples.questions import Group, PlanningOptions
from fairlead.spark.planning import CANDIDATES, as_batch
from tests.fairlead.workflows.plans import DAY
from tests.recalled import CONSUMED, recalled
from tests.samples import filled, samples

POLICY = Policy(assignors=("lag-aware", "range"))
Tables = tuple[pa.Table, pa.Table]
#: By member: the topics of its subscription, and the partitions of `t` that it owns.
Members = dict[str, tuple[tuple[str, ...], list[int]]]


def snapshot(
    members: Members,
    lags: list[int],
    *,
    error: str | None = None,
    assignors: tuple[str, ...] = POLICY.assignors,
    commits_every: int = 1,
    **described: Any,
) -> Tables:
    """Return a snapshot of one group and its candidates, analysed with invented earlier samples.

    The group's members commit once in `commits_every` samples.
    """
    names = sorted(members)
    owner = [-1] * len(lags)
    for name, (_, owned) in members.items():
        for number in owned:
            if number < len(lags):
                owner[number] = names.index(name)
    row = filled(
        {
            "group": "orders",
            "sample_id": "s1",
            "at": DAY,
            "error": error,
            "topics": ["t"],
            "counts": [len(lags)],
            "begin": [0] * len(lags),
            "end": [CONSUMED + lag for lag in lags],
            "committed": [CONSUMED] * len(lags),
            "members": names,
            "subscriptions": [list(members[name][0]) for name in names],
            "owner": owner,
        }
        | described
    )
    group = Group(_held_back(recalled(row), commits_every))
    analysed = as_batch(analyse_group(group, PlanningOptions(assignors=assignors)))
    return samples(row), pa.Table.from_batches([analysed])


def _held_back(series: pa.Table, every: int) -> pa.Table:
    """Replace commits so that they change only at every n-th sample."""
    rows = series.to_pylist()
    for number, row in enumerate(rows):
        row["committed"] = rows[number - number % every]["committed"]
    return pa.Table.from_pylist(rows, series.schema)


def decide(tables: Tables, policy: Policy = POLICY) -> Decision:
    (decision,) = decisions(*tables, [policy], DAY)
    return decision


TWO: Members = {"a": (("t",), [0, 1]), "b": (("t",), [2])}


def test_draft_has_the_chosen_candidate_and_its_changes() -> None:
    """The draft has the candidate's shares, moves and metrics, and the snapshot's weights."""
    draft = decide(snapshot(TWO, [100, 60, 5]))
    assert isinstance(draft, PlanDraft)
    assert draft.assignor == "lag-aware"
    assert {
        name: {topic: numbers.tolist() for topic, numbers in share.partitions.items()}
        for name, share in draft.members.items()
    } == {"a": {"t": [0]}, "b": {"t": [1, 2]}}
    assert draft.partition_counts == {"t": 3}
    assert draft.weights["t"].tolist() == [100.0, 60.0, 5.0]
    (move,) = draft.moves.to_pylist()
    assert (move["partition"], move["previous_member"], move["member"]) == (1, "a", "b")
    assert (move["weight"], move["reason"]) == (60.0, MOVED)
    assert draft.observed is not None
    assert (draft.observed["lag_max"], draft.predicted["lag_max"]) == (160, 100)
    assert {candidate.assignor for candidate in draft.candidates} == set(POLICY.assignors)


def test_forecast_of_other_plans_equals_that_of_the_analysis() -> None:
    """The draft's forecast for the present owners equals the forecast of the analysis.

    Members commit rarely. Records that they have read since the last commit are not lag.
    """
    draft = decide(snapshot(TWO, [100, 60, 5], commits_every=4))
    assert isinstance(draft, PlanDraft)
    assert draft.prospect is not None
    assert draft.findings is not None
    as_it_is = draft.prospect.outlook.forecast(np.array([0, 0, 1], np.int32), 1800.0)
    assert as_it_is.time_lag_s == pytest.approx(draft.findings.forecast_time_lag_s)


def test_columns_of_several_topics_are_split_by_topic() -> None:
    findings = Findings(
        diagnosis="healthy",
        names=(),
        evidence="",
        forecast_time_lag_s=0.0,
        utilisation=0.5,
        capacities={},
    )
    layout = {
        **findings.columns(),
        "assignor": OBSERVED,
        "topics": ["a", "b", "c"],
        "partition_counts": [2, 0, 2],
        "weights": [1, 2, 3, 4],
        "owner": [0, 0, 1, -1],
        "lag_max": 7,
        "decision": "plan",
        "decision_reason": "c-1 has no owner",
        "chosen": "range",
    }
    chosen = {"assignor": "range", "owner": [1, 0, 1, 0], "reasons": [], "lag_max": 6} | {
        "moved": 1,
        "placed": 1,
    }
    key = {"snapshot_id": "s1", "group": "orders"}
    sample = samples(
        {
            "group": "orders",
            "sample_id": "s1",
            "at": DAY,
            "topics": ["a", "b", "c"],
            "counts": [2, 0, 2],
            "members": ["x", "y"],
        }
    )
    draft = decide((sample, pa.Table.from_pylist([key | layout, key | chosen], CANDIDATES)))
    assert isinstance(draft, PlanDraft)
    assert {
        name: {topic: numbers.tolist() for topic, numbers in share.partitions.items()}
        for name, share in draft.members.items()
    } == {"x": {"a": [1], "c": [1]}, "y": {"a": [0], "c": [0]}}
    assert {topic: weights.tolist() for topic, weights in draft.weights.items()} == {
        "a": [1.0, 2.0],
        "b": [],
        "c": [3.0, 4.0],
    }
    assert [(row["topic"], row["partition"], row["reason"]) for row in draft.moves.to_pylist()] == [
        ("a", 0, MOVED),
        ("c", 1, PLACED),
    ]


def test_healthy_group_gets_no_plan() -> None:
    decision = decide(snapshot(TWO, [0, 0, 0]))
    assert not isinstance(decision, PlanDraft)
    assert decision.outcome == "no change"
    assert decision.reason.startswith("healthy: ")
    assert decision.findings is not None
    assert len(decision.candidates) == 2


def test_groups_are_decided_one_by_one_in_order() -> None:
    sample, candidates = snapshot(TWO, [100, 60, 5])
    failed = samples({"group": "a-failed", "at": DAY, "error": "gone", "topics": [], "counts": []})
    both = pa.concat_tables([sample, failed])
    found = [(each.group, each.outcome) for each in decisions(both, candidates, [POLICY], DAY)]
    assert found == [("a-failed", "failed"), ("orders", "plan")]


def test_group_with_a_broker_assignor_gets_topic_ids_and_advice() -> None:
    """If the group uses the broker's assignor `uniform`, the draft has topic ids and advice."""
    draft = decide(
        snapshot(
            TWO, [100, 60, 5], group_type="consumer", protocol="uniform", topic_ids=["dG9waWM"]
        )
    )
    assert isinstance(draft, PlanDraft)
    assert draft.topic_ids == {"t": "dG9waWM"}
    assert draft.findings is not None
    assert advice_in(draft.findings.evidence).startswith("the broker's assignor uniform")
    plain = decide(snapshot(TWO, [100, 60, 5]))
    assert plain.findings is not None
    assert advice_in(plain.findings.evidence) == ""

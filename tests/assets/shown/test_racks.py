"""Traffic between racks in the Dagster UI: where it is known, and nowhere else."""

from typing import Any

import pyarrow as pa
import pytest

from assets.shown import candidates, plans
from fairlead.domain.approval import ApprovalDecision
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.records import Findings, StoredDecision
from fairlead.settings import WebSettings
from fairlead.spark.planning import CANDIDATES
from fairlead.workflows.proposal import Outcome
from tests.fairlead.store.conftest import make_draft, make_metrics

FINDINGS = Findings(
    diagnosis="healthy",
    names=(),
    evidence="nobody is late",
    late_s=0.0,
    utilisation=0.5,
    capacities={},
)
BEFORE, AFTER = (
    {"rack_gb_per_day": gigabytes, "rack_cost_per_day": gigabytes / 50} for gigabytes in (12.5, 1.0)
)


def decided(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what is shown of a plan for a group."""
    draft = make_draft(
        observed=make_metrics(**before), predicted=make_metrics(**after), findings=FINDINGS
    )
    stored = StoredDecision(
        group="orders", snapshot_id="s1", outcome="plan", reason="", plan=None, created=True
    )
    outcome = Outcome(draft, stored, ApprovalDecision(approved=False, reason="waits"))
    return plans.describe([outcome], ["orders"], None, WebSettings(), draw=False)


def test_a_decision_shows_gigabytes_and_money_before_and_after() -> None:
    """As it is, and as planned; of groups that name no rack, neither."""
    told = figures(decided(BEFORE, AFTER))
    assert told["from other racks, a day"] == ("12.5 GB", "1.00 GB")
    assert told["which costs, a day"] == ("0.25", "0.02")
    assert not any("rack" in name for name in figures(decided({}, {})))


def test_evidence_comes_second_and_figures_are_one_table() -> None:
    """What a person reads first stands first; with a plan or without."""
    facts = decided({"late_s": 700.0}, {"late_s": 20.0})
    assert list(facts) == ["decision", "diagnosis", "evidence", "how many consumers", "figures"]
    assert figures(facts)["late, forecast"] == ("12 min", "20 s")


def figures(facts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what is told of a figure: as it is, and as planned."""
    rows = [record.data for record in facts["figures"].records]
    return {row["figure"]: (row["as it is"], row["as planned"]) for row in rows}


@pytest.mark.parametrize("known", [True, False])
def test_candidates_have_columns_for_it_where_it_is_known(known: bool) -> None:  # noqa: FBT001
    """Beside the other figures of each, and no empty columns."""
    far = {OBSERVED: BEFORE, "sticky": AFTER}
    table = pa.Table.from_pylist(
        [
            {"group": "orders", "assignor": name, **make_metrics(**(figures if known else {}))}
            for name, figures in far.items()
        ],
        CANDIDATES,
    )
    facts = candidates.describe(table, ["orders"], draw=False)
    records = [record.data for record in facts["candidates"].records]
    told = [(row.get("from other racks"), row.get("which costs")) for row in records]
    assert told == ([("12.5 GB", "0.25"), ("1.00 GB", "0.02")] if known else [(None, None)] * 2)

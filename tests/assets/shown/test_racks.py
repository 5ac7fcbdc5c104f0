"""Traffic between racks in the Dagster UI: where it is known, and nowhere else."""

from typing import Any

from assets.shown import plans
from fairlead.domain.approval import ApprovalDecision
from fairlead.domain.records import Findings, StoredDecision
from fairlead.settings import WebSettings
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
    return plans.describe([outcome], ["orders"], None, WebSettings())


def test_a_decision_shows_gigabytes_and_money_before_and_after() -> None:
    """As it is, and as planned; of groups that name no rack, neither."""
    told = figures(decided(BEFORE, AFTER))
    assert told["Cross-rack traffic a day"] == ("12.5 GB", "1.00 GB")
    assert told["Cross-rack cost a day"] == ("0.25", "0.02")
    assert not any("rack" in name for name in figures(decided({}, {})))


def test_evidence_comes_second_and_figures_are_one_table() -> None:
    """What a person reads first stands first; with a plan or without."""
    facts = decided({"late_s": 700.0}, {"late_s": 20.0})
    order = ["decision", "diagnosis", "evidence", "how many consumers", "figures", "by group"]
    assert list(facts)[: len(order)] == order
    assert figures(facts)["Forecast lag"] == ("12 min", "20 s")
    (row,) = facts["by group"].records
    assert row.data["Forecast lag"] == "12 min \N{RIGHTWARDS ARROW} 20 s"


def figures(facts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what is told of a figure: as it is, and as planned."""
    rows = [record.data for record in facts["figures"].records]
    return {row["figure"]: (row["as it is"], row["as planned"]) for row in rows}

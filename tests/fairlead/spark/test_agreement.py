"""Sampling, `fairlead plan` and a Spark task analyse the same group with the same result."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks import recorded
from benchmarks.recorded import Size
from fairlead.archive import SampleArchive
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.domain.records import PlanDraft, capacity_rows
from fairlead.domain.samples import GroupSnapshot
from fairlead.domain.samples.questions import PlanningOptions
from fairlead.kafka.gateway import KafkaGateway
from fairlead.spark.planning import QUESTIONS, plan_task
from fairlead.spark.warehouse import Warehouse
from fairlead.workflows.diagnosing import diagnose
from fairlead.workflows.planning_one_group import plan_group
from tests.lengths import form

pytestmark = pytest.mark.long

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
GROUPS = form(short=30, long=1_000)
POLICY = Policy(assignors=("sticky-lag-aware", "sticky", "range"))
FIGURES = ("forecast_time_lag_s", "utilisation")
Row = dict[str, Any]


class Fleet:
    """Groups of random sizes with a day of samples; every second group has known capacities."""

    def __init__(self, folder: Path, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = [Size(1, int(rng.integers(2, 60)), int(rng.integers(1, 7))) for _ in range(GROUPS)]
        self.taken = recorded.snapshot(sizes, at=AT, seed=seed, level=lambda _: False)
        self.warehouse = Warehouse(str(folder))
        self.archive = SampleArchive(self.warehouse.path)
        for sample_id, sample in recorded.past(self.taken):
            self.archive.append(sample, sample_id)
        self.archive.tidy(AT, timedelta(days=2))
        self.warehouse.write_snapshot(self.taken, {})
        self.names: list[str] = self.taken.samples["group"].to_pylist()
        members = self.taken.samples.select(["group", "members"]).to_pylist()
        seen_at = AT.timestamp() - 900
        self.capacities = {
            row["group"]: {
                name: Capacity(float(rng.integers(20, 400)), measured=True, at=seen_at)
                for name in row["members"]
            }
            for row in members[::2]
        }

    def of_groups(self, names: Sequence[str]) -> GroupSnapshot:
        """Return a snapshot of only these groups."""
        wanted = pa.array(names, pa.string())
        samples = self.taken.samples
        return replace(self.taken, samples=samples.filter(pc.is_in(samples["group"], wanted)))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Return the groups."""
    return Fleet(tmp_path_factory.mktemp("fleet"), seed=5)


@pytest.fixture(scope="module")
def by_task(fleet: Fleet) -> dict[str, dict[str, Row]]:
    """Return each group's candidates by assignor, from one task for all groups."""
    return analysed_in(fleet, [fleet.names])


def analysed_in(fleet: Fleet, batches: Sequence[Sequence[str]]) -> dict[str, dict[str, Row]]:
    """Analyse each batch of groups in its own task, as executors do; return rows by group."""
    questions = [
        {"group": name, "task": task, "capacities": capacity_rows(fleet.capacities.get(name, {}))}
        for task, names in enumerate(batches)
        for name in names
    ]
    table = pa.Table.from_pylist(questions, QUESTIONS)
    fleet.warehouse.write("questions", fleet.taken.snapshot_id, table)
    options = dict.fromkeys(fleet.names, PlanningOptions.of(POLICY, compare=True))
    found: dict[str, dict[str, Row]] = {}
    for task in range(len(batches)):
        for batch in plan_task(fleet.warehouse.path, fleet.taken.snapshot_id, options, task):
            for row in batch.to_pylist():
                found.setdefault(row["group"], {})[row["assignor"]] = row
    return found


def test_scenarios_are_of_both_kinds(by_task: dict[str, dict[str, Row]]) -> None:
    """Some groups need a plan and others do not, so the next tests compare both cases."""
    decisions = [rows[OBSERVED]["decision"] for rows in by_task.values()]
    assert {*decisions} == {"plan", "no change"}
    assert len(decisions) == GROUPS


def test_sample_agrees_with_tasks(fleet: Fleet, by_task: dict[str, dict[str, Row]]) -> None:
    """Sampling and tasks compute equal diagnoses and figures; the same groups need a plan."""
    names = list(np.random.default_rng(2).permutation(fleet.names))
    seen = [fleet.of_groups(portion).samples for portion in (names[::2], names[1::2])]
    diagnoses = diagnose(fleet.archive, seen, [POLICY], GroupMemories(fleet.capacities))
    assert diagnoses.findings.keys() == by_task.keys()
    for group, rows in by_task.items():
        observed, (_, findings) = rows[OBSERVED], diagnoses.findings[group]
        assert (group in diagnoses.requests) == (observed["decision"] == "plan")
        if group in diagnoses.requests or fleet.capacities.get(group):
            assert (findings.diagnosis, [*findings.names]) == (
                observed["diagnosis"],
                observed["names"],
            )
            for name in FIGURES:
                assert getattr(findings, name) == pytest.approx(observed[name], rel=1e-9)


class Recorded:
    """A gateway that returns parts of the fleet's snapshot."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def snapshot(self, groups: Iterable[str], **_: object) -> GroupSnapshot:
        """Return the snapshot of these groups."""
        return self._fleet.of_groups([*groups])


def test_command_agrees_with_tasks(fleet: Fleet, by_task: dict[str, dict[str, Row]]) -> None:
    """`fairlead plan` and a run make the same decision: outcome, reason, and owners."""
    gateway = cast("KafkaGateway", Recorded(fleet))
    for group in fleet.names[: form(short=10, long=GROUPS)]:
        memory = GroupMemories(fleet.capacities)
        done = plan_group(gateway, fleet.archive, group, policies=[POLICY], memory=memory, now=AT)
        observed, decision = by_task[group][OBSERVED], done.decision
        assert (decision.outcome, decision.reason) == (
            observed["decision"],
            observed["decision_reason"],
        )
        assert decision.findings is not None
        for name in FIGURES:
            assert getattr(decision.findings, name) == pytest.approx(observed[name], rel=1e-9)
        if isinstance(decision, PlanDraft):
            assert decision.assignor == observed["chosen"]
            assert decision.statuses == frozenset(observed["statuses"])
            used = [
                (load.used_before or 0, load.used_after or 0) for load in decision.loads.values()
            ]
            highest = (decision.findings.utilisation, decision.predicted["utilisation"])
            assert tuple(map(max, zip(*used, strict=True))) == pytest.approx(highest, rel=1e-9)

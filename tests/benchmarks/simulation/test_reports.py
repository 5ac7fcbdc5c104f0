"""Reports of simulated consumers: what a real meter would count, and its flaws."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.churn import MemberChange
from benchmarks.simulation.controllers import ScenarioMoment
from benchmarks.simulation.costs import Dear, TrueCosts
from benchmarks.simulation.loop import run
from benchmarks.simulation.report_habit import ReportHabit
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.sharing.clients import CLIENTS
from benchmarks.simulation.traffic import Traffic
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.reported_work import MeasuredWork, ReportSeries, reported_work
from fairlead.domain.analysis.sample_series import SampleSeries
from fairlead.simulation.controllers import Moment
from fairlead.simulation.world import Int32

#: One partition of four takes five times as long, and the second consumer twice.
GROUP = Scenario(
    "reports", "two members, four partitions", "healthy", Traffic(used=0.5),
    speeds=(100.0, 50.0), topics=(4,), costs=TrueCosts(dear=(Dear(5.0, (1,)),)),
)  # fmt: skip


class Reader:
    """Owns by script, and keeps what a planner sees at the end.

    Parameters
    ----------
    owners
        Number of a rebalance or decision to the owners from then on; nothing: range.
    """

    reports = True

    def __init__(self, owners: dict[int, list[int]] | None = None) -> None:
        self._owners, self._asked = owners or {}, 0
        self.series: SampleSeries | None = None
        self.work: ReportSeries | None = None

    def rebalance(self, moment: Moment) -> Int32:
        """Give each member the same number of partitions."""
        count = len(moment.problem.members)
        return np.arange(moment.problem.partition_total, dtype=np.int32) * count // 4

    def decide(self, moment: Moment) -> Int32 | None:
        """Take a sample, and follow the script."""
        assert isinstance(moment, ScenarioMoment)
        self.series = moment.series()
        self.work = moment.reports(self.series)
        self._asked += 1
        owner = self._owners.get(self._asked)
        return None if owner is None else np.array(owner, np.int32)


def seen(
    hours: float = 1.1, owners: dict[int, list[int]] | None = None, **changes: Any
) -> tuple[SampleSeries, ReportSeries]:
    """Return what the planner would see of a group."""
    world = ScenarioWorld.of(replace(GROUP, **changes), seed=3, hours=hours)
    reader = Reader(owners)
    run(world, reader)
    assert reader.series is not None
    assert reader.work is not None
    return reader.series, reader.work


def work(**changes: Any) -> MeasuredWork:
    """Return the reported work."""
    series, reports = seen(**changes)
    return reported_work(reports, series)


@pytest.mark.parametrize("client", CLIENTS)
def test_reports_tell_what_records_take(client: str) -> None:
    """For each consumer and partition of every client; no report is impossible."""
    found = work(client=client)
    assert found.ignored == 0
    seconds = dict(zip(found.partition.tolist(), found.mean_s.tolist(), strict=True))
    assert seconds == pytest.approx({0: 0.01, 1: 0.05, 2: 0.02, 3: 0.02}, rel=0.1)
    assert found.known.all()


def test_reports_count_the_records_that_commits_advance() -> None:
    """As a real meter does: each record once, up to the committed offset."""
    series, reports = seen()
    counted, committed = np.diff(reports.records, axis=0), np.diff(series.committed, axis=0)
    assert (counted == committed).all()
    assert counted.sum() > 0


def test_a_backlog_keeps_consumers_busy() -> None:
    """No seconds are lost or invented: the share of time is the load, and 1 beyond it."""
    assert work(traffic=Traffic(used=0.5)).busy.sum() == pytest.approx(1.0, rel=0.2)
    series, reports = seen(traffic=Traffic(used=2.0))
    assert reported_work(reports, series).busy == pytest.approx([1.0, 1.0], abs=0.02)
    assert (reports.busy_s[-1].sum() - reports.busy_s[0].sum()) < 2.02 * (
        series.at[-1] - series.at[0]
    )


def test_a_restarted_consumer_has_a_new_token() -> None:
    """Its counters start again; its earlier reports belong to no member."""
    changes = (MemberChange(900.0, 1, joins=False), MemberChange(960.0, 1, joins=True))
    series, reports = seen(hours=0.6, changes=changes)
    tokens = reports.token[:, series.members.index("member-01")]
    assert len({token for token in tokens.tolist() if token >= 0}) == 2
    assert (np.diff(tokens[tokens >= 0]) >= 0).all()
    found = reported_work(reports, series)
    assert found.ignored == 0


@pytest.mark.parametrize(
    "flaw", [{"missing": 0.3}, {"stale": 0.3}, {"impossible": 0.1}, {"silent": 0.5, "seed": 2}]
)
def test_flawed_reports_make_no_wrong_cost_known(flaw: dict[str, Any]) -> None:
    found = work(reports=ReportHabit(**flaw))
    truth = np.array([0.01, 0.05, 0.02, 0.02])[found.partition]
    assert found.mean_s[found.known] == pytest.approx(truth[found.known], rel=0.1)
    assert found.known.any()

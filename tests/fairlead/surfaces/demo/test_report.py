"""The report of `make demo`: before and after are measured, each at its own time."""

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import numpy as np
from rich.console import Console

from fairlead.surfaces.demo.report import DemoDiagnosis, GroupReport
from fairlead.surfaces.demo.run import lags_of
from fairlead.wire.document import MemberShare, PlanDocument
from tests.samples import samples

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def test_after_is_measured_and_not_the_plans_own_weights() -> None:
    """The lag after comes from committed and end offsets; the predicted one is the lag before."""
    shares = {
        member: MemberShare(("t",), {"t": np.array([partition], np.int32)})
        for partition, member in enumerate(("a", "b"))
    }
    plan = PlanDocument(
        "g", 1, "id", "range", DAY, DAY, {"t": 2}, shares, weights={"t": np.array([10, 20])}
    )
    part: dict[str, Any] = {"topics": ["t"], "counts": [2], "begin": [0, 0], "end": [100, 100]}
    lags = lags_of(
        samples(
            part | {"group": "g", "committed": [97, -1]},
            part | {"group": "g-without-plan", "committed": [50, -1]},
        )
    )
    seconds = {"0": [0.003, 0.004, 0.005], "1": [0.040, 0.052, 0.064]}
    made = GroupReport(
        diagnosed=DemoDiagnosis(
            "slow member", ("a",), "evidence", "reason", {"partitions": {"t": seconds}}
        ),
        plan=plan,
        before={"a": {"t": [0, 1]}},
        after={"a": {"t": [0]}, "b": {"t": [1]}},
        lags_after=lags["g"],
        lags_without_plan=lags["g-without-plan"],
        without_plan={"a": {"t": [0, 1]}},
        drain_without_plan_s=2.0,
        drain_with_plan_s=1.0,
    )
    printed = StringIO()
    Console(file=printed, width=200).print(made.render())
    beside = "had 100 records with the plan, and 150 in an identical group without a plan"
    assert beside in printed.getvalue()
    assert "Time per record: t 28 ms, t-1 52 ms (40 to 64), t-0 4.0 ms" in printed.getvalue()
    report = made.as_dict()
    expected = {"before": 30, "predicted": 20, "after": 100, "without_plan": 150}
    assert report["most_loaded_lag"] == expected
    assert report["consumers"]["a"]["after"] == {"lag": 3, "partitions": {"t": [0]}}
    assert report["adopted"] is True
    assert report["seconds_per_record"] == {"t": seconds}

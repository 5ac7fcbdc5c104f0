"""Forecasts of when retention deletes records that a group has not read."""

from typing import Any

import numpy as np
import pytest

from fairlead.domain.analysis.log_retention import retention_of
from fairlead.domain.decide_json.lines import answer_question
from tests.fairlead.domain.analysis.outside import written
from tests.fairlead.domain.analysis.questions import question, series_at

#: Records that arrive (COME) and are read (READ) between two samples if a partition falls behind.
COME, READ = 1200, 600
#: Records in a log segment (SEGMENT), and newest records that retention keeps (KEPT).
SEGMENT, KEPT = 6_000, 60_000


def filling(partition: int, step: int) -> int:
    """Return the end offset; the first four partitions get 20 records a second, the others 1."""
    return 1_000_000 + step * (COME if partition < 4 else 60)


def falling_behind(partition: int, step: int) -> int:
    """Return the committed offset; of the first four partitions, only half of each is read."""
    return 1_000_000 + step * (READ if partition < 4 else 60) - 3 * (step > 0)


def kept_from(partition: int, step: int) -> int:
    """Return the begin offset; retention deletes whole segments."""
    return (filling(partition, step) - KEPT) // SEGMENT * SEGMENT


def losing(series: int, **more: Any) -> dict[str, Any]:
    """Return an input line about a group that falls behind; logs keep records for 50 minutes."""
    line = question(series, end=filling, committed=falling_behind, **more)
    for step, snapshot in enumerate(line["snapshots"]):
        snapshot["begin"]["t"] = [kept_from(partition, step) for partition in range(8)]
    return line


def overtaken_at() -> int:
    """Return the number of the first sample at which unread records have been deleted."""
    return next(step for step in range(1000) if kept_from(0, step) > falling_behind(0, step))


@pytest.mark.parametrize("series", [30, 50, 80, 95])
def test_time_of_a_loss_is_forecast(series: int) -> None:
    """The time of a loss is forecast within 10 % plus the time in which two segments fill."""
    answer = answer_question(losing(series))
    kept = answer["forecast"]["kept"]
    left_s = 60.0 * (overtaken_at() - (series - 1))
    segments_s = 2 * 60.0 * SEGMENT / COME
    # Capacities and the times of commits are known only roughly.
    assert kept["loss_s"] == pytest.approx(left_s, abs=segments_s + 0.1 * left_s)
    assert "loses records in" in answer["evidence"]
    assert "retention deletes them before they are read" in answer["evidence"]


def test_a_plan_that_cures_the_group_avoids_a_loss() -> None:
    """A plan moves busy partitions to the faster member; with this plan, no loss is forecast."""
    fast = {"records_per_s": 200.0, "measured": True, "at": written(0.0)}
    answer = answer_question(losing(60, capacities={"b": fast}))
    assert answer["outcome"] == "plan"
    planned, kept = answer["forecast"]["planned"], answer["forecast"]["kept"]
    assert planned["loss_s"] is None
    assert kept["loss_s"] > 0


def test_loss_that_has_begun_is_reported() -> None:
    answer = answer_question(losing(overtaken_at() + 5))
    assert answer["forecast"]["kept"]["loss_s"] == 0.0
    assert "loses records now" in answer["evidence"]


def test_retention_overtakes_a_stuck_partition() -> None:
    """A loss is forecast for a partition whose committed offset does not advance."""

    def still(partition: int, step: int) -> int:
        return 1_000_000 + (60 * step - 3 if partition else 0)

    line = question(61, end=lambda _, step: 1_000_000 + 60 * step, committed=still)
    for step, snapshot in enumerate(line["snapshots"]):
        snapshot["begin"]["t"] = [992_000 + 60 * step] * 8
    answer = answer_question(line)
    assert answer["diagnosis"] == "stuck partition"
    # The begin offset grows by one a second; an hour ago, it was 8,000 below the committed offset.
    assert answer["forecast"]["kept"]["loss_s"] == pytest.approx(4_400, abs=60)


def test_a_group_that_keeps_up_loses_nothing() -> None:
    """No loss is forecast for a group that keeps up, or that is behind in logs without deletion."""
    near = question(60)
    for snapshot in near["snapshots"]:
        snapshot["begin"]["t"] = [committed - 1 for committed in snapshot["committed"]["t"]]
    assert answer_question(near)["forecast"]["kept"]["loss_s"] is None
    kept = answer_question(question(60, end=filling, committed=falling_behind))
    assert kept["forecast"]["kept"]["loss_s"] is None
    assert "loses" not in kept["evidence"]


def test_a_log_that_is_created_again_is_not_overtaken() -> None:
    """The forecast ignores deletions from before the topic was recreated."""
    series = series_at([[100], [200], [10], [20]], [[100], [200], [0], [5]], [0])
    series.begin[:2] = [[0], [90]]
    assert retention_of(series, np.ones(1)) is None

"""Lag, rates, time lag and status of constructed samples."""

from typing import Any

import numpy as np
import pytest

from fairlead.domain.analysis.sample_series import NONE, SampleSeries
from fairlead.domain.samples.lag import (
    LOST_WITHIN_S,
    STALLED_AFTER_S,
    STATUSES,
    PartitionLag,
    partition_lag,
)

STEP_S = 100.0

Offsets = tuple[int | None, int | None, int | None]
"""Begin, end, committed."""

# By case: the partition's offsets, oldest first; None: the sample does not have the partition.
# A case named GROUP/CASE is a partition of GROUP; any other case is a group of one partition.
CASES: dict[str, list[Offsets | None]] = {
    # Cases for lag.
    "committed": [(0, 100, 40)],
    "committed at the end": [(0, 100, 100)],
    "committed beyond the end": [(0, 100, 120)],
    "committed below the log": [(50, 100, 40)],
    "never committed": [(30, 100, None)],
    "latest/never committed": [(30, 100, None)],
    "latest/committed": [(30, 100, 90)],
    "empty log": [(70, 70, None)],
    "vanished": [(None, None, 40)],
    "vanished since": [(0, 100, 40), (None, None, 40)],
    "huge": [(0, 2**62, 1)],
    # Cases for rates: samples are 100 s apart.
    "steady": [(0, 1000, 500), (0, 2000, 1500), (0, 3000, 2500)],
    "faster lately": [(0, 0, 0), (0, 0, 0), (0, 1000, 1000)],
    "gap in history": [(0, 0, 0), None, (0, 1000, 1000)],
    "re-created": [(0, 5000, 5000), (0, 100, None), (0, 200, None)],
    "commits begin": [(0, 100, None), (0, 200, 200)],
    # Cases for the status.
    "stop/0": [(0, 100, 10), (0, 150, 10)],
    "stop/1": [(0, 100, 10), (0, 100, 10)],
    "stall/0": [(0, 100, 10), (0, 150, 10)],
    "stall/1": [(0, 100, 10), (0, 100, 20)],
    "idle before": [(0, 10, 10), (0, 150, 10)],
    "never committed and stuck": [(0, 100, None), (0, 150, None)],
    "warn": [(0, 100, 90), (0, 200, 180), (0, 300, 260)],
    "catching up in between": [(0, 100, 50), (0, 200, 190), (0, 300, 200)],
    "rewind": [(0, 100, 90), (0, 100, 10)],
    "rewound long ago": [(0, 100, 90), (0, 100, 10), (0, 100, 20)],
    "lost and rewound": [(0, 100, 90), (50, 100, 10)],
    "drained": [(0, 100, 10), (0, 100, 100)],
}
LONGEST = max(map(len, CASES.values()))


def series_at(
    histories: list[list[Offsets | None]], step_s: float = STEP_S, *, latest: bool = False
) -> SampleSeries:
    """Return samples of partitions, whose histories all end at the last sample."""
    rows = np.full((LONGEST, len(histories), 3), NONE, np.int64)
    for place, history in enumerate(histories):
        for step, offsets in enumerate(history, LONGEST - len(history)):
            for column, offset in enumerate(offsets or ()):
                rows[step, place, column] = NONE if offset is None else offset
    at, owner = step_s * np.arange(1.0, LONGEST + 1), np.full(rows.shape[:2], NONE, np.int32)
    begin, end, committed = rows.transpose(2, 0, 1)
    return SampleSeries(at, begin, end, committed, (), owner, latest)


def measure(series: SampleSeries) -> list[dict[str, Any]]:
    """Return the figures of each partition; None for unknown values."""
    lag = partition_lag(series)
    return [
        {
            name: STATUSES[value] if name == "status" else None if np.isnan(value) else value.item()
            for name, value in ((name, column[place]) for name, column in vars(lag).items())
        }
        for place in range(series.partitions)
    ]


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    """Return the figures of each case whose partition is readable."""
    groups: dict[str, list[str]] = {}
    for case in CASES:
        groups.setdefault(case.rpartition("/")[0] or case, []).append(case)
    rows: dict[str, dict[str, Any]] = {}
    for group, cases in groups.items():
        series = series_at([CASES[case] for case in cases], latest=group == "latest")
        rows |= dict(zip(cases, measure(series), strict=True))
    return {case: row for case, row in rows.items() if row["readable"]}


def test_unreadable_partitions_have_no_row(measured: dict[str, dict[str, Any]]) -> None:
    """Partitions without an end offset in the newest sample have no lag."""
    assert CASES.keys() - measured.keys() == {"vanished", "vanished since"}


UNKNOWN = {"arrival_rate": None, "consumption_rate": None, "time_lag_s": None}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("committed", {"lag": 60, "status": "OK", **UNKNOWN}),
        ("committed at the end", {"lag": 0, "time_lag_s": 0.0}),
        ("committed beyond the end", {"lag": 0}),
        ("committed below the log", {"lag": 50, "status": "DATA_LOSS"}),
        ("never committed", {"lag": 70}),
        ("latest/never committed", {"lag": 0}),
        ("latest/committed", {"lag": 10}),
        ("empty log", {"lag": 0}),
        ("huge", {"lag": 2**62 - 1}),
        # The time lag is 50 s: 50 s ago, the end offset was equal to the present committed offset.
        ("steady", {"arrival_rate": 10, "consumption_rate": 10, "time_lag_s": 50, "status": "OK"}),
        ("faster lately", {"arrival_rate": 10}),
        ("gap in history", {"arrival_rate": None, "consumption_rate": 5}),
        # At one record a second, the oldest of 200 unread records is older than the first sample.
        ("re-created", {"arrival_rate": 1, "consumption_rate": None, "time_lag_s": 200}),
        ("commits begin", {"arrival_rate": 1, "consumption_rate": None}),
        ("stop/0", {"status": "STOP"}),
        ("stop/1", {"status": "STOP"}),
        ("stall/0", {"status": "STALL"}),
        ("stall/1", {"status": "OK"}),
        ("idle before", {"status": "OK"}),
        ("never committed and stuck", {"status": "STOP"}),
        ("warn", {"time_lag_s": 40, "status": "WARN"}),
        ("catching up in between", {"status": "OK"}),
        ("rewind", {"status": "REWIND"}),
        ("rewound long ago", {"status": "OK"}),
        ("lost and rewound", {"status": "DATA_LOSS"}),
        ("drained", {"status": "OK"}),
    ],
)
def test_lag_rates_and_status_follow_their_definitions(
    measured: dict[str, dict[str, Any]], case: str, expected: dict[str, Any]
) -> None:
    """Lag follows KAFKA-5337; the status is that of the first rule that applies.

    Unknown rates are None.
    """
    for name, value in expected.items():
        assert measured[case][name] == pytest.approx(value), name


def test_a_short_silence_is_no_stop() -> None:
    (row,) = measure(series_at([[(0, 100, 10), (0, 100, 10)]], STALLED_AFTER_S - 1))
    assert row["status"] == "OK"


def minutely(
    committed: list[list[int]], end: list[list[int]], begin: list[list[int]] | None = None
) -> PartitionLag:
    """Measure the partitions of a group; each row is one minute."""
    series = SampleSeries(
        at=60.0 * np.arange(len(end), dtype=np.float64),
        begin=np.array(begin or np.zeros_like(end), np.int64),
        end=np.array(end, np.int64),
        committed=np.array(committed, np.int64),
        members=(),
        owner=np.full(np.shape(end), NONE, np.int32),
    )
    return partition_lag(series)


def statuses(
    committed: list[list[int]], end: list[list[int]], begin: list[list[int]] | None = None
) -> list[str]:
    """Return the status of each partition, measured by `minutely`."""
    return [STATUSES[status] for status in minutely(committed, end, begin).status]


#: By minute: end offsets of two partitions, and their commits, which come every five minutes.
ARRIVED = [[600 * minute, 600 * minute] for minute in range(61)]
COMMITTED = [[600 * (minute // 5 * 5)] * 2 for minute in range(61)]


def test_group_that_commits_every_five_minutes_never_stops() -> None:
    """If commits come every five minutes, the status is OK at every minute."""
    reported = {
        status
        for last in range(30, 61)
        for status in statuses(COMMITTED[:last], ARRIVED[:last], None)
    }
    assert reported == {"OK"}


def test_silence_of_three_usual_intervals_is_a_stop() -> None:
    """Without a commit after minute 30, partitions are OK at minute 39 and STOP at minute 46."""
    committed = [COMMITTED[min(minute, 30)] for minute in range(61)]
    assert statuses(committed[:40], ARRIVED[:40]) == ["OK", "OK"]
    assert statuses(committed[:47], ARRIVED[:47]) == ["STOP", "STOP"]
    assert statuses(committed[25:], ARRIVED[25:]) == ["STOP", "STOP"]


def test_silence_of_three_usual_intervals_of_a_partition_is_a_stall() -> None:
    """If commits continue for only one of two partitions, the other is STALL."""
    committed = [[COMMITTED[min(minute, 30)][0], COMMITTED[minute][1]] for minute in range(61)]
    assert statuses(committed[:40], ARRIVED[:40]) == ["OK", "OK"]
    assert statuses(committed, ARRIVED) == ["STALL", "OK"]


def test_partition_with_only_a_transaction_marker_unread_is_ok() -> None:
    """If only a transaction marker is after the commit of an idle partition, the status is OK."""
    assert statuses([[99]] * 10, [[100]] * 10) == ["OK"]


def test_transaction_marker_that_retention_removed_is_no_loss() -> None:
    """If retention deletes only the marker beyond the committed offset, no loss is reported."""
    assert statuses([[99]] * 10, [[100]] * 10, [[100]] * 10) == ["OK"]


def test_loss_of_more_than_a_marker_is_reported() -> None:
    assert statuses([[10]] * 10, [[100]] * 10, [[100]] * 10) == ["DATA_LOSS"]


def test_deleted_records_count_as_lost_and_not_as_lag() -> None:
    """Unread records that retention deletes are lost, and not part of the lag.

    Partition 0 loses records twice; partition 1 is read after its loss. Partition 2 has no loss:
    its committed offset was only reset to below the log start.
    """
    measured = minutely(
        committed=[[10, 10, 95]] * 3 + [[10, 10, 40], [10, 120, 40], [10, 130, 40]],
        end=[[100, 140, 100]] * 6,
        begin=[[0, 0, 90]] * 2 + [[30, 70, 90]] * 2 + [[100, 70, 90]] * 2,
    )
    assert measured.lost.tolist() == [90, 60, 0]
    assert measured.lost_at[:2].tolist() == [240.0, 120.0]
    assert np.isnan(measured.lost_at[2])
    assert measured.lag.tolist() == [0, 10, 10]


def test_emptied_idle_partition_is_ok_after_half_an_hour() -> None:
    """If no records arrive, the status is DATA_LOSS for half an hour after a loss, then OK."""
    minutes = int(LOST_WITHIN_S / 60)
    statuses_by_length = [
        statuses([[10]] * series, [[100]] * series, [[0]] + [[100]] * (series - 1))
        for series in (2, minutes + 2, minutes + 3)
    ]
    assert statuses_by_length == [["DATA_LOSS"], ["DATA_LOSS"], ["OK"]]
    assert statuses([[10]] * 61, [[100]] * 61, [[100]] * 61) == ["OK"]

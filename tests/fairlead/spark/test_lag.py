"""Lag, rates, time lag and status, on made-up snapshots.

All cases are measured in one Spark job: each is a partition, or a group where that matters.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fairlead.kafka.snapshot import MEMBERS, OFFSETS
from fairlead.spark.lag import LAG_COLUMNS, SMOOTHING_S, STALLED_AFTER_S, partition_lag

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)

Offsets = tuple[int | None, int | None, int | None]
"""Begin, end, committed."""

# Case to its offsets, oldest first, the last one now; a None is a snapshot that lacks it. A case
# named GROUP/CASE stands in that group, any other in a group of its own.
CASES: dict[str, list[Offsets | None]] = {
    # The rule of lag.
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
    # Rates: snapshots are 100 s apart.
    "steady": [(0, 1000, 500), (0, 2000, 1500), (0, 3000, 2500)],
    "faster lately": [(0, 0, 0), (0, 0, 0), (0, 1000, 1000)],
    "gap in history": [(0, 0, 0), None, (0, 1000, 1000)],
    "re-created": [(0, 5000, 5000), (0, 100, None), (0, 200, None)],
    "commits begin": [(0, 100, None), (0, 200, 200)],
    # Status.
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
STEP_S = 100.0
# Who says to own partition 0 of a case: case, member, generation of the claim.
CLAIMS: list[tuple[str, str, int | None]] = [
    ("committed", "alone", None),
    ("steady", "awake", 5),
    ("steady", "asleep", 4),
    ("warn", "one", 5),
    ("warn", "other", 5),
    ("re-created", "since long", 1),
]


def _rows(case: str, age: int, offsets: Offsets) -> dict[str, Any]:
    group, _, topic = case.rpartition("/")
    at = NOON - timedelta(seconds=STEP_S * age)
    return {
        "snapshot_id": f"s{age}",
        "snapshot_at": at,
        "group": group or case,
        "topic": topic,
        "partition": 0,
        "begin_offset": offsets[0],
        "end_offset": offsets[1],
        "committed_offset": offsets[2],
    }


def _claim(case: str, member: str, generation: int | None) -> dict[str, Any]:
    owned = [{"topic": case, "partition": 0}, {"topic": "nobody's", "partition": 0}]
    return {"group": case, "member": member, "partitions": owned, "generation": generation}


def _table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), OFFSETS)


@pytest.fixture(scope="module")
def measured(spark: SparkSession) -> dict[str, dict[str, Any]]:
    """Return case to its row, where it has one."""
    now: list[dict[str, Any]] = []
    before: list[dict[str, Any]] = []
    for case, history in CASES.items():
        for age, offsets in enumerate(reversed(history)):
            if offsets is not None:
                (before if age else now).append(_rows(case, age, offsets))
    before.append(_rows("a group nobody asks for", 1, (0, 10, 5)))
    lag = partition_lag(
        spark.createDataFrame(_table(now)),
        {"latest": "latest"},
        spark.createDataFrame(_table(before)),
        spark.createDataFrame(pa.Table.from_pylist([_claim(*claim) for claim in CLAIMS], MEMBERS)),
    )
    assert tuple(lag.columns) == LAG_COLUMNS
    rows = [row.asDict() for row in lag.collect()]
    return {
        row["topic"] if row["group"] == row["topic"] else f"{row['group']}/{row['topic']}": row
        for row in rows
    }


@pytest.mark.parametrize(
    ("case", "lag"),
    [
        ("committed", 60),
        ("committed at the end", 0),
        ("committed beyond the end", 0),
        ("committed below the log", 60),
        ("never committed", 70),
        ("latest/never committed", 0),
        ("latest/committed", 10),
        ("empty log", 0),
        ("huge", 2**62 - 1),
    ],
)
def test_lag_follows_the_rule(measured: dict[str, dict[str, Any]], case: str, lag: int) -> None:
    """KAFKA-5337: end - committed, never below 0; without a commit, the reset policy decides."""
    assert measured[case]["lag"] == lag


def test_what_cannot_be_read_has_no_row(measured: dict[str, dict[str, Any]]) -> None:
    """Vanished partitions have no lag, nor have groups that only earlier snapshots know."""
    assert CASES.keys() - measured.keys() == {"vanished", "vanished since"}
    assert measured.keys() <= CASES.keys()


@pytest.mark.parametrize(
    ("case", "arrival", "consumption"),
    [
        ("committed", None, None),
        ("steady", 10.0, 10.0),
        ("gap in history", 5.0, 5.0),
        ("re-created", 1.0, None),
        ("commits begin", 1.0, None),
    ],
)
def test_rates_are_per_second_or_unknown(
    measured: dict[str, dict[str, Any]],
    case: str,
    arrival: float | None,
    consumption: float | None,
) -> None:
    """Differences over time; null where no step tells, steps that went back left out."""
    assert measured[case]["arrival_rate"] == pytest.approx(arrival)
    assert measured[case]["consumption_rate"] == pytest.approx(consumption)


def test_recent_steps_weigh_more(measured: dict[str, dict[str, Any]]) -> None:
    """Of a step without arrivals and one of 10 a second, the mean is nearer to the newer one."""
    decay = 2.718281828459045 ** (-STEP_S / SMOOTHING_S)
    assert measured["faster lately"]["arrival_rate"] == pytest.approx(10 / (1 + decay))


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        ("committed at the end", 0.0),
        ("committed", None),
        ("steady", 50.0),  # where the group stands now, the log ended half a step ago
        ("warn", 40.0),
        ("re-created", 200.0),  # 200 records behind at 1 a second, from before the history
    ],
)
def test_time_lag_is_how_long_ago_the_log_ended_here(
    measured: dict[str, dict[str, Any]], case: str, seconds: float | None
) -> None:
    """Interpolated in the history, extrapolated by the arrival rate before it, else unknown."""
    assert measured[case]["time_lag_s"] == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ("committed", "OK"),
        ("committed below the log", "DATA_LOSS"),
        ("stop/0", "STOP"),
        ("stop/1", "STOP"),
        ("stall/0", "STALL"),
        ("stall/1", "OK"),
        ("idle before", "OK"),
        ("never committed and stuck", "STOP"),
        ("warn", "WARN"),
        ("catching up in between", "OK"),
        ("rewind", "REWIND"),
        ("rewound long ago", "OK"),
        ("lost and rewound", "DATA_LOSS"),
        ("drained", "OK"),
        ("steady", "OK"),
    ],
)
def test_status_follows_burrow(measured: dict[str, dict[str, Any]], case: str, status: str) -> None:
    """One word a partition, by the order of the rules."""
    assert measured[case]["status"] == status


def test_owner_is_who_claims_it_last(measured: dict[str, dict[str, Any]]) -> None:
    """The newest claim counts; equal claims void each other; without any, nobody owns it."""
    owners = {case: row["member"] for case, row in measured.items() if row["member"]}
    assert owners == {"committed": "alone", "steady": "awake", "re-created": "since long"}


def test_a_short_silence_is_no_stop(spark: SparkSession) -> None:
    """Two snapshots in quick succession do not make a group that stopped."""
    rows = [_rows("g", age, (0, 100, 10)) for age in (0, 1)]
    rows[1]["snapshot_at"] = NOON - timedelta(seconds=STALLED_AFTER_S - 1)
    now, before = (spark.createDataFrame(_table([row])) for row in rows)
    (row,) = partition_lag(now, {}, before).collect()
    assert (row["status"], row["member"]) == ("OK", None)

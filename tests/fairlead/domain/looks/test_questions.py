"""The question about a group takes in what is remembered of it."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from fairlead.domain.judgement.capacities import Capacity, remembered
from fairlead.domain.looks.look import LOOKS
from fairlead.domain.looks.questions import Group, PlanningOptions, question_about

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_speed_dated_ahead_does_not_win_over_a_newer_measurement() -> None:
    """A clock that was a day ahead for one run has dated it."""
    looks = [
        {
            "group": "g",
            "at": NOON - timedelta(minutes=ago),
            "topics": ["t"],
            "counts": [1],
            "begin": [0],
            "end": [100],
            "committed": [100],
            "members": ["a"],
            "owner": [0],
        }
        for ago in (1, 0)
    ]
    member = {
        "member": "a",
        "topics": ["t"],
        "partitions": [{"topic": "t", "partition": 0}],
        "generation": None,
        "instance_id": None,
        "rack": None,
    }
    ahead = {
        "member": "a",
        "records_per_s": 20.0,
        "note": "",
        "measured": True,
        "at": (NOON + timedelta(days=1)).timestamp(),
    }
    group = Group(
        described={"group_type": "classic", "protocol": "range"},
        members=[member],
        looks=pa.Table.from_pylist(looks, LOOKS),
        capacities=[ahead],
    )
    known = question_about(group, PlanningOptions()).capacities
    measured = Capacity(100.0, measured=True, at=NOON.timestamp())
    assert remembered(known, {"a": measured}, NOON.timestamp()) == {"a": measured}

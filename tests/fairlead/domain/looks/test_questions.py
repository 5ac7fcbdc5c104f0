"""The question about a group takes in what is remembered of it."""

from datetime import UTC, datetime, timedelta

from fairlead.domain.judgement.capacities import Capacity, remembered
from fairlead.domain.looks.questions import Group, PlanningOptions, question_about
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_speed_dated_ahead_does_not_win_over_a_newer_measurement() -> None:
    """A clock that was a day ahead for one run has dated it."""
    rows = samples(
        *(
            {
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
        )
    )
    ahead = Capacity(20.0, measured=True, at=(NOON + timedelta(days=1)).timestamp())
    known = question_about(Group(rows, {"a": ahead}), PlanningOptions()).capacities
    measured = Capacity(100.0, measured=True, at=NOON.timestamp())
    assert remembered(known, {"a": measured}, NOON.timestamp()) == {"a": measured}

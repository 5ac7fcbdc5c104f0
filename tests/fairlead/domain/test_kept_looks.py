"""What follows from looks that are kept of a group."""

from datetime import UTC, datetime

import numpy as np

from fairlead.domain.kept_looks import Course, Kept


def look(minute: int, late_s: float | None) -> Kept:
    """Return a look at one partition and its owner."""
    return Kept(
        at=datetime(2026, 1, 1, 12, minute, tzinfo=UTC),
        digest=1,
        late_s=late_s,
        utilisation=None if late_s is None else 0.5,
        group_type="classic",
        protocol="range",
        topics=["t"],
        counts=[1],
        members=["a"],
        owner=[0],
        lag=[7.0],
        arrival_rate=[0.0 if late_s is None else 3.0],
        behind_s=[0.0],
        capacity_share=[0.5],
    )


def test_what_was_not_known_is_drawn_nowhere() -> None:
    """The first looks at a group know its lag, and neither what arrives nor how late it is."""
    course = Course.of([look(0, None), look(5, 2.0)])
    assert course.lag.tolist() == [[7.0], [7.0]]
    shares = course.capacity_share
    for values in (course.arrival_rate, course.by_owner(shares), course.by_owner(course.behind_s)):
        assert np.isnan(values).tolist() == [[True], [False]]

"""Hours of the day, over midnight and in time zones."""

from datetime import UTC, datetime

import pytest

from fairlead.hours import parse_hours, within


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("09:00-17:00", ["09:00", "16:59"], ["08:59", "17:00", "00:00"]),
        ("22:00-06:00", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "21:59"]),
        ("18:00-24:00", ["18:00", "23:59"], ["00:00", "17:59"]),
        ("00:00-24:00", ["00:00", "23:59"], []),
    ],
)
def test_hours_hold_their_start_and_not_their_end(
    text: str, inside: list[str], outside: list[str]
) -> None:
    """To the minute, over midnight, up to midnight, and all day."""

    def minute(clock: str) -> int:
        return 60 * int(clock[:2]) + int(clock[3:])

    hours = parse_hours(text)
    assert all(hours.contain(minute(clock)) for clock in inside)
    assert not any(hours.contain(minute(clock)) for clock in outside)


def test_clock_heeds_summer_time() -> None:
    """The same moment of the day lies within in summer and not in winter."""
    assert within(["08:00-18:00"], "Europe/Berlin", datetime(2026, 7, 1, 6, 30, tzinfo=UTC))
    assert not within(["08:00-18:00"], "Europe/Berlin", datetime(2026, 1, 1, 6, 30, tzinfo=UTC))

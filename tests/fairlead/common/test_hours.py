"""Weekly hours such as `Fri 22:00-06:00`, also past midnight and in time zones."""

from datetime import UTC, datetime

import pytest

from fairlead.common.hours import parse_hours, within


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("09:00-17:00", ["09:00", "16:59"], ["08:59", "17:00", "00:00"]),
        ("22:00-06:00", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "21:59"]),
        ("18:00-24:00", ["18:00", "23:59"], ["00:00", "17:59"]),
        ("00:00-24:00", ["00:00", "23:59"], []),
    ],
)
def test_hours_include_their_start_but_not_their_end(
    text: str, inside: list[str], outside: list[str]
) -> None:
    """The start is included and the end is not, even if hours pass midnight or last all day."""

    def minute(clock: str) -> int:
        return 60 * int(clock[:2]) + int(clock[3:])

    hours = parse_hours(text)
    assert all(hours.contain(day, minute(clock)) for clock in inside for day in range(7))
    assert not any(hours.contain(day, minute(clock)) for clock in outside for day in range(7))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("Mon-Fri 09:00-17:00", [(5, 9), (9, 16)], [(10, 12), (11, 12), (5, 17)]),
        ("Fri 22:00-06:00", [(9, 22), (10, 5)], [(9, 5), (10, 22), (10, 6)]),
        ("Sun-Mon 22:00-02:00", [(11, 22), (5, 1), (12, 23), (6, 1)], [(11, 1), (6, 22)]),
        ("Sat 00:00-24:00", [(10, 0), (10, 23)], [(9, 23), (11, 0)]),
    ],
)
def test_days_are_those_on_which_hours_begin(
    text: str, inside: list[tuple[int, int]], outside: list[tuple[int, int]]
) -> None:
    """`Fri 22:00-06:00` includes Saturday morning, and `Sun-Mon` goes over the end of a week."""

    def holds(day: int, hour: int) -> bool:
        return within([text], "UTC", datetime(2026, 1, day, hour, tzinfo=UTC))

    assert all(holds(*moment) for moment in inside)
    assert not any(holds(*moment) for moment in outside)


def test_hours_on_the_days_when_the_clock_changes() -> None:
    """When clocks change, `02:00-03:00` is empty in spring and lasts two hours in autumn."""

    def held(month: int, day: int) -> list[int]:
        hours = (datetime(2026, month, day, hour, 30, tzinfo=UTC) for hour in range(4))
        return [now.hour for now in hours if within(["02:00-03:00"], "Europe/Berlin", now)]

    assert held(3, 29) == []
    assert held(10, 25) == [0, 1]

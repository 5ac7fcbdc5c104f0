"""Texts that are accepted as times."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.times import read_time


@given(st.datetimes(timezones=st.just(UTC)), st.integers(-1439, 1439))
def test_times_in_isoformat_are_read(moment: datetime, east: int) -> None:
    """Times in ISO format are read with any UTC offset in whole minutes."""
    local = moment.replace(tzinfo=None).isoformat()
    sign, (hours, minutes) = "-" if east < 0 else "+", divmod(abs(east), 60)
    read = read_time(f"{local}{sign}{hours:02}:{minutes:02}")
    assert read.replace(tzinfo=None) == moment.replace(tzinfo=None)
    assert read.utcoffset() == timedelta(minutes=east)


@pytest.mark.parametrize("text", ["2026-01-01", "2026-W01-1T00:00:00Z", "2026-01-01T00:00:00"])
def test_other_forms_of_iso_8601_are_refused(text: str) -> None:
    """Forms of times that some languages' libraries cannot read are refused."""
    with pytest.raises(ValueError, match="is not a time"):
        read_time(text)

"""Progress messages of long phases."""

import pytest

from fairlead.common import progress


def test_long_phases_report_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long phase reports every few seconds and once at its end."""
    now = 0.0
    monkeypatch.setattr("fairlead.common.progress.time.monotonic", lambda: now)
    lines: list[str] = []
    told = progress.phase(lines.append, "Described {:,} of {:,} groups")
    for now in (1.0, progress.EVERY_S, progress.EVERY_S + 1):
        told(int(now), 10)
    told(10, 10)
    told(10, 10)
    assert lines == ["Described 5 of 10 groups", "Described 10 of 10 groups"]

"""No test depends on seconds."""

from pathlib import Path

import pytest

from tests.clocks import uses_without_reason

# clocks: examples of what is found

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_every_use_of_a_clock_has_a_reason() -> None:
    """Short sleeps and time-outs, clocks that measure, and assertions about measured seconds."""
    paths = [path for folder in ("tests", "examples") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path): uses_without_reason(path.read_text()) for path in paths}
    assert {path: uses for path, uses in found.items() if uses} == {}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("began = time.monotonic()  # clock: x\n    y = 1\n    assert now - began < 5", 1),
        ("time.sleep(1)", 1),
        ("time.sleep(1)  # clock: how often to ask", 0),
        ("time.sleep(600)", 0),
        ("run(timeout=20)", 1),
        ("run(timeout=600)", 0),
        ("configure({'session.timeout.ms': 3000})", 1),
        ("configure({'session.timeout.ms': 45000})", 0),
        ("plan.expires_at = datetime.now(UTC)", 0),
    ],
)
def test_uses_that_need_a_reason_are_found(code: str, count: int) -> None:
    """Dates and bounds of minutes need none."""
    assert len(uses_without_reason(f"def test() -> None:\n    {code}\n")) == count

"""The documentation page about the closed loop shows the measured results."""

import json

from benchmarks.loop import RESULTS
from benchmarks.loop_report import PAGE, rewritten
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.registry import CONTROLLERS


def test_tables_show_the_last_run() -> None:
    """The page's tables are up to date; if not, run `python -m benchmarks.loop --report`."""
    page = PAGE.read_text()
    assert rewritten(page, json.loads(RESULTS.read_text())) == page


def test_the_last_run_was_complete() -> None:
    courses = json.loads(RESULTS.read_text())["courses"]
    ran = [(row["scenario"], row["controller"]) for row in courses]
    assert ran == [(name, who) for name in SCENARIOS for who in CONTROLLERS]

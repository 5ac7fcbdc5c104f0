"""Definitions of the code location, as Dagster's UI and daemon see them."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from orchestration.operations import GroupConfig
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]

#: Run first in a new process: from then on any connection, process or written file is an error.
NO_IO = """
import os, sys
def refuse(event, arguments):
    if event in {"socket.connect", "socket.bind", "subprocess.Popen", "os.exec", "os.fork"}:
        raise RuntimeError(f"{event} at import: {arguments}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        if arguments[0] != os.devnull:
            raise RuntimeError(f"written at import: {arguments}")
sys.addaudithook(refuse)
import orchestration.definitions
print(*{module.partition(".")[0] for module in sys.modules})
"""


@pytest.mark.parametrize("reason", ["", " "])
def test_jobs_of_persons_require_a_reason(reason: str) -> None:
    """The plan's history has the reason."""
    assert GroupConfig(group="orders", reason="CHG-1234").reason == "CHG-1234"
    with pytest.raises(ValueError, match="reason"):
        GroupConfig(group="orders", reason=reason)


@cache
def imported() -> set[str]:
    """Import the definitions in a new process; return the packages that it imported."""
    environment = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
    result = subprocess.run(
        [sys.executable, "-B", "-c", NO_IO],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.long
def test_import_does_no_io() -> None:
    """The import makes no connection, starts no process and writes no file."""
    assert "orchestration" in imported()


@pytest.mark.long
def test_optional_modules_are_imported_only_on_use() -> None:
    """Spark, plots, solvers and clients would slow down each process."""
    late = {"matplotlib", "ortools", "pandas", "aiokafka", "pyspark"}
    assert not late & imported()

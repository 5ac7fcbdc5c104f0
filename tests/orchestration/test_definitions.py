"""Dagster's code location: the import of its definitions, and the jobs for people."""

import os
import sys
from functools import cache
from pathlib import Path

import pytest

from orchestration.operations import GroupConfig
from tests.programs import ended

ROOT = Path(__file__).parents[2]

#: Program that imports the definitions and prints the names of all imported packages.
#: It fails if the import connects to a server, starts a process or writes a file.
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
    """An empty reason is an error, because the reason becomes part of the plan's history."""
    assert GroupConfig(group="orders", reason="CHG-1234").reason == "CHG-1234"
    with pytest.raises(ValueError, match="reason"):
        GroupConfig(group="orders", reason=reason)


@cache
def imported() -> set[str]:
    """Import the definitions in a new process; return the packages that it imported."""
    environment = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
    done = ended(sys.executable, "-B", "-c", NO_IO, cwd=ROOT, env=environment)
    return set(done.stdout.split())


@pytest.mark.long
def test_import_does_no_io() -> None:
    """Importing the definitions makes no connection, starts no process and writes no file."""
    assert "orchestration" in imported()


@pytest.mark.long
def test_optional_modules_are_imported_only_on_use() -> None:
    """The definitions do not import Spark, Matplotlib or OR-Tools, which take long to import."""
    late = {"matplotlib", "ortools", "pandas", "aiokafka", "pyspark"}
    assert not late & imported()

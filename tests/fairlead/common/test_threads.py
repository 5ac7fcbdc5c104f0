"""Linear algebra uses one thread in the pipeline and in commands."""

import os
import sys

import pytest

from tests.programs import ended

_STARTS = {
    "pipeline": "import orchestration",
    "command": "import fairlead.surfaces.cli as cli; cli.app = lambda: None; cli.main()",
}
_PRINT = "; import os, sys; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"


@pytest.mark.parametrize(
    ("start", "given", "threads"),
    [("pipeline", None, "1"), ("command", None, "1"), ("command", "3", "3")],
)
def test_linear_algebra_takes_one_thread(start: str, given: str | None, threads: str) -> None:
    """A limit of one thread is set before numpy is imported; an existing limit is kept."""
    environment = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name}
    environment |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    printed = ended(sys.executable, "-c", _STARTS[start] + _PRINT, env=environment)
    assert printed.stdout.split() == ["False", threads]

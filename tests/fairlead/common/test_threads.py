"""One thread for linear algebra, in everything that analyses."""

import os
import subprocess
import sys

import pytest

_STARTS = {
    "pipeline": "import orchestration",
    "command": "import fairlead.surfaces.cli as cli; cli.app = lambda: None; cli.main()",
}
_TOLD = "; import os, sys; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"


@pytest.mark.parametrize("start", _STARTS)
@pytest.mark.parametrize(("given", "threads"), [(None, "1"), ("3", "3")])
def test_linear_algebra_takes_one_thread(start: str, given: str | None, threads: str) -> None:
    """Said before numpy is imported; whoever sets another number keeps it."""
    environment = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name}
    told = subprocess.run(
        [sys.executable, "-c", _STARTS[start] + _TOLD],
        env=environment | ({} if given is None else {"OPENBLAS_NUM_THREADS": given}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["False", threads]

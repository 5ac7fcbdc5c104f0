"""`fairlead sandbox` starts services that keep running between commands."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead.sandbox import Sandbox
from tests.programs import FAIRLEAD, ended

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Fairlead = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def state_dir(own_services: Path) -> Iterator[Path]:
    """Return a state directory whose sandbox is stopped when the test ends."""
    yield own_services
    Sandbox(own_services).stop()


@pytest.fixture
def fairlead(state_dir: Path) -> Fairlead:
    """Return a function that runs `fairlead sandbox` on the state directory."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "FAIRLEAD_STATE_DIR": str(state_dir)}
        quiet = subprocess.DEVNULL
        return ended(FAIRLEAD, "sandbox", *arguments, status=None, env=environment, stdin=quiet)

    return run


def in_directory(
    directory: Path, *command: str, state_dir: Path, stdin: int = subprocess.DEVNULL
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a directory whose settings name no cluster."""
    environment = {name: value for name, value in os.environ.items() if name != "FAIRLEAD_CONFIG"}
    environment |= {"FAIRLEAD_STATE_DIR": str(state_dir)}
    return ended(FAIRLEAD, *command, status=None, cwd=directory, env=environment, stdin=stdin)


def test_services_run_between_commands(fairlead: Fairlead, state_dir: Path, tmp_path: Path) -> None:
    """`up` starts services that later commands use until `down`.

    A command that changes something names the sandbox when it asks for confirmation.
    """
    up = fairlead("up")
    services = Sandbox(state_dir).running()
    assert services is not None
    assert f"export FAIRLEAD_POSTGRES__URL='{services.postgres_url}'" in up.stdout.splitlines()
    for command in (["db", "upgrade"], ["groups"], ["survey", "--minutes", "0"]):
        found = in_directory(tmp_path, *command, state_dir=state_dir)
        assert (found.returncode, found.stderr) == (0, "")
    terminal, theirs = os.openpty()
    os.write(terminal, b"n\n")
    freezing = ["freeze", "--all", "--reason", "why"]
    result = in_directory(tmp_path, *freezing, state_dir=state_dir, stdin=theirs)
    for end in (terminal, theirs):
        os.close(end)
    assert result.stderr.startswith(f"On the sandbox in {state_dir}: Freeze all groups?")
    assert fairlead("down").returncode == 0
    assert in_directory(tmp_path, "groups", state_dir=state_dir).returncode == 1
    assert Sandbox(state_dir).running() is None

"""On a full disk, commands print one line that names the place and the remedy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.full_disk import without_room

FAIRLEAD = Path(sys.executable).with_name("fairlead")


def on_full_disk(
    state_dir: Path, *arguments: str, blocks: int = 1
) -> "subprocess.CompletedProcess[str]":
    """Run a command with a state directory on a full disk."""
    return subprocess.run(
        without_room(FAIRLEAD, *arguments, blocks=blocks),
        env=os.environ | {"FAIRLEAD_STATE_DIR": str(state_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


def no_room_in(state_dir: Path) -> str:
    return (
        f"fairlead: cannot write {state_dir}: File too large. Free some space there, or set "
        "state_dir or warehouse to another place"
    )


@pytest.mark.long
def test_spark_reports_a_full_disk_and_the_next_command_works(tmp_path: Path) -> None:
    """On a full disk, `spark up` fails; with a command after `--`, it warns and runs the command.

    `deploy/compose.yaml` starts Dagster's code server in this way.
    """
    alone = on_full_disk(tmp_path, "spark", "up")
    assert (alone.returncode, alone.stderr.splitlines()) == (1, [no_room_in(tmp_path)])
    before = on_full_disk(tmp_path, "spark", "up", "--", "echo", "the code server", blocks=0)
    assert (before.returncode, before.stdout) == (0, "the code server\n")
    (line,) = before.stderr.splitlines()
    assert line.startswith("fairlead: No usable temporary directory found in ")


def test_full_disk_for_the_output_is_reported() -> None:
    """If standard output is a file on a full disk, the command fails with one line of error."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [FAIRLEAD, "assign"],
            input="{}\n",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "fairlead: cannot write the output: No space left on device. Free some space there"
    ]

"""On a full disk, commands print one line that names the place and the remedy."""

import os
from pathlib import Path

import pytest

from tests.full_disk import without_room
from tests.programs import FAIRLEAD, ended


def no_room_in(state_dir: Path) -> str:
    return (
        f"fairlead: cannot write {state_dir}: File too large. Free some space there, or set "
        "state_dir or warehouse to another place"
    )


@pytest.mark.long
def test_spark_reports_a_full_disk_and_the_next_command_works(tmp_path: Path) -> None:
    """On a full disk, `spark up` fails; with a command after `--`, it warns and runs the command.

    `deploy/compose.yaml` names Dagster's code server after the `--`.
    """
    environment = os.environ | {"FAIRLEAD_STATE_DIR": str(tmp_path)}
    up = (FAIRLEAD, "spark", "up")
    alone = ended(*without_room(*up), status=1, env=environment)
    assert alone.stderr.splitlines() == [no_room_in(tmp_path)]
    before = ended(*without_room(*up, "--", "echo", "the code server", blocks=0), env=environment)
    assert before.stdout == "the code server\n"
    (line,) = before.stderr.splitlines()
    assert line.startswith("fairlead: No usable temporary directory found in ")


def test_full_disk_for_the_output_is_reported() -> None:
    """If standard output is a file on a full disk, the command fails with one line of error."""
    with Path("/dev/full").open("w") as full:
        done = ended(FAIRLEAD, "assign", status=1, input="{}\n", stdout=full)
    assert done.stderr.splitlines() == [
        "fairlead: cannot write the output: No space left on device. Free some space there"
    ]

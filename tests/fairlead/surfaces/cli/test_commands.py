"""The command `fairlead`: its help, and how it reports errors."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.main import get_command

from fairlead.store.models import STATES
from fairlead.surfaces.cli import app, plan_steps, plans
from fairlead.surfaces.doctor import PARTS
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[4]
FAIRLEAD = Path(sys.executable).with_name("fairlead")


def fairlead(
    *arguments: str, directory: Path, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a directory, with these settings in its environment."""
    environment = {**os.environ, **(settings or {})}
    return subprocess.run(
        [FAIRLEAD, *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        cwd=directory,
        env=environment,
        timeout=PATIENCE_S,
    )


def test_every_command_has_help_with_examples() -> None:
    """Each command's help describes it and ends with examples."""
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    lacking = [
        command.name or str(command.callback)
        for typer_app in (app, plan_steps.app, *groups.values())
        if typer_app is not None
        for command in typer_app.registered_commands
        if not (command.help or (command.callback and command.callback.__doc__))
        or not (command.epilog or "").startswith("Examples:")
    ]
    assert lacking == []


def test_options_take_every_value_that_there_is() -> None:
    """`--state` accepts every state of a plan, and `--skip` lists every part of the doctor."""
    assert get_args(plans.State) == STATES
    command: Any = get_command(app)
    (text,) = [each.help for each in command.commands["doctor"].params if "--skip" in each.opts]
    parts = text.removeprefix("Leave out ").partition(";")[0]
    assert re.findall(r"\w+", parts.replace(" or ", ", ")) == list(PARTS)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (["groups"], {"FAIRLEAD_NONSENSE": "1"}, "FAIRLEAD_NONSENSE: no such setting"),
        (
            ["groups"],
            {"FAIRLEAD_KAFAK__PLAN_TOPIC": "x"},
            "did you mean FAIRLEAD_KAFKA__PLAN_TOPIC?",
        ),
        (["groups"], {"FAIRLEAD_CONFIG": "absent.toml"}, "absent.toml, which does not exist"),
        (
            ["db", "upgrade"],
            {"FAIRLEAD_POSTGRES__URL": "mysql://root:secret@localhost/x"},
            "postgres.url is a mysql URL",
        ),
        (
            ["plans", "list"],
            {"FAIRLEAD_POSTGRES__URL": "postgresql://kim:secret@localhost:1/x"},
            "Is it running, and is postgres.url",
        ),
    ],
    ids=["unknown setting", "misspelt setting", "missing file", "wrong database", "no database"],
)
def test_error_of_ours_is_one_line_and_exit_code_1(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], message: str
) -> None:
    """An expected error is one line without a traceback or a secret, with exit code 1."""
    result = fairlead(*arguments, directory=tmp_path, settings=settings)
    assert result.returncode == 1
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("fairlead: ")
    assert message in line
    assert "secret" not in result.stderr + result.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("needed", "not_needed"),
    [
        (
            "fairlead.settings, fairlead.surfaces.next_step, fairlead.store.history_queries,"
            + ",".join(
                f"fairlead.store.{name}" for name in ("freezes", "group_history", "regressions")
            ),
            {"numpy", "pyarrow", "ortools", "sqlalchemy.orm", "kafka", "confluent_kafka"},
        ),
        (
            "fairlead.kafka.gateway, fairlead.store.plans, fairlead.workflows.planning_one_group",
            {"pyspark", "pandas", "dagster", "matplotlib", "ortools"},
        ),
    ],
    ids=["groups", "plan"],
)
def test_a_command_waits_for_nothing_that_it_does_not_use(
    needed: str, not_needed: set[str]
) -> None:
    """`fairlead groups` and `fairlead plan` import little, so that they answer within a second."""
    code = f"import sys, fairlead.surfaces.cli, {needed}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout.split()
    assert not_needed & set(loaded) == set()

"""Help texts of `fairlead` and its commands."""

import re
from typing import Any

from typer.main import get_command

from fairlead.surfaces.cli import app, plan_steps
from fairlead.surfaces.doctor import PARTS


def test_every_command_has_help_with_examples() -> None:
    """Every command has a help text and an epilog that starts with examples."""
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


def test_help_lists_the_parts_of_the_doctor() -> None:
    """The help of `doctor` lists all names that `--skip` accepts."""
    command: Any = get_command(app)
    (text,) = [each.help for each in command.commands["doctor"].params if "--skip" in each.opts]
    parts = text.removeprefix("Leave out ").partition(";")[0]
    assert re.findall(r"\w+", parts.replace(" or ", ", ")) == list(PARTS)

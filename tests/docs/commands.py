"""Check that commands on pages exist and accept their options.

Belongs here: one check for each program. Belongs elsewhere: commands shown with output; `pages`
runs them.
"""

import importlib
import importlib.util
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final
from unittest.mock import patch

import yaml
from click.testing import CliRunner
from typer.main import get_command

from fairlead.errors import SandboxError
from fairlead.settings import load_settings
from fairlead.surfaces.cli import app
from tests.docs.blocks import ROOT
from tests.kafka_tools import run_kafka_tool


def check_script(script: str) -> None:
    """Check every command of a shell script; raise AssertionError if one is wrong."""
    for line in script.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if not program:  # an empty line, or only a comment
            continue
        assert program in _CHECKS, f"no check knows {program!r}: {line}"
        _CHECKS[program](arguments)


def _fairlead(arguments: Sequence[str]) -> None:
    _accepts(get_command(app), arguments)


def _dagster(arguments: Sequence[str]) -> None:
    cli = importlib.import_module("dagster._cli")  # imported here because it takes a second
    _accepts(cli.create_dagster_cli(), arguments)


def _accepts(command: Any, arguments: Sequence[str]) -> None:
    """Run a command with `--help` appended; raise AssertionError if an option is unknown."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    result = CliRunner().invoke(command, [*own, "--help"])
    assert result.exit_code == 0, f"{shlex.join(arguments)}: {result.output}"


def _make(arguments: Sequence[str]) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [argument for argument in arguments if "=" not in argument]
    assert set(named) <= targets, f"make {shlex.join(named)}: there is no such target"


def _python(arguments: Sequence[str]) -> None:
    option, module, *_ = arguments
    assert option == "-m", f"python {shlex.join(arguments)}"
    module = module.removeprefix("fairlead_planner.")  # the checkout lacks this package
    assert importlib.util.find_spec(module), f"there is no module {module}"


def _pip(arguments: Sequence[str]) -> None:
    install, wheel = arguments
    assert install == "install"
    _is_ours(wheel)


def _uvx(arguments: Sequence[str]) -> None:
    option, wheel, program, *rest = arguments
    assert (option, program) == ("--from", "fairlead"), f"uvx {shlex.join(arguments)}"
    _is_ours(wheel)
    _fairlead(rest)


def _is_ours(wheel: str) -> None:
    """Check that `make dist` builds this wheel, and that the project has the wheel's extras."""
    project = _project()
    path, _, extras = wheel.rstrip("]").partition("[")
    name = project["name"].replace("-", "_")
    assert path == f"dist/{name}-{project['version']}-py3-none-any.whl", wheel
    assert set(extras.split(",")) <= project["optional-dependencies"].keys(), wheel


def _pytest(arguments: Sequence[str]) -> None:
    own = (ROOT / "tests" / "conftest.py").read_text()
    for argument in arguments:
        if argument.startswith("--"):
            assert f'"{argument}"' in own, f"pytest has no option {argument}"
        elif not argument.isdigit():
            assert (ROOT / argument).exists(), argument


def _helm(arguments: Sequence[str]) -> None:
    """Check that the chart has the value given with `--set`, or that the given file exists."""
    install, _, chart, option, given = arguments
    assert (install, option[:2]) == ("install", "--")
    if option == "--set":
        values = yaml.safe_load((ROOT / chart / "values.yaml").read_text())
        for key in given.partition("=")[0].split("."):
            values = values[key]
    else:
        assert (ROOT / given).exists(), given


def _kafka_topics(arguments: Sequence[str]) -> None:
    """Let Kafka's tool check the options. It never connects, because we add an invalid option."""
    try:
        run_kafka_tool("org.apache.kafka.tools.TopicCommand", *arguments, "--fairlead-stop")
    except SandboxError as error:
        problem = str(error)
    assert "fairlead-stop is not a recognized option" in problem, problem


def _export(arguments: Sequence[str]) -> None:
    """Check that the exported FAIRLEAD_ variables are valid settings."""
    given = dict(setting.split("=", 1) for setting in arguments)
    with patch.dict(os.environ, {n: v for n, v in given.items() if n.startswith("FAIRLEAD_")}):
        load_settings()


def _mkdir(arguments: Sequence[str]) -> None:
    assert arguments[0] == "-p"
    assert len(arguments) > 1


def _cp(arguments: Sequence[str]) -> None:
    source, target = arguments
    assert (ROOT / source).is_file(), f"there is no {source}"
    assert target.endswith("/")


def _source(arguments: Sequence[str]) -> None:
    assert list(arguments) == [".venv/bin/activate"]


@cache
def _project() -> Mapping[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]  # type: ignore[no-any-return]


_CHECKS: Final[Mapping[str, Callable[[Sequence[str]], None]]] = {
    ".": _source,
    ".venv/bin/fairlead": _fairlead,
    "cp": _cp,
    "dagster": _dagster,
    "export": _export,
    "fairlead": _fairlead,
    "helm": _helm,
    "kafka-topics.sh": _kafka_topics,
    "make": _make,
    "mkdir": _mkdir,
    "pip": _pip,
    "pytest": _pytest,
    "python": _python,
    "uvx": _uvx,
}

"""Find the cluster to use if nothing is configured: a sandbox started in the present directory.

Belongs here: finding the sandbox, confirmation before a change, and the output of `--version`.
Belongs elsewhere: the settings themselves (`fairlead.settings`), running a sandbox
(`fairlead.sandbox`).
"""

import os
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import Final

import typer

from fairlead.common.visible import visible
from fairlead.surfaces.cli.output import say

#: Environment variables with the prefix FAIRLEAD_ that do not configure a cluster.
_OTHER: Final = frozenset({"FAIRLEAD_STATE_DIR", "FAIRLEAD_CACHE_DIR"})
#: Directory of the sandbox in use; None: no sandbox is used.
_SANDBOX: Final[ContextVar[Path | None]] = ContextVar("sandbox", default=None)


def show_version(requested: bool) -> None:  # noqa: FBT001 - typer's signature
    """Print the version and exit, for `--version`."""
    if requested:
        from fairlead.common.installed import installed_version

        say(f"fairlead {installed_version()}")
        raise typer.Exit


def use_running_sandbox() -> None:
    """If no file or variable configures a cluster, use the sandbox of the present directory.

    `make dev` in one terminal and `fairlead groups` in another then use the same cluster.
    `ask` names the sandbox before anything is changed.
    """
    _SANDBOX.set(None)
    variables = {name for name in os.environ if name.upper().startswith("FAIRLEAD_")}
    state_dir = Path(os.environ.get("FAIRLEAD_STATE_DIR", ".fairlead"))
    used = (state_dir / "kafka").exists()  # without a sandbox, skip the slow imports below
    if variables - _OTHER or Path("fairlead.toml").exists() or not used:
        return
    from fairlead.sandbox import Sandbox
    from fairlead.surfaces.demo.environment import POLICIES, dev_home
    from fairlead.surfaces.pipeline import HOME_VARIABLE

    services = Sandbox(state_dir).running()
    if services is not None:
        os.environ.setdefault(HOME_VARIABLE, str(dev_home(state_dir.absolute())))
        os.environ.update(services.environment() | {"FAIRLEAD_CONFIG": str(POLICIES)})
        _SANDBOX.set(state_dir)


def ask(question: str, *, yes: bool) -> None:
    """Ask on a terminal; any answer but yes ends the command with exit code 1."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to confirm at; add --yes to confirm")
    sandbox = _SANDBOX.get()
    where = f"On the sandbox in {sandbox}: " if sandbox else ""
    typer.confirm(visible(where + question), abort=True, err=True)

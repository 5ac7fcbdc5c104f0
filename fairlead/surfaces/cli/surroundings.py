"""What the command line works on where nobody said: the sandbox that runs in this checkout.

Belongs here: finding it, and what `--version` answers. Does not: the settings themselves
(`fairlead.settings`), running a sandbox (`fairlead.sandbox`).
"""

import os
from pathlib import Path
from typing import Final

import typer

from fairlead.surfaces.cli.output import say

#: Variables that name no cluster.
_OTHER: Final = frozenset({"FAIRLEAD_STATE_DIR", "FAIRLEAD_CACHE_DIR"})


def show_version(asked: bool) -> None:  # noqa: FBT001 - typer's signature
    """Answer `--version`."""
    if asked:
        from importlib.metadata import version

        say(f"fairlead {version('fairlead')}")
        raise typer.Exit


def use_running_sandbox() -> None:
    """Work on this directory's sandbox, if one runs, where neither file nor variable says on what.

    `make dev` in one terminal and `fairlead groups` in another then are about the same groups. It
    is said on standard error: standard output may belong to a program.
    """
    said = [name for name in os.environ if name.upper().startswith("FAIRLEAD_")]
    state_dir = Path(os.environ.get("FAIRLEAD_STATE_DIR", ".fairlead"))
    state = state_dir / "sandbox.json"  # no sandbox, nothing to import
    if set(said) - _OTHER or Path("fairlead.toml").exists() or not state.exists():
        return
    from fairlead.sandbox import Sandbox
    from fairlead.surfaces.demo.surroundings import POLICIES, dev_home
    from fairlead.surfaces.pipeline import HOME_VARIABLE

    services = Sandbox(state_dir).running()
    if services is not None:
        os.environ.setdefault(HOME_VARIABLE, str(dev_home(state_dir.absolute())))
        os.environ.update(services.environment() | {"FAIRLEAD_CONFIG": str(POLICIES)})
        say(f"On the sandbox in {state_dir}: no setting names another cluster.", err=True)

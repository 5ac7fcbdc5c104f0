"""The pipeline as others start it: its package's name, Dagster's home and configuration.

Belongs here: what the checkout and the wheel have in different places. Does not: Dagster itself,
which the library knows nothing of.
"""

import os
from pathlib import Path
from typing import Final

from fairlead.errors import ConfigurationError
from fairlead.settings import Settings
from fairlead.surfaces.links import LOCATION

#: The checkout, or the folder that a wheel was installed into.
CHECKOUT: Final = Path(__file__).parents[2]
_WHEEL: Final = CHECKOUT / "fairlead_planner"
_INSTALLED: Final = (_WHEEL / "orchestration").is_dir()
#: What `python -m` takes.
PIPELINE: Final = "fairlead_planner.orchestration" if _INSTALLED else "orchestration"
HOME_VARIABLE: Final = "DAGSTER_HOME"
_MODULE: Final = """\
load_from:
  - python_module:
      module_name: {pipeline}.definitions
      location_name: {location}
"""
_SOCKET: Final = """\
load_from:
  - grpc_server:
      socket: {socket}
      location_name: {location}
"""


def dagster_home(settings: Settings) -> Path:
    """Return where Dagster keeps its runs: as `DAGSTER_HOME` says, else in the state directory."""
    home = os.environ.get(HOME_VARIABLE)
    return Path(home).expanduser() if home else settings.state_dir.absolute() / "dagster-home"


def dagster_yaml() -> str:
    """Return Dagster's configuration for one machine.

    Raises
    ------
    ConfigurationError
        The wheel or the checkout is not whole.
    """
    path = (_WHEEL if _INSTALLED else CHECKOUT) / "dagster.yaml"
    try:
        return path.read_text()
    except FileNotFoundError as error:
        raise ConfigurationError(f"there is no {path}: install Fairlead again") from error


def furnish(home: Path, socket: Path | None = None) -> Path:
    """Make Dagster's home, where it is none yet; return the workspace to start Dagster with.

    A `dagster.yaml` that is there stays as it is.

    Parameters
    ----------
    home
        Where Dagster keeps its runs.
    socket
        Of the server that loads the definitions; None: Dagster loads them itself.
    """
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        (home / "dagster.yaml").write_text(dagster_yaml())
    workspace = home / "workspace.yaml"
    text = _MODULE if socket is None else _SOCKET
    workspace.write_text(text.format(pipeline=PIPELINE, socket=socket, location=LOCATION))
    return workspace

"""What is needed to start Dagster: the pipeline's package, Dagster's home and configuration.

Belongs here: what differs between a checkout and an installed wheel. Belongs elsewhere: importing
Dagster.
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
#: Name of the package with the Dagster definitions, for `python -m`.
PIPELINE: Final = "fairlead_planner.orchestration" if _INSTALLED else "orchestration"
HOME_VARIABLE: Final = "DAGSTER_HOME"
_SOCKET: Final = """\
load_from:
  - grpc_server:
      socket: {socket}
      location_name: {location}
"""


def dagster_home(settings: Settings) -> Path:
    """Return Dagster's home: `DAGSTER_HOME`, else a folder of the state directory."""
    home = os.environ.get(HOME_VARIABLE)
    return Path(home).expanduser() if home else settings.state_dir.absolute() / "dagster-home"


def dagster_yaml() -> str:
    """Return Dagster's configuration for one machine.

    Raises
    ------
    ConfigurationError
        The file is missing from the wheel or the checkout.
    """
    path = (_WHEEL if _INSTALLED else CHECKOUT) / "dagster.yaml"
    try:
        return path.read_text()
    except FileNotFoundError as error:
        raise ConfigurationError(f"there is no {path}: install Fairlead again") from error


def furnish(home: Path, socket: Path) -> Path:
    """Prepare Dagster's home; return the workspace file to start Dagster with.

    An existing `dagster.yaml` is not changed.

    Parameters
    ----------
    home
        Dagster's home.
    socket
        Socket of the server that loads the definitions.
    """
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        (home / "dagster.yaml").write_text(dagster_yaml())
    workspace = home / "workspace.yaml"
    workspace.write_text(_SOCKET.format(socket=socket, location=LOCATION))
    return workspace

"""Checks before a start: the doctor's checks, ports, and processes of an earlier start.

Belongs here: obstacles to a start. Belongs elsewhere: the parts to start (`running`).
"""

import socket
from collections.abc import Callable
from pathlib import Path

from fairlead.errors import ConfigurationError
from fairlead.sandbox.ending import end_recorded
from fairlead.sandbox.recorded_processes import require_alone
from fairlead.settings import Settings
from fairlead.surfaces.doctor import examine
from fairlead.surfaces.up.running import At

Tell = Callable[[str], None]
#: Checks of the doctor that must not fail, otherwise the planner does not start. The causes of
#: other failures can be removed while it runs.
_NEEDED = frozenset({"database", "schema"})


def require_free(state_dir: Path, at: At, tell: Tell) -> None:
    """Refuse to start twice; end processes left by a killed `fairlead up` or `fairlead dev`.

    Raises
    ------
    SandboxError
        Another command already runs parts in this state directory.
    ConfigurationError
        A port is taken.
    """
    require_alone(state_dir)
    end_recorded(state_dir, tell)
    for port, option in ((at.dagster_port, "--dagster-port"), (at.pages_port, "--port")):
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((at.host, port))
            except OSError as error:
                raise ConfigurationError(
                    f"cannot listen at {at.host}:{port}: {error.strerror}; choose another with "
                    f"{option}"
                ) from None


def check(settings: Settings, tell: Tell) -> None:
    """Print the doctor's warnings and failures.

    Raises
    ------
    ConfigurationError
        The database does not answer, or lacks the schema.
    """
    fatal = []
    for finding in examine(settings, skip=("dagster",)):
        if finding.state == "ok" or finding.name == "samples":  # nothing takes samples yet
            continue
        line = f"{finding.state}: {finding.name}: {finding.detail}" + (
            f". {finding.remedy}" if finding.remedy else ""
        )
        if finding.state == "failed" and finding.name in _NEEDED:
            fatal.append(line)
        else:
            tell(line)
    if fatal:
        raise ConfigurationError("; ".join(fatal))

"""What is looked at before anything is started: the doctor's list, ports, what ran before.

Belongs here: what keeps the parts from starting. Does not: the parts (`running`).
"""

import socket
from collections.abc import Callable
from pathlib import Path

from fairlead.errors import ConfigurationError, SandboxError
from fairlead.sandbox.ending import end_recorded
from fairlead.sandbox.recorded_processes import still_running
from fairlead.settings import Settings
from fairlead.surfaces.doctor import examine
from fairlead.surfaces.up.running import At

Tell = Callable[[str], None]
#: Without these nothing of it can work; what else is wrong may come right while it runs.
_NEEDED = frozenset({"database", "schema"})
#: What holds parts, by the names that they are written down under.
HOLDERS = ("fairlead up", "fairlead dev")


def require_free(state_dir: Path, at: At, tell: Tell) -> None:
    """Refuse to start beside another one; end what one that was killed has left.

    Raises
    ------
    SandboxError
        Another one runs in this state directory.
    ConfigurationError
        A port is taken.
    """
    for process in still_running(state_dir):
        if process.name in HOLDERS:
            raise SandboxError(
                f"`{process.name}` runs here already, as process {process.pid}: end it first"
            )
    end_recorded(state_dir, tell)
    for port, option in ((at.dagster_port, "--dagster-port"), (at.pages_port, "--port")):
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((at.host, port))
            except OSError as error:
                raise ConfigurationError(
                    f"cannot listen at {at.host}:{port}: {error.strerror}; {option} names another"
                ) from None


def check(settings: Settings, tell: Tell) -> None:
    """Tell what the doctor finds that is not right.

    Raises
    ------
    ConfigurationError
        The database does not answer, or has not the schema: nothing would work.
    """
    fatal = []
    for finding in examine(settings, skip=("dagster",)):
        if finding.state == "ok" or finding.name == "looks":  # which begin now
            continue
        line = f"{finding.state}: {finding.name}: {finding.said}" + (
            f". {finding.remedy}" if finding.remedy else ""
        )
        if finding.state == "failed" and finding.name in _NEEDED:
            fatal.append(line)
        else:
            tell(line)
    if fatal:
        raise ConfigurationError("; ".join(fatal))

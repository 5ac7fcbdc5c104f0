"""The warm Spark server of a state directory, and the file by which processes find it.

A warm server is a Spark Connect server that keeps running, so that runs start fast. Belongs here:
the file, and checking whether the server still runs and has the present code. Belongs elsewhere:
starting and stopping the server (`fairlead.sandbox.spark`), its sessions (`session`).
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final, Self

import psutil

import assignors
import fairlead
from fairlead.common.same_process import same_process

FOLDER: Final = "spark"
_FILE: Final = "server.json"


@dataclass(frozen=True)
class WarmServer:
    """A Spark Connect server of this machine and this user.

    Parameters
    ----------
    port
        The port on the loopback address.
    token
        Secret that every client must send, since other users of this machine can reach the port.
    session_id
        The session that all runs share, because another session would start new Python workers.
    pid, started_at
        The server's process; the start time distinguishes processes with the same pid.
    made_of
        Digest of the server's code and properties when it started, from the function `made_of`.
    """

    port: int
    token: str = field(repr=False)
    session_id: str
    pid: int
    started_at: float
    made_of: str

    @classmethod
    def recorded(cls, state_dir: Path) -> Self | None:
        """Return the recorded server of a state directory; None if there is none."""
        try:
            return cls(**json.loads(_record(state_dir).read_text()))
        except (OSError, ValueError, TypeError):  # missing, damaged or from another version
            return None

    def record(self, state_dir: Path) -> None:
        """Write the record to a file that only this user may read."""
        target = _record(state_dir)
        unfinished = target.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(0o600)
        unfinished.write_text(json.dumps(asdict(self)))
        unfinished.replace(target)

    @property
    def url(self) -> str:
        """Address for clients. Without TLS, gRPC sends tokens only to the host `localhost`."""
        about = f"user_id=fairlead;session_id={self.session_id};token={self.token}"
        return f"sc://localhost:{self.port}/;{about}"

    def runs(self) -> bool:
        """Whether the server still runs."""
        return self.process() is not None

    def kill(self) -> None:
        """Kill the server."""
        process = self.process()
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.kill()
                process.wait()

    def process(self) -> psutil.Process | None:
        """Return the process of the server; None if it has ended."""
        return same_process(self.pid, self.started_at)


def forget(state_dir: Path) -> None:
    """Remove the record of the server."""
    _record(state_dir).unlink(missing_ok=True)


def made_of(properties: Mapping[str, str]) -> str:
    """Return a digest of everything that cannot change after a server starts.

    The digest covers the interpreter, Spark, the present code, and the properties of Spark that a
    session cannot set. A server with other code could return results that the planner does not
    expect.
    """
    digest = hashlib.sha256(f"{sys.executable} {sys.version} {version('pyspark')}".encode())
    for package in (assignors, fairlead):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            status = path.stat()
            digest.update(f"{path} {status.st_mtime_ns} {status.st_size}\n".encode())
    fixed = {name: value for name, value in properties.items() if not name.startswith("spark.sql.")}
    digest.update(json.dumps(fixed, sort_keys=True).encode())
    return digest.hexdigest()


def _record(state_dir: Path) -> Path:
    return state_dir / FOLDER / _FILE

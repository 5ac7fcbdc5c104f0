"""`python -m fairlead.sandbox.ending`: end processes of this checkout; `make clean` runs it.

Belongs here: finding and ending these processes, and reporting those that still run. Does not:
removing files.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from fairlead.common.visible import visible
from fairlead.errors import FairleadError
from fairlead.sandbox.processes import end, members, wait_until
from fairlead.sandbox.recorded_processes import still_running

#: Exit code if processes still run: `make clean` then removes nothing.
REFUSED: Final = 3
#: Seconds. `fairlead up` and `fairlead dev` end their parts first, which may take this long.
_GRACE_S: Final = 60.0
_PART_GRACE_S: Final = 10.0
_GONE_S: Final = 5.0

Tell = Callable[[str], None]


def end_recorded(state_dir: Path, tell: Tell) -> None:
    """End the recorded processes of a state directory.

    Supervisors end first, because they end their own parts.
    """
    for holders in (True, False):
        for recorded in still_running(state_dir):
            process = recorded.process()
            if process is None or recorded.name.startswith("fairlead ") is not holders:
                continue
            group = members(recorded.pid)  # empty unless the process leads a group
            with suppress(psutil.AccessDenied):
                end(process, signal.SIGTERM, grace_s=_GRACE_S if holders else _PART_GRACE_S)
                for part in group:
                    end(part, signal.SIGTERM, grace_s=_PART_GRACE_S)
                tell(f"ended {recorded.name}, process {recorded.pid}")


def end_all(state_dirs: Iterable[Path], tell: Tell) -> None:
    """End recorded processes, the warm Spark and the sandbox."""
    from fairlead.sandbox.sandbox import Sandbox  # noqa: PLC0415 - imports Spark, seconds
    from fairlead.sandbox.spark import SparkServer  # noqa: PLC0415 - the same
    from fairlead.settings import SparkSettings  # noqa: PLC0415 - the same

    for state_dir in state_dirs:
        end_recorded(state_dir, tell)
        spark = SparkServer(state_dir, SparkSettings())
        if process := spark.process():
            spark.stop()
            tell(f"ended Spark, process {process.pid}")
        sandbox = Sandbox(state_dir)
        services = (sandbox.kafka.process(), sandbox.postgres.process())
        if pids := [str(service.pid) for service in services if service]:
            sandbox.stop()
            tell(f"ended the sandbox, processes {', '.join(pids)}")


def of_this_checkout() -> list[psutil.Process]:
    """Return the processes that run this environment's Python, except this one and its parents."""
    this = psutil.Process()
    own = {this, *this.parents()}
    return [
        process
        for process in psutil.process_iter()
        if process not in own and _by_this_python(process)
    ]


def _by_this_python(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        command = process.cmdline()
        if command and command[0].startswith(f"{sys.prefix}{os.sep}"):
            return True
        named = bool(command) and Path(command[0]).name.startswith("python")
        return named and process.environ().get("VIRTUAL_ENV") == sys.prefix
    return False


def main() -> int:
    """End everything; report what was ended, and what still runs."""

    def tell(line: str) -> None:
        sys.stderr.write(f"{visible(line)}\n")

    state_dirs = {Path(".fairlead").resolve()}
    with suppress(FairleadError):
        from fairlead.settings import load_settings  # noqa: PLC0415 - may raise for an invalid file

        state_dirs.add(load_settings().state_dir.resolve())
    end_all(sorted(folder for folder in state_dirs if folder.exists()), tell)
    wait_until(lambda: not of_this_checkout(), timeout_s=_GONE_S)
    running = of_this_checkout()
    for process in running:
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            tell(f"process {process.pid} still runs from {sys.prefix}: {command[:200]}")
    if running:
        tell("nothing is removed: end these first")
    return REFUSED if running else 0


if __name__ == "__main__":
    sys.exit(main())

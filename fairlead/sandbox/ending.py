"""`python -m fairlead.sandbox.ending`: ends the processes of this checkout, for `make clean`.

Belongs here: finding and ending these processes. Belongs elsewhere: removing files.
"""

import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from fairlead.common.visible import visible
from fairlead.errors import FairleadError
from fairlead.sandbox.processes import end, members
from fairlead.sandbox.recorded_processes import still_running

#: Seconds that `fairlead up` and `fairlead dev` may take to end, because they first end the
#: processes that they run (their parts).
_GRACE_S: Final = 60.0
_PART_GRACE_S: Final = 10.0

Tell = Callable[[str], None]


def end_recorded(state_dir: Path, tell: Tell) -> None:
    """End the recorded processes of a state directory.

    Commands such as `fairlead up` are ended first, because they end the processes that they run.
    """
    for holders in (True, False):
        for recorded in still_running(state_dir):
            process = recorded.process()
            if process is None or recorded.name.startswith("fairlead ") is not holders:
                continue
            group = members(recorded.pid)  # empty unless the process leads a process group
            with suppress(psutil.AccessDenied):
                end(process, signal.SIGTERM, grace_s=_GRACE_S if holders else _PART_GRACE_S)
                for part in group:
                    end(part, signal.SIGTERM, grace_s=_PART_GRACE_S)
                tell(f"ended {recorded.name}, process {recorded.pid}")


def end_all(state_dirs: Iterable[Path], tell: Tell) -> None:
    """End the recorded processes, the Spark server and the sandbox of each state directory."""
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


def main() -> None:
    """End all processes of this checkout's state directories; report each of them."""

    def tell(line: str) -> None:
        sys.stderr.write(f"{visible(line)}\n")

    state_dirs = {Path(".fairlead").resolve()}
    with suppress(FairleadError):
        from fairlead.settings import load_settings  # noqa: PLC0415 - may raise for an invalid file

        state_dirs.add(load_settings().state_dir.resolve())
    end_all(sorted(folder for folder in state_dirs if folder.exists()), tell)


if __name__ == "__main__":
    main()

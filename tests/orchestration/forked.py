"""What tests have forked: commands, and jobs of Dagster.

Belongs here: what runs in a process that the fork server forked. Does not: asking for it.
"""

import atexit
import json
import os
import sys
import time
from pathlib import Path

import dagster as dg


@dg.op(config_schema={"file": str})
def note_pid(context: dg.OpExecutionContext) -> None:
    """Write down which process this is, and whether it has imported what the server had."""
    Path(context.op_config["file"]).write_text(
        json.dumps({"pid": os.getpid(), "parent": os.getppid()})
    )


@dg.op(config_schema={"file": str})
def never_end(context: dg.OpExecutionContext) -> None:
    """Write down which process this is, and wait to be interrupted."""
    Path(context.op_config["file"]).write_text(str(os.getpid()))
    while True:
        time.sleep(0.1)  # clock: until it is interrupted


@dg.job(executor_def=dg.in_process_executor)
def noted() -> None:
    """End by itself."""
    note_pid()


@dg.job(executor_def=dg.in_process_executor)
def endless() -> None:
    """End by others."""
    never_end()


defs = dg.Definitions(jobs=[noted, endless])


def tell() -> int:
    """Print what a command finds around it; return the exit code that it is told."""
    sys.stdout.write(
        json.dumps(
            {
                "words": sys.argv[1:],
                "folder": str(Path.cwd()),
                "environment": os.environ.get("TOLD"),
                "input": sys.stdin.read(),
                "parent": os.getppid(),
            }
        )
    )
    sys.stderr.write("to standard error\n")
    return int(sys.argv[1])


def masked() -> int:
    """Return the mask of files as an exit code."""
    return os.umask(0)


def fail() -> None:
    """Raise."""
    raise RuntimeError("as a test wants")


def die() -> None:
    """End by a signal that nobody can catch."""
    os.kill(os.getpid(), 9)


def wait_named() -> int:
    """Print the process' id, and wait for Ctrl-C."""
    sys.stdout.write(f"{os.getpid()}\n")
    return wait()


def wait() -> int:
    """Wait for Ctrl-C."""
    try:
        sys.stdout.write("waiting\n")
        while True:
            time.sleep(0.1)  # clock: until it is interrupted
    except KeyboardInterrupt:
        sys.stdout.write("interrupted\n")
    return 5


def note() -> None:
    """Write a file, and another one at the end."""
    Path("noted").touch()
    atexit.register(Path("noted at exit").touch)

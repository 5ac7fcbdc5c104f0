"""Record the services and JVMs that a test process starts.

Python imports a module of this name at its start. Belongs here: code that runs first in each test
process. Belongs elsewhere: the limits (`limits`).
"""

import gc
import json
import os
import sys
from pathlib import Path

#: Environment variable with the path of the file of starts, which has one line per start.
STARTS_FILE = "TEST_STARTS_FILE"
#: Environment variable that shared fixtures set: a name to record instead of the test's file.
STARTS_FOR = "TEST_STARTS_FOR"
FORMAT = "kafka.tools.StorageTool"
_SCRIPTS = {"javac", "spark-submit", "start-connect-server.sh"}


def kind_of(command: list[str]) -> str | None:
    """Return "broker", "postgres", "dagster dev" or "JVM"; None for any other command.

    None also for the JVM that formats a broker's folder, since it counts as part of the broker.
    """
    program = command[0].rpartition("/")[2] if command else ""
    if program == "java" and not _is_script(command[0]):
        return "broker" if "kafka.Kafka" in command else None if FORMAT in command else "JVM"
    if program == "postgres":
        return "postgres"
    if command[1:4] == ["-m", "dagster", "dev"]:
        return "dagster dev"
    return "JVM" if program in _SCRIPTS else None


def _is_script(program: str) -> bool:
    """Return whether a program is a script that imitates Java, as in the tests of `find_java`."""
    with Path(program).open("rb") as file:
        return file.read(2) == b"#!"


def note(event: str, values: tuple[object, ...]) -> None:
    """Append a line to the file of starts. This is an audit hook of Python."""
    if event != "subprocess.Popen":
        return
    _, arguments, folder, _environment = values
    command = [os.fsdecode(part) for part in arguments] if isinstance(arguments, list) else []
    kind, path = kind_of(command), os.environ.get(STARTS_FILE)
    if kind is None or path is None:
        return
    test = os.environ.get(STARTS_FOR) or os.environ.get("PYTEST_CURRENT_TEST", "")
    line = json.dumps([kind, str(folder), test.partition("::")[0], " ".join(command)[-200:]])
    with Path(path).open("a") as starts:  # one write per line: processes write at the same time
        starts.write(f"{line}\n")


if __name__ == "sitecustomize":
    sys.addaudithook(note)
    # Hundreds of processes only import modules, and garbage collection would take a sixth of their
    # time.
    gc.set_threshold(50_000)

"""Java consumers in separate processes.

Belongs here: starting them and reading their states. Belongs elsewhere: assertions.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlead.sandbox.java import BRIEF, find_java
from tests.waiting import PATIENCE_S

#: Options of a small JVM that starts quickly and logs to its output.
OPTIONS = ("-Xmx96m", *BRIEF)
LOGGING = ("-Dorg.slf4j.simpleLogger.showDateTime=true",)


def member_command(classpath: str) -> list[str]:
    """Return the command of a Java consumer, without its task."""
    return [str(find_java()), *OPTIONS, *LOGGING, "-cp", classpath, "fairlead.kafka.PlanMember"]


class JavaMember:
    """One Java consumer."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._folder = folder
        with (folder / "errors").open("wb") as errors:
            self.process = subprocess.Popen(command, stderr=errors)

    @property
    def state(self) -> dict[str, Any]:
        """Return the newest state that the consumer has written."""
        assert self.process.poll() is None, (self._folder / "errors").read_text()[-3000:]
        try:
            known: dict[str, Any] = json.loads((self._folder / "state").read_text())
        except FileNotFoundError:
            return {}
        return known

    @property
    def owned(self) -> list[int]:
        """Return the partitions that the consumer owns."""
        owned: list[int] = self.state.get("owned", [])
        return owned

    def stop(self) -> None:
        """Stop the consumer with SIGTERM, so that it leaves the group."""
        self.process.terminate()
        assert self.process.wait(timeout=PATIENCE_S) == 0


class JavaGroup:
    """Java consumers that follow plans, and read one topic in one group."""

    def __init__(
        self, command: list[str], folder: Path, topic: str, configs: dict[str, Any]
    ) -> None:
        self._command, self._folder, self._topic = command, folder, topic
        self._configs = configs
        self._members: list[JavaMember] = []

    def join(self, client_id: str, **configs: Any) -> JavaMember:
        """Start a consumer; underscores in names of settings stand for dots."""
        folder = self._folder / f"{client_id}-{len(self._members)}"
        folder.mkdir()
        task = {
            "topic": self._topic,
            "folder": str(folder),
            "configs": {**self._configs, "client.id": client_id, **configs},
        }
        member = JavaMember([*self._command, json.dumps(task)], folder)
        self._members.append(member)
        return member

    def end(self) -> None:
        """Kill every process."""
        for member in self._members:
            member.process.kill()
            member.process.wait()


@contextmanager
def java_group(
    classpath: str, folder: Path, topic: str, configs: dict[str, Any]
) -> Iterator[JavaGroup]:
    """Yield a group without members; its processes are killed at the end of the block."""
    group = JavaGroup(member_command(classpath), folder, topic, configs)
    try:
        yield group
    finally:
        group.end()

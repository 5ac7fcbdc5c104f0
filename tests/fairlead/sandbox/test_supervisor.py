"""The supervisor with real processes that end, are killed, or ignore signals."""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from fairlead.errors import SandboxError
from fairlead.sandbox import supervisor
from fairlead.sandbox.part_states import PartState, part_states, published
from fairlead.sandbox.recorded_processes import still_running
from fairlead.sandbox.supervisor import Part, Supervisor
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.long

SLEEPS = "import time; print('asleep', flush=True); time.sleep(600)"
#: Program that starts another process; both ignore Ctrl-C.
STUBBORN = f"""
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {SLEEPS!r}])
{SLEEPS}
"""
FAILS = "import sys; print('no such module'); sys.exit(3)"
#: Program that listens at a Unix socket as soon as a file exists.
LISTENS = """
import pathlib, socket, sys, time
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)  # clock: rests before it looks again
with socket.socket(socket.AF_UNIX) as listener:
    pathlib.Path(sys.argv[2]).unlink(missing_ok=True)
    listener.bind(sys.argv[2])
    listener.listen()
    time.sleep(600)
"""

Told = tuple[Supervisor, list[str], io.StringIO]


@contextmanager
def supervised(state_dir: Path, *parts: Part) -> Iterator[Told]:
    """Keep parts (processes) running; yield the supervisor, its messages, and the parts' log."""
    lines: list[str] = []
    log = io.StringIO()
    with Supervisor(
        parts, log=log, tell=lines.append, state_dir=state_dir, environment=os.environ
    ) as running:
        yield running, lines, log


def python(name: str, program: str, *words: str) -> Part:
    """Return a part that is a Python program."""
    return Part(name, (sys.executable, "-c", program, *words))


def soon(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    eventually(condition, "it happens")


def test_states_of_parts_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes can read which parts are ready, starting, waiting, or ended."""
    may_listen, address = tmp_path / "may listen", tmp_path / "socket"
    server = Part(
        "server", (sys.executable, "-c", LISTENS, str(may_listen), str(address)), answers=address
    )
    client = Part("client", (sys.executable, "-c", SLEEPS), after="server")

    def missing() -> dict[str, str]:
        return {name: state.missing for name, state in part_states(tmp_path).items()}

    seen: list[dict[str, str]] = []

    @contextmanager
    def noted(folder: Path) -> Iterator[Callable[[Mapping[str, PartState]], None]]:
        with published(folder) as publish:

            def note(states: Mapping[str, PartState]) -> None:
                publish(states)
                seen.append(missing())

            yield note

    monkeypatch.setattr(supervisor, "published", noted)
    with supervised(tmp_path, client, server) as (running, _, _):
        soon(lambda: missing() == {"client": "waits for server", "server": "is starting"})
        may_listen.touch()
        running.wait_ready("client", "server")
        soon(lambda: missing() == {"client": "", "server": ""})
        first = part_states(tmp_path)
        may_listen.unlink()
        (pid,) = (part.pid for part in still_running(tmp_path) if part.name == "server")
        os.kill(pid, signal.SIGSEGV)
        ended = "has ended (by signal SIGSEGV): it is started again in 1 s"
        soon(lambda: {"client": "", "server": ended} in seen)
        soon(lambda: missing() == {"client": "", "server": "is starting"})
        may_listen.touch()
        soon(lambda: missing() == {"client": "", "server": ""})
        second = part_states(tmp_path)
    assert first["client"] == second["client"]
    assert first["server"].since < second["server"].since
    assert part_states(tmp_path) == {}


def test_parts_are_restarted_without_a_log(tmp_path: Path) -> None:
    """Parts restart even if the log's disk is full or the terminal is closed."""
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        raise OSError("no space left on device")

    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError("no space left on device")

    (tmp_path / "running").touch()  # a file, not a folder, so processes cannot be recorded
    noted = tmp_path / "noted"
    part = python(
        "sleeper",
        "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()} '); time.sleep(600)",
        str(noted),
    )

    def pids() -> list[int]:
        return [int(pid) for pid in noted.read_text().split()] if noted.exists() else []

    with Supervisor([part], log=Full(), tell=tell, state_dir=tmp_path, environment=os.environ):
        soon(pids)
        os.kill(pids()[0], signal.SIGKILL)
        soon(lambda: len(pids()) == 2)
    assert lines == ["sleeper has ended (by signal SIGKILL): it is started again in 1 s"]


def test_parts_that_ignore_ctrl_c_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "GRACE_S", 0.5)
    monkeypatch.setattr(supervisor, "_KILLED_S", PATIENCE_S)
    with supervised(tmp_path, python("mule", STUBBORN)) as (_, lines, log):
        soon(lambda: log.getvalue().count("asleep") == 2 and still_running(tmp_path))
        (mule,) = still_running(tmp_path)
        family = [psutil.Process(mule.pid), *psutil.Process(mule.pid).children()]
    assert len(family) == 2
    assert not any(
        process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family
    )
    assert lines == []


def test_command_that_ends_is_not_run_again(tmp_path: Path) -> None:
    """The part is ready once its command has ended with status 0."""
    noted = tmp_path / "noted"
    once = (sys.executable, "-c", "import sys; open(sys.argv[1], 'a').write('x')", str(noted))
    later = Part("later", (sys.executable, "-c", SLEEPS), after="once")
    with supervised(tmp_path, Part("once", once, ends=True), later) as (running, lines, _):
        running.wait_ready("later")
        assert noted.read_text() == "x"
    assert lines == []


def test_error_of_a_part_that_cannot_start_has_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After three failed attempts, the error has the end of the part's output."""
    monkeypatch.setattr(supervisor, "_FIRST_WAIT_S", 0.01)
    part = Part("broken", (sys.executable, "-c", FAILS), answers="http://127.0.0.1:1/")
    with (
        pytest.raises(SandboxError, match=r"broken ended 3 times .*\n  no such module"),
        supervised(tmp_path, part) as (running, _, _),
    ):
        running.wait_ready("broken")


def test_a_killed_part_is_restarted_with_a_message(tmp_path: Path) -> None:
    """The new process is recorded, and its output is in the log."""
    with supervised(tmp_path, python("sleeper", SLEEPS)) as (running, lines, log):
        running.wait_ready("sleeper")
        soon(lambda: "sleeper   | asleep" in log.getvalue() and still_running(tmp_path))
        (first,) = still_running(tmp_path)
        os.kill(first.pid, signal.SIGKILL)
        soon(lambda: log.getvalue().count("sleeper   | asleep") == 2 and still_running(tmp_path))
        (second,) = still_running(tmp_path)
        assert (second.name, second.pid != first.pid) == ("sleeper", True)
    assert lines == ["sleeper has ended (by signal SIGKILL): it is started again in 1 s"]
    assert still_running(tmp_path) == []

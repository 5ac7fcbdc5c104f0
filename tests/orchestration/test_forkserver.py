"""The fork server: a forked command is what the same command in a process of its own would be."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Barrier

import psutil
import pytest

from orchestration.forkserver import Forked, socket_path
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.long

FORKED = "tests.orchestration.forked"
ASK = """
import sys
from orchestration import forkserver
sys.exit(forkserver.run(sys.argv[1], sys.argv[2:]))
"""


@contextmanager
def serving(home: Path, *modules: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a fork server in a Dagster home."""
    command = [sys.executable, "-m", "orchestration.forkserver", *modules]
    environment = {**os.environ, "DAGSTER_HOME": str(home)}
    with (home / "forkserver.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            eventually(socket_path(home).exists, "the fork server listens")
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):  # where a test has failed, a command runs
                process.wait(PATIENCE_S)
            process.kill()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a Dagster home with a fork server that has imported little."""
    folder = tmp_path_factory.mktemp("home")
    with serving(folder, FORKED):
        yield folder


def asking(home: Path, *words: str, **environment: str) -> "subprocess.Popen[str]":
    """Have a command run by the server of a home."""
    return subprocess.Popen(
        [sys.executable, "-c", ASK, *words],
        env={**os.environ, "DAGSTER_HOME": str(home), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_forked_command_has_the_surroundings_of_whoever_asks(home: Path) -> None:
    """Words, folder, environment, input, both outputs, exit code; its parent is the server."""
    asked = asking(home, f"{FORKED}:tell", "3", "two words", TOLD="by the test")
    said, errors = asked.communicate("typed", timeout=300)
    told = json.loads(said)
    assert told.pop("parent") not in {asked.pid, os.getpid()}
    assert told == {
        "words": ["3", "two words"],
        "folder": str(Path.cwd()),
        "environment": "by the test",
        "input": "typed",
    }
    assert errors == "to standard error\n"
    assert asked.returncode == 3


@pytest.mark.parametrize(("function", "code"), [("fail", 1), ("die", 128 + signal.SIGKILL)])
def test_a_forked_command_that_fails_says_so(home: Path, function: str, code: int) -> None:
    """An exception and a signal are exit codes, as a shell has them."""
    asked = asking(home, f"{FORKED}:{function}")
    _, errors = asked.communicate(timeout=300)
    assert asked.returncode == code
    assert ("RuntimeError: as a test wants" in errors) == (function == "fail")


def test_ctrl_c_reaches_the_forked_command(home: Path) -> None:
    """Who asks is interrupted: the command is, and ends as it likes."""
    asked = asking(home, f"{FORKED}:wait")
    assert asked.stdout is not None
    assert asked.stdout.readline() == "waiting\n"
    asked.send_signal(signal.SIGINT)
    said, errors = asked.communicate(timeout=300)
    assert (said, asked.returncode) == ("interrupted\n", 5), errors


def test_a_command_ends_with_whoever_asked(home: Path) -> None:
    """Who is killed cannot pass that on: what it had asked for ends all the same."""
    asked = asking(home, f"{FORKED}:wait_named")
    assert asked.stdout is not None
    pid = int(asked.stdout.readline())
    asked.kill()
    asked.communicate()
    eventually(lambda: not psutil.pid_exists(pid), "it ends")


def test_commands_run_side_by_side(home: Path) -> None:
    """One that waits holds nobody up."""
    waiting = asking(home, f"{FORKED}:wait")
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "waiting\n"
    asked = asking(home, f"{FORKED}:tell", "0")
    asked.communicate("", timeout=300)
    assert (asked.returncode, waiting.poll()) == (0, None)
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=300)


def test_who_connects_and_says_nothing_holds_nobody_up(home: Path) -> None:
    """Nor does one who stops in the middle of a question, for longer than a moment."""
    with ExitStack() as stack:
        for said in (b"", b"{"):
            silent = stack.enter_context(socket.socket(socket.AF_UNIX))
            silent.connect(str(socket_path(home)))
            if said:
                silent.sendall(said)
        asked = asking(home, f"{FORKED}:fail")
        asked.communicate(timeout=PATIENCE_S)
        assert asked.returncode == 1


def test_nobody_forks_without_a_server(tmp_path: Path) -> None:
    """Nothing has run then; nor where a server was killed and left its socket."""
    program = "from orchestration import forkserver; print(forkserver.run('builtins:print', []))"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path)}
    answers = [subprocess.check_output(command, env=environment, text=True)]
    with serving(tmp_path, "json") as server:
        server.kill()
        server.wait()
        assert socket_path(tmp_path).exists()
        answers.append(subprocess.check_output(command, env=environment, text=True))
    assert answers == ["None\n", "None\n"]
    with serving(tmp_path, "json"):  # a socket that was left holds no new one up
        eventually(
            lambda: subprocess.check_output(command, env=environment, text=True) == "\n0\n",
            "the new one answers",
        )


def test_a_server_whose_sources_have_changed_renews_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds that is not served with old code; a moment later with the new one."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    source = tmp_path / "written_anew.py"
    source.write_text("def tell(): print('old')\n")
    with serving(tmp_path, "written_anew"):

        def told() -> str:
            asked = asking(tmp_path, "written_anew:tell")
            return asked.communicate(timeout=300)[0]

        assert told() == "old\n"
        source.write_text("def tell(): print('a new one')\n")
        assert told() == ""
        eventually(lambda: told() == "a new one\n", "the new source is served")


def test_two_servers_of_a_home_are_one_too_many(home: Path) -> None:
    """The second says where the first listens."""
    done = subprocess.run(
        [sys.executable, "-m", "orchestration.forkserver", "json"],
        env={**os.environ, "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert f"a fork server listens at {socket_path(home)} already" in done.stderr
    assert (socket_path(home).stat().st_mode & 0o777) == 0o600


def test_who_asks_keeps_the_mask_of_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of a daemon ask at once: neither sees, nor leaves, a mask of the other's."""
    meet, setting = Barrier(2, timeout=PATIENCE_S), os.umask

    def set_together(mask: int) -> int:
        before = setting(mask)
        meet.wait()
        return before

    mask = setting(0o027)
    monkeypatch.setattr(os, "umask", set_together)
    try:
        with ThreadPoolExecutor(2) as threads:
            asked = [threads.submit(Forked.ask, home, f"{FORKED}:masked", []) for _ in range(2)]
            forked = [future.result() for future in asked]
        told = []
        for process in forked:
            assert process is not None
            assert process.go()
            told.append(process.wait())
        assert told == [0o027, 0o027]
        assert setting(mask) == 0o027
    finally:
        setting(mask)


def test_who_gives_up_has_nothing_run(home: Path, tmp_path: Path) -> None:
    """A process that was forked waits until it is told to go; else it ends, having done nothing."""
    program = f"""
import os
from orchestration.forkserver import Forked
os.chdir({str(tmp_path)!r})
forked = Forked.ask({str(home)!r}, "{FORKED}:note", [])
print(forked.pid)
if {{go}}: print(forked.go(), forked.wait())
"""
    command = [sys.executable, "-c"]
    said = subprocess.check_output([*command, program.format(go=False)], text=True, timeout=300)
    eventually(lambda: not psutil.pid_exists(int(said)), "the process that waited ends")
    assert list(tmp_path.iterdir()) == []
    said = subprocess.check_output([*command, program.format(go=True)], text=True, timeout=300)
    assert said.splitlines()[1:] == ["True 0"]
    assert [path.name for path in tmp_path.iterdir()] == ["noted", "noted at exit"]


def test_a_server_refuses_what_would_be_something_else(home: Path) -> None:
    """Code that it has not imported, or from elsewhere: nothing is run, and the asker goes on."""
    program = f"""
from orchestration.forkserver import Forked
for module, folder in ((None, None), ("{FORKED}", None), ("other", None), (None, "/elsewhere")):
    print(Forked.ask({str(home)!r}, "{FORKED}:fail", [], module=module, folder=folder) is not None)
"""
    said = subprocess.check_output([sys.executable, "-c", program], text=True, timeout=300)
    assert said.split() == ["True", "True", "False", "False"]


def test_signals_that_are_ignored_stay_so(home: Path) -> None:
    """As `nohup` wants it: who hangs up ends nothing."""
    program = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {ASK}".replace(
        "; \n", "\n"
    )
    asked = subprocess.Popen(
        [sys.executable, "-c", program, f"{FORKED}:wait"],
        env={**os.environ, "DAGSTER_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asked.stdout is not None
    assert asked.stdout.readline() == "waiting\n"
    asked.send_signal(signal.SIGHUP)
    asked.send_signal(signal.SIGINT)
    said, _ = asked.communicate(timeout=300)
    assert (said, asked.returncode) == ("interrupted\n", 5)


def test_a_server_that_is_to_end_waits_for_what_runs(tmp_path: Path) -> None:
    """Whoever asked is told how it ended; nobody else is served meanwhile."""
    with serving(tmp_path, FORKED) as server:
        asked = asking(tmp_path, f"{FORKED}:wait")
        assert asked.stdout is not None
        assert asked.stdout.readline() == "waiting\n"
        server.terminate()
        late = asking(tmp_path, f"{FORKED}:tell", "0")
        assert late.communicate("", timeout=300)[0] == ""
        assert server.poll() is None
        asked.send_signal(signal.SIGINT)
        said, _ = asked.communicate(timeout=300)
        assert (said, asked.returncode, server.wait(PATIENCE_S)) == ("interrupted\n", 5, 0)

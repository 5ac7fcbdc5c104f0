"""The warm Spark server: a process that serves many runs, but only for the user it runs as."""

import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from pyspark.sql.connect.proto import ConfigRequest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
from typer.testing import CliRunner, Result

from fairlead.sandbox import processes
from fairlead.sandbox.spark import SparkServer
from fairlead.settings import SparkSettings
from fairlead.spark import session
from fairlead.spark.warm import WarmServer, made_of
from fairlead.surfaces.cli import app
from tests.programs import FAIRLEAD, ended
from tests.waiting import PATIENCE_S

AUTO = SparkSettings()
#: Program for a separate process, because PySpark allows one kind of session per process.
PROGRAM = """
import json
from assets.resources import SparkResource
from fairlead.sandbox.spark import SparkServer
from fairlead.settings import load_settings

settings = load_settings()
server = SparkServer(settings.state_dir, settings.spark)
told, pids = [], []

for attempt in range(2):
    session = SparkResource().session(told.append)
    found = server.process()
    pids.append(found.pid)
    if attempt == 0:
        found.kill()
        found.wait()
counted = session.range(3).count()
print(json.dumps({"counted": counted, "pids": pids, "told": told}))
"""


def status(state_dir: Path) -> Result:
    """Run `fairlead spark status` for a state directory."""
    return CliRunner(env={"FAIRLEAD_STATE_DIR": str(state_dir)}).invoke(app, ["spark", "status"])


@contextmanager
def decoy(state_dir: Path) -> Iterator[psutil.Process]:
    """Run a process whose command line looks like a server for this state directory."""
    mark = f"fairlead:{state_dir / 'spark'}"
    process = processes.spawn(
        [sys.executable, "-c", "import time; time.sleep(600)", mark], log=Path(os.devnull)
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the state directory of a running warm Spark; its name contains a space."""
    folder = tmp_path_factory.mktemp("warm spark")
    try:
        # Use a separate process, because PySpark allows one kind of session per process.
        ended(FAIRLEAD, "spark", "up", env={**os.environ, "FAIRLEAD_STATE_DIR": str(folder)})
        yield folder
    finally:
        SparkServer(folder, AUTO).stop()


@pytest.fixture
def server(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> WarmServer:
    """Return the running server; status requests may take longer, for busy machines."""
    monkeypatch.setattr(session, "ANSWERS_WITHIN_S", PATIENCE_S)
    found = SparkServer(state_dir, AUTO).running()
    assert found is not None
    return found


@pytest.mark.spark
def test_server_is_started_once_and_found_again(state_dir: Path, server: WarmServer) -> None:
    """A second start and a run reuse the server, unless they have other Spark properties."""
    assert SparkServer(state_dir, AUTO).start() == server
    assert SparkServer(state_dir, AUTO).for_run(pytest.fail) == server
    result = status(state_dir)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"localhost:{server.port}" in result.stdout
    assert f"{server.pid}, since 2" in result.stdout
    other = SparkServer(state_dir, SparkSettings(properties={"spark.driver.memory": "2g"}))
    lines: list[str] = []
    assert other.for_run(lines.append) is None
    assert lines == [
        "Spark was started with other code or properties: `fairlead spark up` replaces it"
    ]
    elsewhere = SparkServer(state_dir, SparkSettings(master="local[1]"))
    assert elsewhere.for_run(pytest.fail) is None


def answer_without_secret(port: int) -> bytes:
    """Send an RPC request (type, number, length, body) to Spark; return the response."""
    body = b"anything"
    request = struct.pack(">bqi", 3, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(struct.pack(">q", 8 + len(request)) + request)
        return connection.recv(4096)


@pytest.mark.spark
def test_token_is_private_and_required(state_dir: Path, server: WarmServer) -> None:
    """The token is only in a private file, and requests without it are refused."""
    record = state_dir / "spark" / "server.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    assert server.token in record.read_text()
    assert server.token not in repr(server)
    process = psutil.Process(server.pid)
    assert server.token not in " ".join(process.cmdline())
    assert not [*record.parent.glob("*.properties")]
    listening = [
        connection.laddr
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert {connection.ip.removeprefix("::ffff:") for connection in listening} == {"127.0.0.1"}
    rpc = [
        answer_without_secret(connection.port)
        for connection in listening
        if connection.port != server.port
    ]
    assert len(rpc) >= 2  # ports of the driver and of the block manager
    assert all(b"Expected SaslMessage" in answer for answer in rpc), rpc
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub: Any = SparkConnectServiceStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.RpcError) as refused:
            stub.Config(ConfigRequest(session_id=server.session_id), timeout=PATIENCE_S)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.spark
@pytest.mark.test_long(
    guarded_by="tests/fairlead/sandbox/test_spark.py::test_server_is_started_once_and_found_again"
)
def test_step_is_repeated_on_a_new_server(state_dir: Path) -> None:
    """If the server was killed, the second attempt of a step starts a new server."""
    environment = {**os.environ, "FAIRLEAD_STATE_DIR": str(state_dir)}
    done = ended(sys.executable, "-c", PROGRAM, env=environment)
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["counted"] == 3
    assert len(set(seen["pids"])) == 2
    assert [line for line in seen["told"] if "Found" not in line] == [
        "Spark has ended: starting it again",
    ]


def test_stale_record_does_not_match_another_process(tmp_path: Path) -> None:
    """A process that now has the pid of an ended server is not used as server, and not ended."""
    (tmp_path / "spark").mkdir()
    with decoy(tmp_path / "other") as process:
        stale = WarmServer(1, "", "", process.pid, 0.0, made_of({}))
        stale.record(tmp_path)
        server = SparkServer(tmp_path, AUTO)
        assert server.running() is None
        server.stop()
        assert not processes.ended(process)
    assert WarmServer.recorded(tmp_path) is None
    result = status(tmp_path)
    assert (result.exit_code, result.stdout) == (1, "not running\n")

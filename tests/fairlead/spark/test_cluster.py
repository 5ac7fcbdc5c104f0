"""A standalone Spark master with two workers: executors are other processes."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from benchmarks.recorded import Size, snapshot
from fairlead.spark.planning import SUMMARY
from fairlead.spark.warehouse import Warehouse
from tests.fairlead.followers.helpers import eventually
from tests.fairlead.spark.on_cluster import plan

pytestmark = pytest.mark.spark
SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def daemon(kind: str, log: Path, *arguments: str) -> Iterator[None]:
    """Run a Spark daemon of the PySpark package."""
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
    common = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *common, *arguments],
            env=os.environ | LOOPBACK,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Start a master and two workers of one core each; return the master's URL."""

    def said(name: str, what: str) -> list[str]:
        return re.findall(what, (tmp_path / name).read_text())

    with ExitStack() as daemons:
        daemons.enter_context(daemon("master.Master", tmp_path / "master"))
        address = r"Starting Spark master at (spark://\S+)"
        eventually(lambda: bool(said("master", address)), "the master listens")
        (url,) = said("master", address)
        for worker in ("worker-1", "worker-2"):
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / worker))
            log = tmp_path / f"{worker}.log"
            daemons.enter_context(daemon("worker.Worker", log, *arguments, url))
        registered = "Registering worker"
        eventually(lambda: len(said("master", registered)) == 2, "both workers register")
        yield url


@pytest.mark.usefixtures("spark")
def test_fleet_is_planned_on_a_cluster_as_in_this_process(master: str, tmp_path: Path) -> None:
    """Settings alone move the work to two executors, and what comes out is the same."""
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    fleet = snapshot([Size(groups=12, partitions=20, members=3), Size(1, 2_000, 10)])
    warehouse.write_snapshot(fleet)
    properties = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "4",
    }
    answer = tmp_path / "answer.json"
    module = "tests.fairlead.spark.on_cluster"
    subprocess.run(
        [sys.executable, "-m", module, fleet.snapshot_id, str(answer)],
        env=os.environ
        | LOOPBACK
        | {
            "FAIRLEAD_WAREHOUSE": str(tmp_path / "warehouse"),
            "FAIRLEAD_SPARK__MASTER": master,
            "FAIRLEAD_SPARK__PROPERTIES": json.dumps(properties),
        },
        check=True,
    )
    assert len(json.loads(answer.read_text())) == 2

    on_cluster = warehouse.load("candidates", fleet.snapshot_id)
    plan(warehouse, fleet.snapshot_id)
    here = warehouse.load("candidates", fleet.snapshot_id)
    order = [("group", "ascending"), ("assignor", "ascending")]
    columns = [*SUMMARY.names, "owner"]
    assert on_cluster.sort_by(order).select(columns) == here.sort_by(order).select(columns)
    assert here.num_rows == 13 * 3
    assert not any(here["error"].to_pylist())

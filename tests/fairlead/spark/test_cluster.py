"""Planning on a Spark Connect server."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from benchmarks.recorded import Size, snapshot
from fairlead.spark.session import JAVA_OPTIONS
from fairlead.spark.warehouse import Warehouse
from tests.fairlead.spark.on_cluster import plan
from tests.programs import ended
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.spark
SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def daemon(log: Path, *command: str) -> Iterator[None]:
    """Run a Spark daemon of the PySpark package."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *command],
            env=os.environ | LOOPBACK,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    """Start a Spark Connect server with two cores; return its address for clients."""
    log = tmp_path / "connect"
    command = (
        "org.apache.spark.deploy.SparkSubmit",
        *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.connect.grpc.binding.port=0"),
        *("--driver-java-options", JAVA_OPTIONS),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        "spark-internal",
    )
    with daemon(log, *command):
        found: list[str] = []

        def listens() -> bool:
            found[:] = re.findall(r"Spark Connect server started at: \S+?:(\d+)", log.read_text())
            return bool(found)

        eventually(listens, "the Spark Connect server listens")
        yield f"sc://127.0.0.1:{found[0]}"


@pytest.mark.usefixtures("spark")
def test_fleet_is_planned_through_spark_connect(connect_server: str, tmp_path: Path) -> None:
    """A Spark Connect server computes the same candidates as a Spark session in this process."""
    properties = {"spark.sql.shuffle.partitions": "4"}
    planned_elsewhere(connect_server, properties, tmp_path)


def planned_elsewhere(master: str, properties: dict[str, str], folder: Path) -> None:
    """Plan a fleet on the server and in this process, and compare the results."""
    warehouse = Warehouse(str(folder / "warehouse"))
    fleet = snapshot([Size(groups=12, partitions=20, members=3), Size(1, 2_000, 10)])
    warehouse.write_snapshot(fleet, {})
    module = "tests.fairlead.spark.on_cluster"
    given = {
        "FAIRLEAD_WAREHOUSE": str(folder / "warehouse"),
        "FAIRLEAD_SPARK__MASTER": master,
        "FAIRLEAD_SPARK__PROPERTIES": json.dumps(properties),
    }
    ended(sys.executable, "-m", module, fleet.snapshot_id, env=os.environ | LOOPBACK | given)
    there = warehouse.load("candidates", fleet.snapshot_id)
    plan(warehouse, fleet.snapshot_id)
    candidates = warehouse.load("candidates", fleet.snapshot_id)
    order = [("group", "ascending"), ("assignor", "ascending")]
    columns = [
        "group",
        "assignor",
        "error",
        "lag_max",
        "moved",
        "forecast_time_lag_s",
        "outcome",
        "owner",
    ]
    assert there.sort_by(order).select(columns) == candidates.sort_by(order).select(columns)
    assert candidates.num_rows == 13 * 3
    assert not any(candidates["error"].to_pylist())

"""The Spark resource: the warm Spark that went away costs a run one more attempt."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.sandbox.spark import SparkServer
from fairlead.settings import SparkSettings
from fairlead.spark.warm import WarmServer, made_of

#: Run in a process of its own: PySpark has one kind of session in each.
PROGRAM = """
import json
from assets.resources import SparkResource
from fairlead.sandbox.spark import SparkServer
from fairlead.settings import load_settings

settings = load_settings()
server = SparkServer(settings.state_dir, settings.spark)
told, pids = [], []

def work(session):
    pids.append(server.process().pid)
    if len(pids) == 1:
        server.process().kill()
    return session.range(3).count()

counted = SparkResource().compute(told.append, work)
print(json.dumps({"counted": counted, "pids": pids, "told": told}))
"""


@pytest.mark.spark
def test_run_goes_on_where_the_warm_spark_is_killed_in_its_middle(tmp_path: Path) -> None:
    """It starts again what somebody wanted, at first as after the kill, and does its work twice."""
    (tmp_path / "spark").mkdir()
    gone = WarmServer(1, "", "", pid=2**22 + 1, started_at=0.0, made_of=made_of({}))
    gone.record(tmp_path)  # as after the machine's restart
    try:
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "FAIRLEAD_STATE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    finally:
        SparkServer(tmp_path, SparkSettings()).stop()
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout.splitlines()[-1])
    assert said["counted"] == 3
    assert len(set(said["pids"])) == 2
    again = "The warm Spark has gone away: starting it again"
    middle = "Spark went away in the middle of it: doing it once more"
    assert [line for line in said["told"] if "Found" not in line] == [again, middle, again]

"""Planning is turned on through a real Dagster webserver."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorStatus

from fairlead.surfaces.pipeline import CHECKOUT, dagster_yaml
from fairlead.surfaces.up.planning_switch import SENSOR, planning
from tests.ui.running import free_port

pytestmark = pytest.mark.long


def test_planning_is_off_until_it_is_turned_on(tmp_path: Path) -> None:
    """Planning is off in a new Dagster instance; Dagster stores that it has been turned on."""
    (tmp_path / "dagster.yaml").write_text(dagster_yaml())
    port = free_port()
    command = [
        *(sys.executable, "-m", "dagster_webserver", "-w", str(CHECKOUT / "workspace.yaml")),
        *("-h", "127.0.0.1", "-p", str(port)),
    ]
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path)}
    url = f"http://127.0.0.1:{port}"
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            found = [planning(url, turn_on=on) for on in (False, True, False)]
        finally:
            process.terminate()
    assert found == [[], [SENSOR], [SENSOR]]
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        (state,) = instance.all_instigator_state()
    assert (state.instigator_name, state.status) == (SENSOR, InstigatorStatus.RUNNING)

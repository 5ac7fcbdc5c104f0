"""Recordings of simulated groups whose members have known speeds."""

from datetime import timedelta
from typing import Any

import pyarrow as pa

from benchmarks.simulation.controllers import ByAssignor
from benchmarks.simulation.loop import ScenarioRun, run
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.controllers import START, Moment
from fairlead.simulation.loop import Cadence
from fairlead.simulation.world import Int32
from tests.samples import samples


class _Recorder(ByAssignor):
    """A controller that makes no plans; it records a sample whenever a plan could be made."""

    def __init__(self) -> None:
        super().__init__("range")
        self.rows: list[dict[str, Any]] = []

    def decide(self, moment: Moment) -> Int32 | None:
        series, problem = moment.series(), moment.problem
        self.rows.append(
            {
                "at": START + timedelta(seconds=moment.at - START.timestamp()),
                "topics": problem.topics,
                "counts": problem.partition_counts.tolist(),
                "begin": series.begin[-1].tolist(),
                "end": series.end[-1].tolist(),
                "committed": series.committed[-1].tolist(),
                "members": problem.members,
                "owner": problem.owner.tolist(),
            }
        )
        return None


def recorded(
    scenario: Scenario, *, hours: float, every_s: float = 300.0
) -> tuple[pa.Table, ScenarioRun]:
    """Simulate a group whose assignor is `range`; return its samples and the run's results."""
    recorder = _Recorder()
    ran = run(ScenarioWorld.of(scenario, seed=2, hours=hours), recorder, Cadence(60.0, every_s))
    return samples(*recorder.rows), ran

"""Simulated groups as the planner would have recorded them, of which the truth is known."""

from datetime import timedelta

import numpy as np

from benchmarks.simulation.controllers import ByAssignor
from benchmarks.simulation.loop import ScenarioRun, run
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.controllers import START, Moment
from fairlead.simulation.loop import Cadence
from fairlead.simulation.world import Int32
from fairlead.surfaces.backtest.recording import Snapshot


class _Recorder(ByAssignor):
    """Writes a snapshot at each decision."""

    def __init__(self) -> None:
        super().__init__("range")
        self.snapshots: list[Snapshot] = []

    def decide(self, moment: Moment) -> Int32 | None:
        looks, problem = moment.looks(), moment.problem
        cuts = problem.topic_offsets[1:-1]
        begin, end, committed = (
            dict(zip(problem.topics, np.split(values[-1], cuts), strict=True))
            for values in (looks.begin, looks.end, looks.committed)
        )
        owned: dict[str, dict[str, list[int]]] = {name: {} for name in problem.members}
        for index, member in enumerate(problem.owner.tolist()):
            topic, number = problem.partition_name(index)
            if member >= 0:
                owned[problem.members[member]].setdefault(topic, []).append(number)
        at = START + timedelta(seconds=moment.at - START.timestamp())
        members = dict.fromkeys(problem.members, problem.topics)
        self.snapshots.append(Snapshot(at, members, owned, begin, end, committed))
        return None


def recorded(
    scenario: Scenario, *, hours: float, every_s: float = 300.0
) -> tuple[list[Snapshot], ScenarioRun]:
    """Let a group run under `range`, and record it."""
    recorder = _Recorder()
    ran = run(ScenarioWorld.of(scenario, seed=2, hours=hours), recorder, Cadence(60.0, every_s))
    return recorder.snapshots, ran

"""The closed loop of a scenario: oracles get the true state, and plans can be rolled back.

This module adds both to the loop in `fairlead.simulation.loop`. `run_figures` measures a run.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.commits import ScenarioCommits
from benchmarks.simulation.controllers import ReadsReports, ScenarioMoment, TakesBack, Truth
from benchmarks.simulation.oracle import Oracle
from benchmarks.simulation.reading import ScenarioReading
from benchmarks.simulation.reports import SimulatedReports
from benchmarks.simulation.traffic import DAY_S
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.reported_work import ReportSeries
from fairlead.domain.analysis.sample_series import NONE, SampleSeries
from fairlead.simulation.controllers import Controller
from fairlead.simulation.loop import Cadence, Handover, Loop, Run
from fairlead.simulation.sample_history import OLDEST_S
from fairlead.simulation.world import Int32, Int64, Mask


@dataclass(frozen=True)
class TakenBack(Handover):
    """The change of owners when a plan is rolled back."""


@dataclass(frozen=True, eq=False)
class ScenarioRun(Run):
    """The record of a run in a scenario."""

    world: ScenarioWorld


def run(
    world: ScenarioWorld, controller: Controller, cadence: Cadence | None = None
) -> ScenarioRun:
    """Run a controller through a whole scenario.

    Everything is deterministic: equal worlds and controllers give equal runs.
    """
    return _ScenarioLoop(world, controller, cadence or Cadence()).run()


class _ScenarioLoop(Loop):
    _world: ScenarioWorld

    def __init__(self, world: ScenarioWorld, controller: Controller, cadence: Cadence) -> None:
        reading = ScenarioReading(world)
        reads = isinstance(controller, ReadsReports) and controller.reports
        self._reports = SimulatedReports(reading) if reads else None
        super().__init__(controller, cadence, reading, ScenarioCommits(reading, self._reports))

    def run(self) -> ScenarioRun:
        return ScenarioRun(**vars(super().run()))

    def _decisions(self) -> set[int]:
        foresees = isinstance(self._controller, Oracle) and self._controller.foresees
        return super()._decisions() | ({0} if foresees else set())

    def _sample(self, step: int, end: Int64, owner: Int32) -> None:
        """Take a sample, without the values that `Misses` removes; let the controller roll back."""
        world = self._world
        if world.scenario.markers:
            end = end + (end > 0)
        end = np.where(world.unseen[step], NONE, end)
        super()._sample(step, end, np.where(world.ownerless[step], np.int32(NONE), owner))
        if self._reports is not None:
            self._reports.sample(step, step * world.step_s - OLDEST_S)
        if isinstance(self._controller, TakesBack):
            before = self._controller.take_back(self._moment(step))
            if before is not None:
                self._hand_over(step, self._group.outside(before), planned=False)
                self._handovers[-1] = TakenBack(**vars(self._handovers[-1]))

    def _moment(self, step: int) -> ScenarioMoment:
        return ScenarioMoment(
            **vars(super()._moment(step)), truth=lambda: self._truth(step), reports=self._series
        )

    def _series(self, series: SampleSeries) -> ReportSeries | None:
        if self._reports is None:
            return None
        return self._reports.series(series.at - self._began, self._group.partitions, series.members)

    def _truth(self, step: int) -> Truth:
        world, group = self._world, self._group
        before = max(step - round(self._cadence.sample_s / world.step_s), 0)
        day = world.work[step : step + round(DAY_S / world.step_s)]
        peak = step + int(day.sum(axis=1).argmax())
        waiting = np.where(np.isinf(world.limits[step]), self._reading.waiting[step], 0.0)
        return Truth(
            rates=world.work[before, group.partitions],
            peak_rates=world.work[peak, group.partitions],
            waiting=(waiting * world.costs[step])[group.partitions],
            speeds=world.speeds[step, group.members],
        )

    def _paused(self, step: int, taken: Mask) -> Mask:
        # At the first step, no partition has been read, so none pauses.
        return self._world.exists[step] if self._world.scenario.eager and step else taken

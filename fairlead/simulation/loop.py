"""The closed loop: a controller's decisions affect the samples that its next decisions use.

Belongs here: the order of events, and the result of a run. Belongs elsewhere: figures computed from
the result (`fairlead.surfaces.backtest`).
"""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.commits import SimulatedCommits
from fairlead.simulation.consumption import Reading
from fairlead.simulation.controllers import START, Controller, Moment
from fairlead.simulation.membership import PresentMembers
from fairlead.simulation.sample_history import SampleHistory
from fairlead.simulation.world import Float64, Int32, Int64, Mask, World


@dataclass(frozen=True)
class Cadence:
    """Intervals of samples and decisions, and downtime of moved partitions, in seconds."""

    sample_s: float = 60.0
    decision_s: float = 900.0
    move_downtime_s: float = 10.0


@dataclass(frozen=True)
class Handover:
    """A change of owners, by a plan or a rebalance.

    Parameters
    ----------
    at_s
        Seconds from the start.
    planned
        Whether a plan caused the change. If not, a change of members or partitions caused it.
    moved
        Number of partitions that were taken from an owner that was still present.
    paused
        Number of partitions that were paused.
    """

    at_s: float
    planned: bool
    moved: int
    paused: int


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a simulation.

    Parameters
    ----------
    world, cadence
        The world, and the intervals of samples and decisions.
    waiting
        Number of records that wait at the start of each step and at the end, float64 of shape
        (N + 1, P).
    handovers
        Plans and rebalances, in order of time.
    owners
        For each assignment: its start in seconds from the start of the simulation, and the owner of
        each partition, int32 of shape (P,).
    """

    world: World
    cadence: Cadence
    waiting: Float64
    handovers: tuple[Handover, ...]
    owners: tuple[tuple[float, Int32], ...]

    def time_lags(self) -> Float64:
        """Return the time lag: how long ago the end of the log was at the reader's position.

        Returns
        -------
        Seconds, float64 of shape (N + 1, P); 0 if no records wait.
        """
        world = self.world
        positions = world.ends - self.waiting
        now = np.arange(world.steps + 1)
        behind = np.zeros(positions.shape)
        for partition in np.flatnonzero((self.waiting > 0).any(axis=0)).tolist():
            ends = world.ends[:, partition]
            unread = np.searchsorted(ends, positions[:, partition], side="right")
            steps = np.where(self.waiting[:, partition] > 0, now - unread + 1, 0)
            behind[:, partition] = np.maximum(steps, 0) * world.step_s
        return behind


def run(world: World, controller: Controller, cadence: Cadence | None = None) -> Run:
    """Run a world with a controller from start to end.

    The events of a step have this order: the group changes, a sample is taken, the controller
    decides. Plans take effect immediately. The simulation is deterministic: equal worlds and
    controllers give equal runs.
    """
    reading = Reading(world)
    return Loop(controller, cadence or Cadence(), reading, SimulatedCommits(reading)).run()


class Loop:
    """Runs one controller in one world, step by step.

    Parameters
    ----------
    controller, cadence
        As in `run`.
    reading, commits
        The simulated reading and commits in the world.
    """

    def __init__(
        self, controller: Controller, cadence: Cadence, reading: Reading, commits: SimulatedCommits
    ) -> None:
        self._world, self._controller, self._cadence = reading.world, controller, cadence
        self._began = START.timestamp()
        self._reading, self._commits = reading, commits
        self._history = SampleHistory(reading.world, self._began)
        self._group = PresentMembers.at(reading.world, 0)
        self._handovers: list[Handover] = []
        self._owners: list[tuple[float, Int32]] = []

    def run(self) -> Run:
        """Run all steps."""
        world, cadence = self._world, self._cadence
        changed = set(world.changed.tolist())
        series, decisions = self._every(cadence.sample_s), self._decisions()
        moments = sorted(changed | series | decisions)
        for step, following in zip(moments, [*moments[1:], world.steps], strict=True):
            if step in changed:
                self._rebalance(step)
            if step in series:
                self._sample(step, world.ends[step], self._reading.owner)
            if step in decisions:
                self._decide(step)
            self._reading.run(step, following)
        handovers, owners = tuple(self._handovers), tuple(self._owners)
        return Run(world, cadence, self._reading.waiting, handovers, owners)

    def _every(self, seconds: float) -> set[int]:
        every = max(round(seconds / self._world.step_s), 1)
        return set(range(every, self._world.steps, every))

    def _decisions(self) -> set[int]:
        return self._every(self._cadence.decision_s)

    def _rebalance(self, step: int) -> None:
        self._group = PresentMembers.at(self._world, step)
        owner = self._controller.rebalance(self._moment(step))
        self._hand_over(step, self._group.outside(owner), planned=False)

    def _sample(self, step: int, end: Int64, owner: Int32) -> None:
        self._history.sample(step, end=end, committed=self._commits.at(step), owner=owner)

    def _decide(self, step: int) -> None:
        owner = self._controller.decide(self._moment(step))
        if owner is not None:
            self._hand_over(step, self._group.outside(owner), planned=True)

    def _moment(self, step: int) -> Moment:
        lag = np.maximum(self._world.ends[step] - self._commits.at(step), 0)
        return Moment(
            at=self._began + step * self._world.step_s,
            problem=self._group.problem(self._reading.owner, lag),
            series=lambda: self._history.series(self._group),
        )

    def _hand_over(self, step: int, owner: Int32, *, planned: bool) -> None:
        reading = self._reading
        before = reading.owner
        went = owner != before
        taken_over = went & (before >= 0)
        committed = self._commits.hand_over(step, went)
        if taken_over.any():
            reading.take_over(taken_over, step, committed)
        pauses = self._paused(step, taken_over)
        reading.stand_still(pauses, step, self._cadence.move_downtime_s)
        reading.owner = owner
        at_s = step * self._world.step_s
        self._owners.append((at_s, owner))
        if step or planned:
            moved = int((went & np.isin(before, self._group.members)).sum())
            self._handovers.append(Handover(at_s, planned, moved, int(pauses.sum())))

    def _paused(self, step: int, taken: Mask) -> Mask:
        """Return which partitions to pause when those in `taken` get new owners, bool (P,)."""
        del step
        return taken

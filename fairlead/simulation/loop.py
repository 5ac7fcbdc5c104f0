"""The closed loop: a world, somebody who decides, and what their decisions do to the next look.

Belongs here: the order in which things happen. Does not: what came of it (`run_figures`).
"""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.commits import SimulatedCommits
from fairlead.simulation.consumption import Int32, Reading
from fairlead.simulation.controllers import START, Controller, Moment, TakesBack, Truth
from fairlead.simulation.membership import PresentMembers
from fairlead.simulation.seen import SeenLooks
from fairlead.simulation.traffic import DAY_S, Float64
from fairlead.simulation.world import World


@dataclass(frozen=True)
class Cadence:
    """How often a group is looked at and decided about, and what a move costs, in seconds."""

    look_s: float = 60.0
    decision_s: float = 900.0
    pause_s: float = 10.0


@dataclass(frozen=True)
class Handover:
    """A plan or a rebalance.

    Parameters
    ----------
    at_s
        Seconds from the start.
    planned
        Whether it was a plan; else the group changed, or a plan was taken back.
    back
        Whether a plan was taken back.
    moved
        Partitions that went to another owner while theirs was still there.
    moved_rate
        What arrived in them, records a second.
    paused
        Partitions that stood still.
    """

    at_s: float
    planned: bool
    moved: int
    moved_rate: float
    paused: int
    back: bool = False


@dataclass(frozen=True, eq=False)
class Run:
    """What happened.

    Parameters
    ----------
    world, cadence
        In which, and how often what was done.
    waiting
        Records that wait at each moment, float64 of shape (N + 1, P).
    handovers
        Plans and rebalances, in order.
    owners
        From when on, in seconds from the start, who owned what: int32 of shape (P,) each.
    """

    world: World
    cadence: Cadence
    waiting: Float64
    handovers: tuple[Handover, ...]
    owners: tuple[tuple[float, Int32], ...]


def run(world: World, controller: Controller, cadence: Cadence | None = None) -> Run:
    """Let a controller decide about a world from its start to its end.

    At each moment, first the group changes, then it is looked at, then decided about; a plan takes
    effect at once. Everything is deterministic: equal worlds and controllers give equal runs.
    """
    return _Loop(world, controller, cadence or Cadence()).run()


class _Loop:
    def __init__(self, world: World, controller: Controller, cadence: Cadence) -> None:
        self._world, self._controller, self._cadence = world, controller, cadence
        self._began = START.timestamp()
        self._reading = Reading(world)
        self._commits = SimulatedCommits(self._reading)
        self._seen = SeenLooks(world, self._began)
        self._group = PresentMembers.at(world, 0)
        self._handovers: list[Handover] = []
        self._owners: list[tuple[float, Int32]] = []

    def run(self) -> Run:
        world, cadence = self._world, self._cadence
        every_look = max(round(cadence.look_s / world.step_s), 1)
        every_decision = max(round(cadence.decision_s / world.step_s), 1)
        changed = set(world.changed.tolist())
        looks = set(range(every_look, world.steps, every_look))
        decisions = set(range(every_decision, world.steps, every_decision))
        if self._controller.foresees:
            decisions.add(0)
        moments = sorted(changed | looks | decisions)
        for step, following in zip(moments, [*moments[1:], world.steps], strict=True):
            if step in changed:
                self._rebalance(step)
            if step in looks:
                self._seen.look(step, self._commits.at(step), self._reading.owner)
                self._regret(step)
            if step in decisions:
                self._decide(step)
            self._reading.run(step, following)
        handovers, owners = tuple(self._handovers), tuple(self._owners)
        return Run(world, cadence, self._reading.waiting, handovers, owners)

    def _rebalance(self, step: int) -> None:
        self._group = PresentMembers.at(self._world, step)
        owner = self._controller.rebalance(self._moment(step))
        self._hand_over(step, self._group.outside(owner), planned=False)

    def _regret(self, step: int) -> None:
        if not isinstance(self._controller, TakesBack):
            return
        owner = self._controller.take_back(self._moment(step))
        if owner is not None:
            self._hand_over(step, self._group.outside(owner), planned=False, back=True)

    def _decide(self, step: int) -> None:
        owner = self._controller.decide(self._moment(step))
        if owner is not None:
            self._hand_over(step, self._group.outside(owner), planned=True)

    def _moment(self, step: int) -> Moment:
        committed = self._commits.at(step)
        lag = np.maximum(self._world.ends[step] - committed, 0)
        problem = self._group.problem(self._reading.owner, lag)
        return Moment(
            at=self._began + step * self._world.step_s,
            problem=problem,
            looks=lambda: self._seen.looks(self._group),
            truth=lambda: self._truth(step),
        )

    def _truth(self, step: int) -> Truth:
        world, group = self._world, self._group
        before = max(step - round(self._cadence.look_s / world.step_s), 0)
        day = world.work[step : step + round(DAY_S / world.step_s)]
        peak = step + int(day.sum(axis=1).argmax())
        waiting = np.where(np.isinf(world.limits[step]), self._reading.waiting[step], 0.0)
        return Truth(
            rates=world.work[before, group.partitions],
            peak_rates=world.work[peak, group.partitions],
            waiting=(waiting * world.costs[step])[group.partitions],
            speeds=world.speeds[step, group.members],
        )

    def _hand_over(self, step: int, owner: Int32, *, planned: bool, back: bool = False) -> None:
        world, reading, group = self._world, self._reading, self._group
        before = reading.owner
        went = owner != before
        taken = went & (before >= 0)
        committed = self._commits.hand_over(step, went)
        if taken.any():
            reading.take_over(taken, step, committed)
        # Nothing is read yet when a group starts: it has nothing to stand still for.
        pauses = taken if not world.roster.eager or step == 0 else world.exists[step]
        reading.stand_still(pauses, step, self._cadence.pause_s)
        reading.owner = owner
        self._owners.append((step * world.step_s, owner))
        there = np.isin(before, group.members)
        moved = went & there
        handover = Handover(
            at_s=step * world.step_s,
            planned=planned,
            moved=int(moved.sum()),
            moved_rate=float(world.rates[step, moved].sum()),
            paused=int(pauses.sum()),
            back=back,
        )
        if step or planned:
            self._handovers.append(handover)

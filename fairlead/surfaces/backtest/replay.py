"""Replay a recorded group with one assignor: what would have happened, and at what cost.

Belongs here: running an assignor or policy, and computing figures at each sample. Belongs
elsewhere: the recording (`recording`), the simulation (`fairlead.simulation`), the rules of
assignors (`assignors`) and policies, and summarising the result (`report`). No I/O.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from assignors.registry import LAG_BLIND, assign
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.analysis.decide import PlanDecision, decide
from fairlead.domain.analysis.question import Question
from fairlead.domain.approval import PlanFacts, decide_approval
from fairlead.domain.candidate_figures import OBSERVED, improvement
from fairlead.domain.policy import Policy
from fairlead.simulation.controllers import START, ByPlans, Controller, Moment
from fairlead.simulation.loop import Cadence, Run, run
from fairlead.simulation.world import Int32
from fairlead.surfaces.backtest.recording import Recording

#: In place of an assignor's name: the time lag that was measured at each sample.
RECORDED: Final = "recorded"

_SAMPLE_S: Final = 60.0


@dataclass(frozen=True)
class Stretch:
    """The figures of a replay from one sample to the next.

    Parameters
    ----------
    at
        When the second of the two samples was taken.
    over_objective_s
        Seconds for which partitions were behind by more than the objective, summed over partitions.
    worst_s
        Largest time lag of a partition, in seconds.
    moved
        Number of partitions that moved although their owner was still present.
    published
        Number of published plans.
    held_back
        Number of plans that the policy did not approve.
    downtime_s
        Seconds without consumption because plans moved partitions, summed over partitions.
    """

    at: datetime
    over_objective_s: float
    worst_s: float
    moved: int
    published: int
    held_back: int
    downtime_s: float = 0.0


def replay(recording: Recording, in_charge: str, policy: Policy) -> Iterator[Stretch]:
    """Replay a recorded group with one assignor, from the first sample on.

    - Assignors that ignore lag (`LAG_BLIND`), such as Kafka's, assign at each rebalance: at the
      first sample, and whenever members or partitions have changed.
    - With other assignors, the replay starts with the owners at the first sample, and plans at a
      fixed interval, the median time between two samples. It decides like the planner, by the
      policy's `objective`, `horizon` and `target_utilisation`. A plan is published if the policy
      approves it. If the policy requires a person's approval, plans are approved immediately.
      Shadow mode is ignored. At a rebalance, the plan is adapted to the present members.
    - `OBSERVED` replays the group's own assignments. `RECORDED` replays nothing, but returns the
      figures that were measured in the samples.

    Parameters
    ----------
    recording
        The recording of one group.
    in_charge
        A name of `assignors.registry`, `OBSERVED` or `RECORDED`.
    policy
        The group's policy. The policy's list of assignors is ignored: only `in_charge` plans.

    Raises
    ------
    InvalidProblemError
        There is no such assignor, or the policy has options that the assignor does not have.
    """
    objective_s = policy.rules().objective_s
    if in_charge == RECORDED:
        yield from _measured(recording, objective_s)
        return
    world = recording.world()
    usual_s = float(np.median(np.diff(recording.seconds)))
    decision_s = recording.step_s if in_charge == OBSERVED else max(usual_s, recording.step_s)
    cadence = Cadence(min(_SAMPLE_S, decision_s), decision_s, policy.rules().move_downtime_s)
    controller = _controller(recording, in_charge, policy)
    ran = run(world, controller, cadence)
    held_back = controller.held_back if isinstance(controller, _ByPolicy) else []
    yield from _stretches(recording, ran, objective_s, held_back, plans=in_charge != OBSERVED)


def _controller(recording: Recording, in_charge: str, policy: Policy) -> Controller:
    if in_charge == OBSERVED:
        return _Recorded(recording)
    if in_charge in LAG_BLIND:
        return _InConsumers(recording, in_charge, policy.assignor_options(in_charge))
    return _ByPolicy(recording, in_charge, policy)


class _Recorded:
    """Repeats the group's own assignments."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def rebalance(self, moment: Moment) -> Int32:
        return owners_at(self._recording, moment)

    def decide(self, moment: Moment) -> Int32 | None:
        owner = owners_at(self._recording, moment)
        return None if np.array_equal(owner, moment.problem.owner) else owner


class _InConsumers:
    """An assignor without plans: like Kafka's assignors, it runs at each rebalance."""

    def __init__(self, recording: Recording, assignor: str, options: dict[str, Any]) -> None:
        self._recording, self._assignor, self._options = recording, assignor, options

    def rebalance(self, moment: Moment) -> Int32:
        problem = moment.problem
        if moment.at == START.timestamp():  # so that assignors can keep the recorded owners
            problem = replace(problem, owner=owners_at(self._recording, moment))
        return assign(self._assignor, problem, **self._options).owner

    def decide(self, moment: Moment) -> Int32 | None:  # noqa: ARG002 - the signature of Controller
        return None


class _ByPolicy(ByPlans):
    """An assignor that makes plans. Consumers follow the plans that the policy approves."""

    def __init__(self, recording: Recording, assignor: str, policy: Policy) -> None:
        super().__init__()
        self._recording, self._assignor = recording, assignor
        self._policy = policy.model_copy(update={"shadow": False})
        self._options = {assignor: policy.assignor_options(assignor)}
        self._by_hand = policy.four_eyes or not policy.approval.automatic
        self._capacities: Mapping[str, Capacity] = {}
        self._costs: CostRows = {}
        #: When plans were not approved, as seconds from the start of the replay.
        self.held_back: list[float] = []

    def rebalance(self, moment: Moment) -> Int32:
        """Return the owners after a rebalance: the plan, adapted to the present members.

        At the start of the replay, return the recorded owners.
        """
        if self._plan is None and moment.at == START.timestamp():
            owner = owners_at(self._recording, moment)
            self.take_over(moment, owner)
            return owner
        return super().rebalance(moment)

    def plan(self, moment: Moment) -> Int32 | None:
        """Analyse like the planner; return new owners if the policy approves the plan."""
        decision = decide(
            Question(
                problem=moment.problem,
                series=moment.series(),
                rules=self._policy.rules(),
                capacities=self._capacities,
                costs=self._costs,
                changes=self.changes,
            ),
            assignors=(self._assignor,),
            options=self._options,
        )
        self._capacities, self._costs = decision.capacities, decision.costs.rows(moment.problem)
        owner = decision.owner
        if owner is None or self._by_hand or self._approves(moment, decision, owner):
            return owner
        self.held_back.append(moment.at - START.timestamp())
        return None

    def _approves(self, moment: Moment, decision: PlanDecision, owner: Int32) -> bool:
        passed = moment.at - START.timestamp()
        sample = self._recording.latest(round(passed / self._recording.step_s))
        planned = decision.planned or decision.kept
        facts = PlanFacts(
            moved=decision.moved,
            placed=int(((moment.problem.owner < 0) & (owner >= 0)).sum()),
            improvement=improvement(
                {"forecast_time_lag_s": decision.kept.time_lag_s},
                {"forecast_time_lag_s": planned.time_lag_s},
            ),
            statuses=self._recording.statuses(sample),
        )
        when = self._recording.start + timedelta(seconds=passed)
        return decide_approval(self._policy, facts, when).approved


def owners_at(recording: Recording, moment: Moment) -> Int32:
    """Return the owners in the newest sample before a moment, int32 of shape (P,)."""
    step = round((moment.at - START.timestamp()) / recording.step_s)
    row = recording.series.owner[recording.latest(step)]
    problem, roster = moment.problem, recording.roster
    number = {name: index for index, name in enumerate(problem.members)}
    inside = np.array([*(number.get(name, -1) for name in roster.members), -1], np.int32)
    pieces, first = [], 0
    for count, now in zip(roster.counts, problem.partition_counts.tolist(), strict=True):
        pieces.append(row[first : first + now])
        first += count
    return inside[np.concatenate(pieces)] if pieces else np.empty(0, np.int32)


def _stretches(
    recording: Recording, ran: Run, objective_s: float, held_back: list[float], *, plans: bool
) -> Iterator[Stretch]:
    world = ran.world
    lags = ran.time_lags()[1:]
    lags[~world.exists] = 0.0
    behind_s = (lags > objective_s).sum(axis=1) * world.step_s
    worst = lags.max(axis=1, initial=0.0)
    edges = recording.seconds
    moved, published, paused, refused = (
        np.histogram(at, bins=[*edges[:-1], edges[-1] + 1], weights=weights)[0]
        for at, weights in (
            ([h.at_s for h in ran.handovers], [h.moved for h in ran.handovers]),
            ([h.at_s for h in ran.handovers if h.planned and plans], None),
            (
                [h.at_s for h in ran.handovers if h.planned and plans],
                [h.paused for h in ran.handovers if h.planned and plans],
            ),
            (held_back, None),
        )
    )
    for row in range(len(edges) - 1):
        span = slice(int(recording.steps[row]), int(recording.steps[row + 1]))
        yield Stretch(
            at=recording.start + timedelta(seconds=float(edges[row + 1])),
            over_objective_s=float(behind_s[span].sum()),
            worst_s=float(worst[span].max(initial=0.0)),
            moved=int(moved[row]),
            published=int(published[row]),
            held_back=int(refused[row]),
            downtime_s=float(paused[row]) * ran.cadence.move_downtime_s,
        )


def _measured(recording: Recording, objective_s: float) -> Iterator[Stretch]:
    """Yield the figures as they really were, computed from the commits in the samples."""
    series, seconds = recording.series, recording.seconds
    owner = series.owner
    moved = ((owner[1:] != owner[:-1]) & (owner[:-1] >= 0) & (owner[1:] >= 0)).sum(axis=1)
    behind = recording.lags
    for row in range(1, len(series)):
        yield Stretch(
            at=recording.start + timedelta(seconds=float(seconds[row])),
            over_objective_s=float(
                (behind[row] > objective_s).sum() * (seconds[row] - seconds[row - 1])
            ),
            worst_s=float(behind[row].max(initial=0.0)),
            moved=int(moved[row - 1]),
            published=0,
            held_back=0,
        )

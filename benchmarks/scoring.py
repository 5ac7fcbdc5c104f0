"""The share of right diagnoses among groups whose true cause is known.

Belongs here: which diagnoses are right at each sample, and counting. Belongs elsewhere: drawing
groups (`random_scenarios`), diagnosing (`fairlead.domain.analysis`).
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.random_scenarios import HOURS, Labelled
from benchmarks.simulation.loop import ScenarioRun, run
from benchmarks.simulation.planner import Planner
from benchmarks.simulation.run_figures import OBJECTIVE_S
from benchmarks.simulation.traffic import HOUR_S
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.rules import Rules
from fairlead.simulation.controllers import START
from fairlead.simulation.loop import Cadence
from fairlead.simulation.world import Int32

#: A diagnosis, and the members or partitions that it names.
Answer = tuple[str, frozenset[str]]
#: Causes that no plan removes.
_LASTING = frozenset(
    {"hot partition", "stuck partition", "throttled partition", "overloaded", "unknown"}
)

#: Seconds after a cause begins. From _SEEN_S on, the diagnosis must be right. Until _OPEN_S, a
#: diagnosis is also right if it names a slow member as an alternative explanation.
_SEEN_S: Final = HOUR_S / 2
_OPEN_S: Final = 2 * HOUR_S


@dataclass(frozen=True)
class Marked:
    """One diagnosis with its scenario, cause and time, and whether it is right."""

    scenario: str
    cause: str
    at_s: float
    right: bool
    diagnosed: str


def mark(labelled: Labelled, *, plans: bool, seed: int = 0, reports: bool = False) -> list[Marked]:
    """Let the planner diagnose a group at each decision; return whether each diagnosis is right.

    Returns diagnoses at complete samples from half an hour after the cause begins, and earlier ones
    if they led to a plan. Without plans, the only right diagnosis is the cause. With plans, the
    same holds while the cause overloads a member. After that, `recovering` is right, too, until no
    partition is behind; then only `healthy` is right.
    """
    world = ScenarioWorld.of(labelled.scenario, seed=seed, hours=HOURS)
    cadence = Cadence()
    planner = Planner(Rules(), plans=plans, reports=reports)
    ran = run(world, planner, cadence)
    truth = _Truth(labelled, ran)
    planned_at = {handover.at_s for handover in ran.handovers if handover.planned}
    marks = []
    for at, decision in planner.decisions:
        at_s = at - START.timestamp()
        step = round(at_s / world.step_s)
        if world.ownerless[step] or world.unseen[step].any():
            continue
        if at_s < labelled.since_s + _SEEN_S and at_s not in planned_at:
            continue
        diagnosis = decision.diagnosis
        right = truth.allows(at_s, (diagnosis.name, frozenset(diagnosis.names)))
        words = f"{diagnosis.name} {', '.join(diagnosis.names)}".strip()
        marks.append(Marked(labelled.scenario.name, labelled.cause, at_s, right, words))
    return marks


class _Truth:
    """Decides which diagnoses are right at each moment of a run."""

    def __init__(self, labelled: Labelled, ran: ScenarioRun) -> None:
        self._labelled, self._world = labelled, ran.world
        self._behind = ran.time_lags()
        self._owners = ran.owners

    def allows(self, at_s: float, diagnosed: Answer) -> bool:
        """Return whether a diagnosis is right at a time, in seconds from the start."""
        labelled, world = self._labelled, self._world
        if at_s < labelled.since_s:
            return diagnosed == ("healthy", frozenset())
        if labelled.cause in _LASTING or labelled.cause == "healthy":
            return diagnosed == (labelled.cause, labelled.names)
        step = round(at_s / world.step_s)
        owner = self._owner_before(at_s)
        held = owner >= 0
        work = np.bincount(owner[held], world.work[step, held], world.speeds.shape[1])
        full = self._named(np.flatnonzero(work > world.speeds[step]))
        behind = self._named(np.unique(owner[held & (self._behind[step] > OBJECTIVE_S)]))
        name, names = diagnosed
        cause = labelled.cause
        expensive = cause == "expensive partition"
        if expensive:  # the partition's owner has too much work
            cause = "unbalanced"
        if not full:
            return name in ({"recovering", cause} if behind else {"healthy"})
        if name == "slow member":
            # Until `_OPEN_S`, samples do not show whether members are slow or partitions expensive.
            open_ = at_s <= labelled.since_s + _OPEN_S and len(names - labelled.names) == 1
            if expensive:
                return open_ and names == labelled.names | full
            named = names == labelled.names or (open_ and labelled.names < names)
        else:  # members that are behind but no longer overloaded can be named, too
            named = full <= names <= full | behind
        return name == cause and named

    def _named(self, members: npt.NDArray[np.integer[Any]]) -> frozenset[str]:
        return frozenset(self._world.roster.members[member] for member in members)

    def _owner_before(self, at_s: float) -> Int32:
        owner = self._owners[0][1]
        for since_s, following in self._owners:
            if since_s < at_s:
                owner = following
        return owner


def share_right(marks: list[Marked]) -> dict[str, float]:
    """Return the share of right diagnoses for each cause, and for all causes as `all`."""
    marked = Counter(mark_.cause for mark_ in marks)
    right = Counter(mark_.cause for mark_ in marks if mark_.right)
    shares = {cause: round(right[cause] / count, 4) for cause, count in sorted(marked.items())}
    return {"all": round(right.total() / max(marked.total(), 1), 4), **shares}

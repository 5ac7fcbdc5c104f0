"""Accuracy of predictions: when a group will have caught up, and the costs of records.

Belongs here: comparing predictions with the simulated future and with true costs. Belongs
elsewhere: predicting (`fairlead.domain.analysis`), diagnoses (`loop_diagnosis`).

A predicted catch-up time is checked only if nothing changes until then: no plan arrives, no member
joins or leaves, and the load of members that are behind varies by at most `_STEADY`.

A partition's cost is the time that one of its records takes, as a multiple of the median cost of
connected partitions. This median is weighted by arrival rates. Two partitions are connected if they
had an owner in common, or if a chain of such pairs links them.

The planner must know a partition's cost only if the mix of its owner's records changed while the
owner was at the limit of its speed. This is checked for the last hour, in intervals of two minutes:
the owner was at the limit in at least two of them, and the partition's share of the owner's records
was at least twice as high in one of these intervals as in another.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.loop_goals import Goal, with_reports
from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.loop import ScenarioRun, run
from benchmarks.simulation.planner import Planner
from benchmarks.simulation.run_figures import OBJECTIVE_S
from benchmarks.simulation.world import ScenarioWorld
from fairlead.domain.analysis.forecast import STAYS_S, Forecast
from fairlead.domain.analysis.peers import reader_sets
from fairlead.domain.analysis.rules import Rules
from fairlead.simulation.controllers import START
from fairlead.simulation.loop import Cadence
from fairlead.simulation.world import Float64, Int32

Places = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
#: Share of a member's speed. If members that are behind have less than this share unused, the
#: predicted interval must contain the true time. Otherwise, the error must be small.
_SPARE: Final = 0.15
#: Largest error of a predicted time, as a share of the true time.
_NEAR: Final = 0.2
#: This many intervals between samples are always allowed as an error.
_SAMPLES: Final = 2
_STEADY: Final = 0.05
#: Seconds. If a group has not caught up after this time, it is regarded as never catching up.
_NEVER_S: Final = 6 * 3600.0
_STRETCH_S, _SEEN_S, _FULL, _TWOFOLD = 120.0, 3600.0, 0.995, 2.0
#: The planner must know a partition's cost only if the partition has at least this share of its
#: owner's records.
_SMALL: Final = 0.02
#: Scenarios and clients with which costs are checked.
_COSTLY: Final = ("heavy", "own-costs", "slow-and-dear", "skew")
_CLIENTS: Final = ("proportional", "confluent-kafka", "aiokafka", "kafka-python")
_COSTLY_HOURS, _HOURS, _CHANGING_HOURS = 3.0, 12.0, 30.0
_WRONG: Final = 0.1
#: Scenario, client, whether the group gets plans, whether the planner reads reports of work, and
#: seed. If the client is None, catch-up times are checked; otherwise, costs.
_Job = tuple[str, str | None, bool, bool, int]
#: Rows with the number of predictions and of right predictions. The column `what` names the
#: predicted value (catch-up time or cost), the column `of` the kind of groups.
Rows = list[dict[str, Any]]
Key = TypeVar("Key", bound=Hashable)


def measure(seed: int, each: Callable[..., Iterable[Rows]] = map) -> Rows:
    """Run all groups; count the predictions, and how many of them are right.

    Parameters
    ----------
    seed
        Seed of the arrivals.
    each
        `map`, or a process pool's `map`.
    """
    jobs: list[_Job] = [
        (name, None, planned, reports, seed)
        for reports in (False, True)
        for name, what in SCENARIOS.items()
        for planned in (True, False)
        if what.kind == "changing" or (planned and what.kind != "healthy")
    ]
    jobs += [
        (name, client, False, reports, seed)
        for reports in (False, True)
        for name in _COSTLY
        for client in _CLIENTS
    ]
    rows = chain.from_iterable(each(_counted, jobs))
    total = _summed(rows, lambda row: (row["what"], row["of"]))
    return [{"what": what, "of": of, **sums} for (what, of), sums in sorted(total.items())]


def goals(rows: Rows) -> list[Goal]:
    """Return the goals: at most a tenth of the predictions are wrong, over all clients together."""
    total = _summed(
        rows, lambda row: f"predictions, {row['of']}" if "predictions" in row else row["what"]
    )
    return [
        Goal(scenario, what, round(1 - sums[part] / sums[whole], 3), _WRONG)
        for scenario, sums in total.items()
        for what, part, whole in _GOALS
        if sums.get(whole)
    ]


def _summed(
    rows: Iterable[dict[str, Any]], by: Callable[[dict[str, Any]], Key]
) -> dict[Key, Counter[str]]:
    """Group rows by the key that `by` returns, and add up the counts of each group of rows."""
    total: dict[Key, Counter[str]] = {}
    for row in rows:
        counts = {name: row[name] for name in row.keys() - {"what", "of"}}
        total.setdefault(by(row), Counter()).update(counts)
    return total


_GOALS: Final = (
    ("wrong when all are in time", "right", "predictions"),
    ("intervals without the truth", "within", "known"),
    ("unknown that must be known", "found", "must"),
)


def _counted(job: _Job) -> Rows:
    """Simulate a group; return rows that count its predictions and the right ones."""
    name, client, planned, reports, seed = job
    what = SCENARIOS[name] if client is None else replace(SCENARIOS[name], client=client)
    hours = _CHANGING_HOURS if what.kind == "changing" else _HOURS
    world = ScenarioWorld.of(what, seed=seed, hours=hours if client is None else _COSTLY_HOURS)
    planner = Planner(Rules(), plans=planned, reports=reports)
    ran = run(world, planner, Cadence())
    rows = _caught_up(ran, planner) if client is None else _costs(ran, planner, client)
    key = "of" if client is None else "what"
    return [row | {key: with_reports(row[key])} if reports else row for row in rows]


@dataclass(frozen=True, eq=False)
class _Future:
    """When partitions are behind in a run, and when they have caught up.

    `any_behind`: whether any partition is behind at each step. `in_time_at`: for each step, this
    step or the first later one from which no partition is behind for at least `STAYS_S`.
    """

    ran: ScenarioRun
    any_behind: Mask
    in_time_at: Places
    behind: Float64

    @classmethod
    def of(cls, ran: ScenarioRun) -> "_Future":
        """Compute these values from a run; throttled and stuck partitions are ignored."""
        world = ran.world
        ill = np.isfinite(world.limits).any(axis=0) | world.uncommitted.any(axis=0)
        behind = np.where(ill, 0.0, ran.time_lags())
        any_behind: Mask = np.atleast_1d((behind > OBJECTIVE_S).any(axis=1))
        steps = np.arange(any_behind.size)
        next_late = np.minimum.accumulate(np.where(any_behind, steps, any_behind.size)[::-1])[::-1]
        stays = next_late - steps >= STAYS_S / world.step_s
        found = np.where(stays, steps, 10 * any_behind.size)
        return cls(ran, any_behind, np.minimum.accumulate(found[::-1])[::-1], behind)

    def happens_s(self, step: int) -> tuple[float, float]:
        """Return the seconds from a step until partitions have caught up, and until owners change.

        Partitions have caught up if none is behind for at least `STAYS_S`. If owners change before
        the end of this time, the first value is inf.
        """
        world = self.ran.world
        changes = [round(handover.at_s / world.step_s) for handover in self.ran.handovers]
        end = min((at for at in changes if at > step), default=world.steps)
        seconds = float(self.in_time_at[step] - step) * world.step_s
        until = (end - step) * world.step_s
        return seconds if seconds + STAYS_S <= until else np.inf, until

    def spare(self, step: int, last: int, owner: Int32) -> tuple[float, float]:
        """Return minimum and range, from `step` to `last`, of the least unused speed of a member.

        Unused speed is a share of the member's speed. Only members that are behind at `step` count.
        """
        world, held = self.ran.world, owner >= 0
        count = world.speeds.shape[1]
        any_behind = np.bincount(owner[held], self.behind[step, held] > OBJECTIVE_S, count) > 0
        if not any_behind.any():
            return 0.0, np.inf
        moments = np.linspace(step, last, 12).astype(int)
        used = [np.bincount(owner[held], world.work[at, held], count) for at in moments.tolist()]
        spare = (1.0 - np.array(used) / world.speeds[moments])[:, any_behind].min(axis=1)
        return float(spare.min()), float(np.ptp(spare))


def _caught_up(ran: ScenarioRun, planner: Planner) -> Iterator[dict[str, Any]]:
    """Yield a row for each checked prediction of when a group will have caught up."""
    world, future = ran.world, _Future.of(ran)
    planned_at = {round(item.at_s / world.step_s) for item in ran.handovers if item.planned}
    for at, decision in planner.decisions:
        step = round((at - START.timestamp()) / world.step_s)
        forecast = decision.kept
        if step in planned_at and decision.planned is not None:
            forecast = decision.planned
        if not future.any_behind[step] or decision.diagnosis.name == "unknown":
            continue
        seconds, until = future.happens_s(step)
        predicted_s = np.inf if forecast.catch_up_s is None else forecast.catch_up_s
        if np.isinf(seconds) and not (predicted_s <= until - STAYS_S or until >= _NEVER_S):
            continue  # the group changed before the predicted time
        owner = [owner for since_s, owner in ran.owners if since_s <= step * world.step_s][-1]
        last = min(step + round(min(seconds, until) / world.step_s), world.steps - 1)
        spare, varies = future.spare(step, last, owner)
        if varies > _STEADY:
            continue
        roomy = spare >= _SPARE
        right = _near(predicted_s, seconds) if roomy else _between(forecast, seconds)
        of = "15 % of speed spare" if roomy else "less spare: within the interval"
        yield {"what": "caught up", "of": of, "predictions": 1, "right": int(right)}


def _near(predicted_s: float, seconds: float) -> bool:
    allowed = max(_NEAR * seconds, _SAMPLES * Cadence().sample_s)
    return predicted_s == seconds or bool(
        np.isfinite(seconds) and abs(predicted_s - seconds) <= allowed
    )


def _between(forecast: Forecast, seconds: float) -> bool:
    low, high = (np.inf if end is None else end for end in forecast.catch_up_between_s)
    return low <= seconds <= high


def _costs(ran: ScenarioRun, planner: Planner, client: str) -> Iterator[dict[str, Any]]:
    """Yield for each decision the numbers of costs that the planner knows and must know.

    `known`: costs that the planner knows, each as an interval; `within`: those whose interval
    contains the true cost; `must`: costs that the planner must know; `found`: `must` costs
    that the planner does know.
    """
    world, stretches = ran.world, _stretches(ran)
    for at, decision in planner.decisions:
        step = round((at - START.timestamp()) / world.step_s)
        rows, truth = decision.costs.known(), _truth(ran, step)
        known = ~np.isnan(rows[:, 0])
        must, since = np.zeros(known.size, dtype=bool), step - _SEEN_S / world.step_s
        for owned, by_end in stretches:
            shares = np.array([share for end, share in by_end.items() if since < end <= step])
            if shares.size:
                most, least = shares.max(axis=0), shares.min(axis=0)
                must[owned] |= (most >= _TWOFOLD * least) & (most >= _SMALL)
        within = known & (rows[:, 0] <= truth) & (truth <= rows[:, 2])
        yield {
            "what": "costs",
            "of": client,
            "known": int(known.sum()),
            "within": int(within.sum()),
            "must": int(must.sum()),
            "found": int((must & known).sum()),
        }


def _stretches(ran: ScenarioRun) -> list[tuple[Places, dict[int, Float64]]]:
    """Return each member's partitions, and the partitions' shares of the member's records.

    The shares are in a dict. A key is the step at which a two-minute interval ends, if the member
    was at the limit of its speed throughout the interval. The value has each partition's share of
    the records that the member read in the interval. Owners must not change during the run.
    """
    world, owner = ran.world, ran.owners[0][1]
    read = np.maximum(ran.waiting[:-1] + world.arrivals - ran.waiting[1:], 0.0)
    length, stretches = round(_STRETCH_S / world.step_s), []
    for member in range(world.speeds.shape[1]):
        owned = np.flatnonzero(owner == member)
        work = (read[:, owned] * world.costs[:, owned]).sum(axis=1)
        full = work >= _FULL * world.speeds[:, member] * world.step_s
        ends = np.arange(length, world.steps, length)
        by_end = {
            end: read[end - length : end, owned].sum(axis=0) / read[end - length : end, owned].sum()
            for end in ends.tolist()
            if full[end - length : end].all()
        }
        stretches.append((owned, by_end))
    return stretches


def _truth(ran: ScenarioRun, step: int) -> Float64:
    """Return the true costs at a step, relative to the median that the module docstring defines."""
    world = ran.world
    costs, rates = world.costs[step], world.rates[step]
    owners = np.stack([owner for since_s, owner in ran.owners if since_s < step * world.step_s])
    _, partition = np.nonzero(owners >= 0)
    _, connected = reader_sets(
        world.speeds.shape[1], owners[owners >= 0].astype(np.intp), partition, costs.size
    )
    truth: Float64 = costs.copy()
    for part in np.unique(connected).tolist():
        mine = np.flatnonzero(connected == part)
        mine = mine[np.argsort(costs[mine], kind="stable")]
        middle = np.searchsorted(rates[mine].cumsum(), rates[mine].sum() / 2.0 - 1e-9)
        truth[mine] /= costs[mine[middle]]
    return truth

"""A made-up week of a consumer group whose skew drifts, for the backtest in docs/backtest.md.

`python -m benchmarks.backtest FOLDER` writes it as a warehouse of samples; then
`FAIRLEAD_WAREHOUSE=FOLDER fairlead backtest orders` replays it.
Belongs here: the week. Does not: the simulation (`benchmarks.simulation`), or the backtest
(`fairlead.surfaces.backtest`).
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import harness
from benchmarks.simulation.churn import MemberChange
from benchmarks.simulation.controllers import ByAssignor
from benchmarks.simulation.loop import run
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.world import ScenarioWorld
from fairlead.archive import SampleArchive
from fairlead.domain.advice import CLASSIC
from fairlead.domain.samples import SAMPLES
from fairlead.simulation.controllers import START, Moment
from fairlead.simulation.loop import Cadence
from fairlead.simulation.world import Int32

GROUP = "orders"
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
HOURS = 7 * 24.0
STEP_S = 30.0
EVERY_S = 600.0
TOPICS = (40, 30, 10, 20)
PARTITIONS = sum(TOPICS)
RECORDS_PER_S = 10_000.0  # of all partitions together, averaged over a day
MEMBER_PER_S = 1_900.0  # the rate that one member can process
# Ten members: two join on Wednesday at noon, and the first one leaves on Saturday.
CHANGES = (
    MemberChange(2.5 * 86_400, 10, joins=True),
    MemberChange(2.5 * 86_400, 11, joins=True),
    MemberChange(5 * 86_400.0, 0, joins=False),
)


def week(seed: int = 1) -> ScenarioWorld:
    """Return the week: shares of partitions follow Zipf's law and drift; load varies by hour."""
    scenario = Scenario(
        name="week",
        what="a week whose skew drifts",
        kind="changing",
        speeds=(MEMBER_PER_S,) * 12,
        absent=(10, 11),
        topics=TOPICS,
        changes=CHANGES,
    )
    world = ScenarioWorld.of(scenario, seed=seed, hours=HOURS, step_s=STEP_S)
    rng = np.random.default_rng(seed)
    every = round(EVERY_S / STEP_S)
    rates = np.repeat(_drifting(world.steps // every, rng), every, axis=0)
    return replace(world, rates=rates, arrivals=rng.poisson(rates * STEP_S))


def _drifting(stretches: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the rate of each partition in each stretch: records/s, shape (stretches, P)."""
    popularity = rng.permutation(-0.7 * np.log(np.arange(1, PARTITIONS + 1)))
    rates = np.empty((stretches, PARTITIONS))
    for number in range(stretches):
        popularity = 0.999 * popularity + rng.normal(0, 0.04, PARTITIONS)
        by_day = 1 - 0.6 * np.cos(2 * np.pi * number * EVERY_S / 86_400)
        rates[number] = RECORDS_PER_S * by_day * np.exp(popularity) / np.exp(popularity).sum()
    return rates


class Recorder(ByAssignor):
    """A controller that writes a sample at each decision, and never plans."""

    def __init__(self, archive: SampleArchive) -> None:
        super().__init__("range")
        self._archive = archive
        self.samples = 0

    def decide(self, moment: Moment) -> Int32 | None:
        """Record a sample, without columns that the backtest does not read."""
        at = MONDAY + timedelta(seconds=moment.at - START.timestamp())
        sample_id = f"{at:%Y%m%dT%H%M%S.%fZ}-00000000"
        series, problem = moment.series(), moment.problem
        row = {
            "group": GROUP,
            "sample_id": sample_id,
            "at": at,
            "state": "Stable",
            "protocol": "range",
            "group_type": CLASSIC,
            "topics": problem.topics,
            "counts": problem.partition_counts,
            "begin": np.zeros_like(series.end[-1]),
            "end": series.end[-1],
            "committed": series.committed[-1],
            "owner": problem.owner,
            "members": problem.members,
            "subscriptions": [problem.topics] * len(problem.members),
        }
        self._archive.append(pa.Table.from_pylist([row], SAMPLES), sample_id)
        self.samples += 1
        return None


def main() -> None:
    """Write the week to a folder."""
    options = harness.parser(__doc__)
    options.add_argument("folder", metavar="FOLDER", help="for the warehouse")
    folder = options.parse_args().folder
    recorder = Recorder(SampleArchive(folder))
    run(week(), recorder, Cadence(60.0, EVERY_S))
    print(f"{recorder.samples:,} samples of {PARTITIONS} partitions: {folder}")


if __name__ == "__main__":
    main()

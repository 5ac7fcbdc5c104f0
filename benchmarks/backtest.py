"""A made-up week of a consumer group with drifting skew, for the backtest in docs/backtest.md.

`python -m benchmarks.backtest FOLDER` writes the week as a warehouse of samples. Then
`FAIRLEAD_WAREHOUSE=FOLDER fairlead backtest orders --json > FILE` replays the week, and `python -m
benchmarks.backtest --draw FILE` draws docs/backtest.svg. Belongs here: the week. Belongs elsewhere:
the simulation (`benchmarks.simulation`), the backtest (`fairlead.surfaces.backtest`).
"""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import harness
from benchmarks.plot_style import COLOURS, GREY, STYLE
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
from fairlead.surfaces.backtest.replay import RECORDED
from fairlead.surfaces.backtest.report import HISTORY

PLOT = Path(__file__).parents[1] / "docs" / "backtest.svg"
GROUP = "orders"
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
HOURS = 7 * 24.0
STEP_S = 30.0
EVERY_S = 600.0
TOPICS = (40, 30, 10, 20)
PARTITIONS = sum(TOPICS)
RECORDS_PER_S = 10_000.0  # arrivals at all partitions together, averaged over a day
MEMBER_PER_S = 1_900.0  # records that one member can process per second
# There are ten members at first. Two join on Wednesday at noon, and one leaves on Saturday.
CHANGES = (
    MemberChange(2.5 * 86_400, 10, joins=True),
    MemberChange(2.5 * 86_400, 11, joins=True),
    MemberChange(5 * 86_400.0, 0, joins=False),
)


def week(seed: int = 1) -> ScenarioWorld:
    """Return the week. Partitions' shares follow Zipf's law and drift; load depends on the hour."""
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
    """Return each partition's rate in each time interval, records/s, shape (stretches, P)."""
    popularity = rng.permutation(-0.7 * np.log(np.arange(1, PARTITIONS + 1)))
    rates = np.empty((stretches, PARTITIONS))
    for number in range(stretches):
        popularity = 0.999 * popularity + rng.normal(0, 0.04, PARTITIONS)
        by_day = 1 - 0.6 * np.cos(2 * np.pi * number * EVERY_S / 86_400)
        rates[number] = RECORDS_PER_S * by_day * np.exp(popularity) / np.exp(popularity).sum()
    return rates


class Recorder(ByAssignor):
    """A controller that writes a sample at each decision instead of planning."""

    def __init__(self, archive: SampleArchive) -> None:
        super().__init__("range")
        self._archive = archive
        self.samples = 0

    def decide(self, moment: Moment) -> Int32 | None:
        """Write a sample with only those columns that the backtest reads; return no plan."""
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


def draw(report: dict[str, Any], path: Path = PLOT) -> None:
    """Draw the worst time lag and the total of moves over time, from `fairlead backtest --json`."""
    from matplotlib import rc_context  # noqa: PLC0415 - the same
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import, and only needed here

    with rc_context(STYLE):
        figure = Figure(figsize=(10, 7), layout="constrained")
        lag, moves = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        for course in report["in_charge"]:
            style: dict[str, Any] = {"linewidth": 1.2, "color": COLOURS.get(course["name"])}
            if course["name"] in HISTORY:
                dots = ":" if course["name"] == RECORDED else "--"
                style |= {"color": GREY, "linestyle": dots, "zorder": 3}
            at = [datetime.fromisoformat(moment) for moment in course["series"]["at"]]
            lag.plot(at, course["series"]["worst_s"], label=course["name"], **style)
            moves.plot(at, np.cumsum(course["series"]["moves"]), **style)
        lag.set_title(f"Group {report['group']}, by assignor in charge")
        lag.set_ylabel("worst time lag (s)")
        lag.legend(fontsize="small", ncols=4)
        moves.set_ylabel("partitions moved so far")
        for axes in (lag, moves):
            axes.set_yscale("symlog")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set_ylim(bottom=0)
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Write the week to a folder, or draw the results of a backtest."""
    options = harness.parser(__doc__)
    what = options.add_mutually_exclusive_group(required=True)
    what.add_argument("folder", metavar="FOLDER", nargs="?", help="for the warehouse")
    what.add_argument("--draw", metavar="FILE", type=Path, help="with the replay as JSON")
    chosen = options.parse_args()
    if chosen.draw:
        draw(json.loads(chosen.draw.read_text()))
        return
    folder = chosen.folder
    recorder = Recorder(SampleArchive(folder))
    run(week(), recorder, Cadence(60.0, EVERY_S))
    print(f"{recorder.samples:,} samples of {PARTITIONS} partitions: {folder}")


if __name__ == "__main__":
    main()

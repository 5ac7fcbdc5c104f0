"""What a look at a fleet costs, with its diagnosis: `python -m benchmarks.fleet_looks`.

Belongs here: a recorded fleet of which one group in a hundred is in trouble, looked at as the job
`look` does; printing, and writing fleet_looks.json. Does not: fetching from brokers, which recorded
answers stand for (`fleet_fetch` measures it).
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import harness, recorded
from benchmarks.recorded import Size
from benchmarks.services import folder, postgres
from fairlead.archive import LookArchive
from fairlead.domain.groups import LiveGroup
from fairlead.domain.samples import GroupSnapshot
from fairlead.errors import KafkaUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.workflows.sampling import take

RESULTS: Final = Path(__file__).with_name("fleet_looks.json")
HOW: Final = (
    "python -m benchmarks.fleet_looks; brokers' answers are recorded, so fetching is left out: "
    "fleet_fetch.json has it. From 1,000 groups on as many processes analyse as there are cores, "
    "and their start is within."
)
IN_TROUBLE: Final = 100  # one group in so many


class RecordedGateway:
    """Answers for brokers with what was recorded."""

    def __init__(self, snapshot: GroupSnapshot) -> None:
        self._snapshot = snapshot
        self.answering_s = 0.0

    def snapshot(self, groups: Sequence[str], **_: object) -> GroupSnapshot:
        """Return what was recorded of some groups."""
        began = time.perf_counter()
        samples = self._snapshot.samples
        mine = samples.filter(pc.is_in(samples["group"], pa.array(groups, pa.string())))
        found = replace(self._snapshot, samples=mine)
        self.answering_s += time.perf_counter() - began
        return found

    def live_group(self, group: str) -> LiveGroup:
        """Raise an error: no plan was published, so none can be withdrawn."""
        raise KafkaUnavailableError(f"group {group} was recorded: there is no broker")


def main() -> None:
    """Measure, print, and write the results."""
    options = harness.parser(__doc__, rounds=2)
    options.add_argument("--groups", type=int, default=10_000)
    with (
        harness.measuring(options, RESULTS) as bench,
        folder() as place,
        postgres() as server,
    ):
        url, groups = server.url("fairlead"), bench.options.groups
        found = measured(place, url, groups, bench.options.rounds)
        bench.write({"how": HOW, **found})
        bench.show(f"Looks at {groups:,} groups", ("what", "figures"), found.items())


def measured(place: Path, url: str, groups: int, rounds: int) -> dict[str, Any]:
    """Look at a fleet some times; return the seconds each took without the recorded answers."""
    settings = Settings(state_dir=place, postgres={"url": url})  # type: ignore[arg-type]
    archive = LookArchive(str(place / "warehouse"))
    snapshot = recorded.snapshot(
        [Size(groups, 100, 10)], level=lambda number: number % IN_TROUBLE != 0
    )
    for look_id, look in recorded.past(snapshot):
        archive.append(look, look_id)
    archive.tidy(snapshot.snapshot_at, timedelta(days=2))
    gateway = RecordedGateway(snapshot)
    names = snapshot.samples["group"].to_pylist()
    store = PlanStore(create_store_engine(url))

    def taken() -> tuple[float, float, int]:
        gateway.answering_s, began, before = 0.0, time.perf_counter(), os.times()
        requested = take(cast("KafkaGateway", gateway), archive, settings, names, store).requests
        took = time.perf_counter() - began - gateway.answering_s
        spent = sum(os.times()[:4]) - sum(before[:4]) - gateway.answering_s
        return round(took, 2), round(spent, 2), len(requested)

    took, spent, requested = zip(*(taken() for _ in range(rounds)), strict=True)
    return {
        "groups": groups,
        "partitions": groups * 100,
        "in trouble": -(-groups // IN_TROUBLE),
        "called for": requested[-1],
        "look and diagnosis, without fetching (s)": took,
        "of all processors, its own processes (s)": spent,
    }


if __name__ == "__main__":
    main()

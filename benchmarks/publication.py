"""Speed of publishing approved plans: `python -m benchmarks.publication --groups 10000`.

Belongs here: publishing the plans of many groups from a temporary database to a temporary broker,
with verification; printing, and writing publication.json. Belongs elsewhere: making plans
(`fleet`).
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import harness
from benchmarks.plans import draft, moves
from benchmarks.services import kafka, postgres
from fairlead.domain.groups import LiveGroup, LiveMember
from fairlead.domain.records import PlanDraft
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.reconciling import reconcile

RESULTS: Final = Path(__file__).with_name("publication.json")
MEMBERS, EACH = 10, 10  # partitions per member; all are of one topic
AT_ONCE: Final = 500
LEASE: Final = timedelta(hours=6)


def main() -> None:
    """Measure, print and write publication.json."""
    options = harness.parser(__doc__)
    options.add_argument("--groups", type=int, default=10_000)
    with (
        harness.measuring(options, RESULTS) as bench,
        kafka() as broker,
        postgres() as server,
    ):
        settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        groups = [f"group-{number:05}" for number in range(bench.options.groups)]
        figures = measure(server.url("fairlead"), settings, groups)
        bench.write(figures)
        bench.show("Publication", ("what", "figure"), figures.items())


def measure(url: str, settings: KafkaSettings, groups: list[str]) -> dict[str, Any]:
    """Approve one plan per group, publish all of them, and return the figures."""
    engine = create_store_engine(url)
    store = PlanStore(engine)
    for first in range(0, len(groups), AT_ONCE):
        stored = store.record_decisions(
            [proposed(group) for group in groups[first : first + AT_ONCE]]
        )
        plans = [decision.plan for decision in stored if decision.plan is not None]
        store.approve_all(plans, ["agreed"] * len(plans), "policy")
    with PlanTopic(settings) as topic:
        topic.ensure()
        began, cpu = time.perf_counter(), time.process_time()
        done = list(
            reconcile(
                store,
                groups,
                live=described,
                topic=topic,
                options=PublishOptions(LEASE),
                now=datetime.now(UTC),
            )
        )
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
    engine.dispose()
    return {
        "groups": sum(result.record is not None for result in done),
        "partitions_each": MEMBERS * EACH,
        "seconds": round(took, 1),
        "cpu_seconds": round(cpu, 1),
        "groups_per_s": round(len(groups) / took),
    }


def proposed(group: str) -> PlanDraft:
    """Return a draft that moves one partition."""
    owned = {f"member-{number}": {"orders": share} for number, share in enumerate(shares())}
    moved = moves("orders", [1], ["member-0"], ["member-1"])
    until = datetime.now(UTC) + LEASE
    return draft(group, {"orders": MEMBERS * EACH}, owned, moved, expires_at=until)


def described(groups: Iterable[str]) -> dict[str, LiveGroup]:
    """Return descriptions of groups that match the drafts, in place of queries to the broker."""
    return {
        group: LiveGroup(
            group,
            "Stable",
            "fairlead",
            tuple(
                LiveMember(
                    member_id=f"member-{number}-id",
                    client_id=f"member-{number}",
                    instance_id=None,
                    name=f"member-{number}",
                    topics=("orders",),
                    partitions={"orders": tuple(share.tolist())},
                    generation=1,
                )
                for number, share in enumerate(shares())
            ),
            {"orders": MEMBERS * EACH},
            datetime.now(UTC),
        )
        for group in groups
    }


def shares() -> list[np.ndarray[Any, np.dtype[np.int32]]]:
    """Return each member's partition numbers."""
    return np.split(np.arange(MEMBERS * EACH, dtype=np.int32), MEMBERS)


if __name__ == "__main__":
    main()

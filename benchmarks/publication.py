"""How fast approved plans are published: `python -m benchmarks.publication --groups 10000`.

Belongs here: publishing the plans of many groups from a database of its own to a broker of its own,
verification included; printing, and writing publication.json. Does not: making plans (`fleet`).
"""

import argparse
import json
import platform
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.store import METRICS
from fairlead.domain.groups import LiveGroup, LiveMember
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.settings import KafkaSettings
from fairlead.store import PlanDraft, PlanStore, create_store_engine
from fairlead.store.migrate import upgrade
from fairlead.wire.document import MemberShare
from fairlead.workflows.delivery import Terms
from fairlead.workflows.publication import publish_all

RESULTS: Final = Path(__file__).with_name("publication.json")
MEMBERS, EACH = 10, 10  # partitions of each member, of one topic
AT_ONCE: Final = 500
LEASE: Final = timedelta(hours=6)


def main() -> None:
    """Publish, print and write publication.json."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=10_000)
    groups = [f"group-{number:05}" for number in range(parser.parse_args().groups)]
    with TemporaryDirectory() as folder:
        broker, server = KafkaBroker(Path(folder, "kafka")), Postgres(Path(folder, "postgres"))
        broker.start()
        server.start()
        try:
            url = server.url("fairlead")
            upgrade(url)
            figures = measure(
                url, KafkaSettings(bootstrap_servers=broker.bootstrap_servers), groups
            )
        finally:
            server.stop()
            broker.stop()
    Console().print_json(data=figures)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")


def measure(url: str, kafka: KafkaSettings, groups: list[str]) -> dict[str, Any]:
    """Approve a plan of each group, and publish them all."""
    engine = create_store_engine(url)
    store = PlanStore(engine)
    for first in range(0, len(groups), AT_ONCE):
        stored = store.record_decisions([draft(group) for group in groups[first : first + AT_ONCE]])
        plans = [one.plan for one in stored if one.plan is not None]
        store.approve_all(plans, ["agreed"] * len(plans), "policy")
    with PlanTopic(kafka) as topic:
        topic.ensure()
        waiting = store.approved_unpublished(groups)
        began, cpu = time.perf_counter(), time.process_time()
        done = list(publish_all(store, waiting, live=described, topic=topic, terms=Terms(LEASE)))
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
    engine.dispose()
    return {
        "groups": sum(one.position is not None for one in done),
        "partitions_each": MEMBERS * EACH,
        "seconds": round(took, 1),
        "cpu_seconds": round(cpu, 1),
        "groups_per_s": round(len(groups) / took),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def draft(group: str) -> PlanDraft:
    """Return a draft that moves one partition."""
    now = datetime.now(UTC)
    moves = {"topic": ["orders"], "partition": pa.array([1], pa.int32())}
    return PlanDraft(
        group=group,
        snapshot_id="s1",
        snapshot_at=now,
        reason="the fullest member gets less",
        observed=METRICS,
        assignor="sticky-lag-aware",
        predicted=METRICS,
        moves=pa.table(
            moves | {"previous_member": ["member-0"], "member": ["member-1"], "weight": [1.0]}
        ),
        expires_at=now + LEASE,
        partition_counts={"orders": MEMBERS * EACH},
        members={
            f"member-{number}": MemberShare(("orders",), {"orders": share})
            for number, share in enumerate(shares())
        },
        weights={"orders": np.arange(MEMBERS * EACH, dtype=np.float64)},
    )


def described(groups: Iterable[str]) -> dict[str, LiveGroup]:
    """Describe groups as the drafts have them: asking brokers is not what is measured."""
    return {
        group: LiveGroup(
            group,
            "Stable",
            "fairlead",
            tuple(
                LiveMember(
                    member_id=f"member-{number}-id",
                    client_id=f"member-{number}",
                    host="here",
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
    """Return each member's partitions."""
    return np.split(np.arange(MEMBERS * EACH, dtype=np.int32), MEMBERS)


if __name__ == "__main__":
    main()

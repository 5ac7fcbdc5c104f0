"""How long until a group that a broker assigns has adopted a plan.

`python -m benchmarks.broker_reaction`

Belongs here: a broker with the assignor `fairlead` and a database of their own, groups of plain
confluent-kafka consumers, and one plan after the other, which exchanges a tenth of the partitions;
measuring from when its record is sent until the last partition was revoked and assigned, and what
was revoked though it did not move; printing, and writing broker_reaction.json. Does not: the
consumers (`broker_members`), following (`fairlead.workflows.following`).
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from benchmarks.broker_members import Members, Seat
from benchmarks.store import METRICS
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.sandbox.processes import wait_until
from fairlead.settings import KafkaSettings
from fairlead.store import PlanDraft, PlanStore, create_store_engine
from fairlead.store.migrate import upgrade
from fairlead.wire.document import MemberShare
from fairlead.workflows.delivery import Terms
from fairlead.workflows.following import follow
from fairlead.workflows.nudging import Followed
from fairlead.workflows.telling import tell_groups

RESULTS: Final = Path(__file__).with_suffix(".json")
EACH: Final = 6  # partitions of each member, of one topic
SETTLES_S: Final = 60.0
#: Of the processes that consumers share: a core is left to the broker, and one to the planner.
PROCESSES: Final = 2

Owners = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Adopted:
    """What became of one plan.

    Parameters
    ----------
    verified_s
        Seconds from the beginning of the publication until its record was sent: verification,
        the database, becoming the one sender.
    target_s, adopted_s
        Seconds from then on until the planner knew that the broker's target is the plan's, and
        until the last partition was revoked or assigned.
    nudges
        How many it took.
    moved
        Partitions that change owner by it.
    revoked_in_vain
        Partitions that were taken from a member whose they stay.
    """

    verified_s: float
    target_s: float
    adopted_s: float
    nudges: int
    moved: int
    revoked_in_vain: int


class Measured:
    """One group, its consumers and its planner.

    Parameters
    ----------
    members
        How many consumers.
    settings
        To the cluster.
    url
        Of the database.
    """

    def __init__(self, members: int, settings: KafkaSettings, url: str) -> None:
        self.group = f"group-{members}"
        self.seats = [Seat(self.group, f"m{n:03}", f"{self.group}-t") for n in range(members)]
        self.topic = f"{self.group}-t"
        self.count = members * EACH
        self._settings = settings
        self._url = url
        self._random = np.random.default_rng(1)
        self._owner: Owners = np.repeat(np.arange(members), EACH)

    def run(self, plans: int) -> list[Adopted]:
        """Have the group adopt one plan after the other; the first is not counted."""
        admin = AdminClient(self._settings.librdkafka())
        admin.create_topics([NewTopic(self.topic, self.count)])[self.topic].result(30)
        engine = create_store_engine(self._url)
        with ExitStack() as stack:
            stack.callback(engine.dispose)
            self._store = PlanStore(engine)
            self._topic = stack.enter_context(PlanTopic(self._settings))
            self._gateway = stack.enter_context(KafkaGateway(self._settings))
            self._topic.ensure()
            self._members = stack.enter_context(
                Members(
                    self._settings.bootstrap_servers,
                    self.seats,
                    processes=PROCESSES,
                    config={"group.remote.assignor": "fairlead"},
                )
            )
            found = [self._adopt() for _ in range(plans + 1)]
        return found[1:]  # before the first, targets are Kafka's uniform assignor's

    def _adopt(self) -> Adopted:
        self._settle()
        before = self._owner.copy()
        some = self._random.choice(self.count, size=max(2, self.count // 10), replace=False)
        self._owner[some] = np.roll(self._owner[some], 1)
        (stored,) = self._store.record_decisions([self._draft(before)])
        if stored.plan is None:
            raise RuntimeError("no plan was stored")
        self._store.approve_all([stored.plan], ["agreed"], "policy")
        owned = {seat: set(numbers) for seat, numbers in self._members.owned.items()}
        self._members.take()

        began = time.monotonic()
        followed: list[tuple[Followed, float]] = []
        done = tell_groups(
            self._store,
            [self.group],
            live=self._gateway.live_groups,
            topic=self._topic,
            terms=Terms(timedelta(hours=6)),
            now=datetime.now(UTC),
            at_once=lambda groups: followed.extend(self._follow(groups)),
        )
        if done.results[0].position is None or not followed or not followed[0][0].reached:
            raise RuntimeError(f"not followed: {done.results[0].reason}, {followed}")
        (told, target) = followed[0]
        changes = self._members.until(self._wanted())
        record = self._topic.read(self.group)
        if record is None:
            raise RuntimeError("the plan topic has no record")
        sent = record.published_at.timestamp() - time.time() + time.monotonic()
        stays = {seat: owned[seat] & numbers for seat, numbers in self._wanted().items()}
        return Adopted(
            verified_s=sent - began,
            target_s=target - sent,
            adopted_s=max((one.at for one in changes), default=target) - sent,
            nudges=told.nudges,
            moved=int((before != self._owner).sum()),
            revoked_in_vain=sum(
                len(stays[one.seat] & set(one.partitions)) for one in changes if not one.gained
            ),
        )

    def _follow(self, groups: Collection[str]) -> Iterator[tuple[Followed, float]]:
        for one in follow(
            self._gateway,
            self._settings,
            groups,
            lambda some: self._store.in_state("published", groups=some),
        ):
            yield one, time.monotonic()

    def _settle(self) -> None:
        """Wait until the group is at rest: plans come minutes apart."""

        def settled() -> bool:
            self._members.take()
            if sum(map(len, self._members.owned.values())) != self.count:
                return False
            found = self._gateway.broker_groups([self.group])[self.group]
            return found.state == "Stable" and len(found.members) == len(self.seats)

        if not wait_until(settled, timeout_s=SETTLES_S):
            raise TimeoutError("the group does not settle")

    def _wanted(self) -> dict[Seat, set[int]]:
        return {
            seat: set(np.flatnonzero(self._owner == place).tolist())
            for place, seat in enumerate(self.seats)
        }

    def _draft(self, before: Owners) -> PlanDraft:
        now = datetime.now(UTC)
        moved = np.flatnonzero(before != self._owner)
        names = np.array([seat.name for seat in self.seats])
        moves = {
            "topic": [self.topic] * moved.size,
            "partition": pa.array(moved, pa.int32()),
            "previous_member": names[before[moved]],
            "member": names[self._owner[moved]],
            "weight": np.ones(moved.size),
        }
        return PlanDraft(
            group=self.group,
            snapshot_id="s1",
            snapshot_at=now,
            reason="measured",
            observed=METRICS,
            assignor="measured",
            predicted=METRICS,
            moves=pa.table(moves),
            expires_at=now + timedelta(hours=1),
            partition_counts={self.topic: self.count},
            members={
                seat.name: MemberShare(
                    (self.topic,), {self.topic: np.array(sorted(share), np.int32)}
                )
                for seat, share in self._wanted().items()
            },
            weights={self.topic: np.ones(self.count)},
            topic_ids=self._gateway.broker_groups([self.group])[self.group].topic_ids,
        )


def main() -> None:
    """Measure, print, and write broker_reaction.json."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plans", type=int, default=20)
    parser.add_argument("--members", type=int, nargs="*", default=[10, 100])
    parser.add_argument("--heartbeats-ms", type=int, nargs="*", default=[1000, 5000])
    arguments = parser.parse_args()
    rows = [
        measure(heartbeat_ms, arguments.members, arguments.plans)
        for heartbeat_ms in arguments.heartbeats_ms
    ]
    figures = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "rows": _with_earlier([row for some in rows for row in some]),
    }
    Console().print_json(data=figures)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")


def _with_earlier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the rows of the last time that were not measured now."""
    earlier = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    found = {(row["heartbeat_s"], row["members"]): row for row in [*earlier, *rows]}
    return [found[key] for key in sorted(found)]


def measure(heartbeat_ms: int, sizes: Sequence[int], plans: int) -> list[dict[str, Any]]:
    """Return a row for groups of each size, under a broker of its own."""
    with TemporaryDirectory() as folder:
        heartbeat = {
            "group.consumer.heartbeat.interval.ms": str(heartbeat_ms),
            "group.consumer.min.heartbeat.interval.ms": str(heartbeat_ms),
        }
        broker = KafkaBroker(Path(folder, "kafka"), assignor=True, settings=heartbeat)
        server = Postgres(Path(folder, "postgres"))
        broker.start()
        server.start()
        try:
            url = server.url("fairlead")
            upgrade(url)
            settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
            found = []
            for members in sizes:
                load = os.getloadavg()[0]
                adopted = Measured(members, settings, url).run(plans)
                found.append(
                    {"heartbeat_s": heartbeat_ms / 1000, "members": members}
                    | summary(adopted)
                    | {"load_before": round(load, 1), "load_after": round(os.getloadavg()[0], 1)}
                )
                Console().print(found[-1])
        finally:
            server.stop()
            broker.kill()
    return found


def summary(adopted: Sequence[Adopted]) -> dict[str, Any]:
    """Say how long it took, and what moved."""

    def spread(seconds: Sequence[float]) -> dict[str, float]:
        return {"median": round(statistics.median(seconds), 2), "worst": round(max(seconds), 2)}

    return {
        "plans": len(adopted),
        "verified_s": spread([one.verified_s for one in adopted]),
        "target_s": spread([one.target_s for one in adopted]),
        "adopted_s": spread([one.adopted_s for one in adopted]),
        "nudges": sum(one.nudges for one in adopted),
        "moved": sum(one.moved for one in adopted),
        "revoked_in_vain": sum(one.revoked_in_vain for one in adopted),
    }


if __name__ == "__main__":
    main()

"""Time until a group whose partitions the broker assigns (KIP-848) has adopted a plan.

`python -m benchmarks.broker_reaction`

A separate broker has the assignor `fairlead`; the groups are plain confluent-kafka consumers. Each
plan exchanges a tenth of the partitions. The benchmark measures the time from the plan's record
until the last partition was assigned, and counts partitions that were revoked needlessly.

Belongs here: publishing successive plans, the measurements, printing, and writing
broker_reaction.json. Belongs elsewhere: the consumers (`broker_members`), waiting until the broker
has adopted a plan (`fairlead.workflows.following`).
"""

import statistics
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks import harness
from benchmarks.broker_members import Members, Seat
from benchmarks.plans import draft, moves
from benchmarks.services import create_topics, kafka, postgres, wait_until
from fairlead.domain.records import PlanDraft
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.following import follow
from fairlead.workflows.rebalancing import BrokerAdoption
from fairlead.workflows.reconciling import reconcile

RESULTS: Final = Path(__file__).with_suffix(".json")
EACH: Final = 6  # partitions per member; all are of one topic
SETTLES_S: Final = 60.0
#: Number of consumer processes: few, so that cores are left for the broker and the planner.
PROCESSES: Final = 2

Owners = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Adopted:
    """The adoption of one plan.

    Parameters
    ----------
    verified_s
        Seconds from the start of the publication until the record was sent. This includes
        verification, database access, and fencing other publishers.
    target_s
        Seconds from the record until the planner knew that the broker's target assignment is that
        of the plan.
    adopted_s
        Seconds from the record until the last partition was revoked or assigned.
    triggers
        Number of times that the planner joined the group for a moment, to cause a rebalance.
    moved
        Number of partitions that the plan moves.
    revoked_needlessly
        Number of revoked partitions that the plan does not move.
    """

    verified_s: float
    target_s: float
    adopted_s: float
    triggers: int
    moved: int
    revoked_needlessly: int


class Measured:
    """One group, its consumers and its planner.

    Parameters
    ----------
    members
        Number of consumers.
    settings
        Settings of the cluster.
    url
        Address of the database.
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
        """Publish `plans` + 1 plans; return the adoption of all except the first."""
        create_topics(self._settings.bootstrap_servers, {self.topic: self.count})
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
            adopted = [self._adopt() for _ in range(plans + 1)]
        return adopted[1:]  # the first starts from an assignment of Kafka's uniform assignor

    def _adopt(self) -> Adopted:
        self._settle()
        before = self._owner.copy()
        few = self._random.choice(self.count, size=max(2, self.count // 10), replace=False)
        self._owner[few] = np.roll(self._owner[few], 1)
        (stored,) = self._store.record_decisions([self._draft(before)])
        if stored.plan is None:
            raise RuntimeError("no plan was stored")
        self._store.approve_all([stored.plan], ["agreed"], "policy")
        owned = {seat: set(numbers) for seat, numbers in self._members.owned.items()}
        self._members.take()

        began = time.monotonic()
        (done,) = reconcile(
            self._store,
            [self.group],
            live=self._gateway.live_groups,
            topic=self._topic,
            options=PublishOptions(timedelta(hours=6)),
            now=datetime.now(UTC),
        )
        followed = list(self._follow([self.group]))
        if not done.published or not followed or not followed[0][0].reached:
            raise RuntimeError(f"not followed: {done.reason}, {followed}")
        (adoption, target) = followed[0]
        changes = self._members.until(self._wanted())
        record = self._topic.read(self.group)
        if record is None:
            raise RuntimeError("the plan topic has no record")
        sent = record.published_at.timestamp() - time.time() + time.monotonic()
        stays = {seat: owned[seat] & numbers for seat, numbers in self._wanted().items()}
        return Adopted(
            verified_s=sent - began,
            target_s=target - sent,
            adopted_s=max((change.at for change in changes), default=target) - sent,
            triggers=adoption.triggers,
            moved=int((before != self._owner).sum()),
            revoked_needlessly=sum(
                len(stays[change.seat] & set(change.partitions))
                for change in changes
                if not change.gained
            ),
        )

    def _follow(self, groups: Collection[str]) -> Iterator[tuple[BrokerAdoption, float]]:
        for adoption in follow(
            self._gateway,
            self._settings,
            groups,
            lambda names: self._store.in_state("published", groups=names),
        ):
            yield adoption, time.monotonic()

    def _settle(self) -> None:
        """Wait until the group is stable, as it is between real plans, which are minutes apart."""

        def settled() -> bool:
            self._members.take()
            if sum(map(len, self._members.owned.values())) != self.count:
                return False
            found = self._gateway.broker_groups([self.group])[self.group]
            return found.state == "Stable" and len(found.members) == len(self.seats)

        wait_until(settled, "the group settles", within_s=SETTLES_S, every_s=0.05)

    def _wanted(self) -> dict[Seat, set[int]]:
        return {
            seat: set(np.flatnonzero(self._owner == place).tolist())
            for place, seat in enumerate(self.seats)
        }

    def _draft(self, before: Owners) -> PlanDraft:
        moved = np.flatnonzero(before != self._owner)
        names = np.array([seat.name for seat in self.seats])
        found = self._gateway.broker_groups([self.group])[self.group]
        return draft(
            self.group,
            {self.topic: self.count},
            {seat.name: {self.topic: sorted(share)} for seat, share in self._wanted().items()},
            moves(self.topic, moved, names[before[moved]], names[self._owner[moved]]),
            expires_at=datetime.now(UTC) + timedelta(hours=1),
            topic_ids=found.topic_ids,
        )


def main() -> None:
    """Measure, print, and write broker_reaction.json."""
    options = harness.parser(__doc__)
    options.add_argument("--plans", type=int, default=20)
    options.add_argument("--members", type=int, nargs="*", default=[10, 100])
    options.add_argument("--heartbeats-ms", type=int, nargs="*", default=[1000, 5000])
    with harness.measuring(options, RESULTS) as bench:
        given = bench.options
        rows = [
            row
            for heartbeat_ms in given.heartbeats_ms
            for row in measure(heartbeat_ms, given.members, given.plans)
        ]
        bench.write({"rows": rows})
        names = ("verified_s", "target_s", "adopted_s")
        bench.show(
            f"{given.plans} plans one after the other: medians, and the slowest",
            ("heartbeat, s", "members", "verified, s", "target, s", "adopted, s"),
            (
                (
                    *(row["heartbeat_s"], row["members"]),
                    *(f"{row[name]['median']:.2f}; {row[name]['worst']:.2f}" for name in names),
                )
                for row in rows
            ),
        )


def measure(heartbeat_ms: int, sizes: Sequence[int], plans: int) -> list[dict[str, Any]]:
    """Measure a group of each size, on a separate broker; return one row per group."""
    heartbeat = {
        "group.consumer.heartbeat.interval.ms": str(heartbeat_ms),
        "group.consumer.min.heartbeat.interval.ms": str(heartbeat_ms),
    }
    with kafka(assignor=True, settings=heartbeat) as broker, postgres() as server:
        settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        return [
            {"heartbeat_s": heartbeat_ms / 1000, "members": members}
            | summary(Measured(members, settings, server.url("fairlead")).run(plans))
            for members in sizes
        ]


def summary(adopted: Sequence[Adopted]) -> dict[str, Any]:
    """Return medians of the durations, and the number of moves."""

    def spread(seconds: Sequence[float]) -> dict[str, float]:
        return {"median": round(statistics.median(seconds), 2), "worst": round(max(seconds), 2)}

    return {
        "plans": len(adopted),
        "verified_s": spread([change.verified_s for change in adopted]),
        "target_s": spread([change.target_s for change in adopted]),
        "adopted_s": spread([change.adopted_s for change in adopted]),
        "triggers": sum(change.triggers for change in adopted),
        "moved": sum(change.moved for change in adopted),
        "revoked_needlessly": sum(change.revoked_needlessly for change in adopted),
    }


if __name__ == "__main__":
    main()

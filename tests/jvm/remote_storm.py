"""Random events for a group of plain consumers whose broker follows plans (KIP-848).

Belongs here: differences from `tests.fairlead.followers.storm`, which are the planner's actions and
the check that the group has settled. Belongs elsewhere: the checks at the end.
"""

import logging
import time
from dataclasses import dataclass
from typing import Any

from fairlead.domain.records import StoredPlan
from fairlead.errors import FairleadError
from fairlead.kafka.consumer_protocol import ASSIGNOR, BrokerGroup
from fairlead.kafka.gateway import KafkaGateway
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.wire.document import PlanDocument
from fairlead.workflows.following import follow
from fairlead.workflows.rebalancing import BrokerPlan
from tests.fairlead.followers.storm import NAMES, Storm
from tests.jvm.remote import Cluster
from tests.stored import stored_plan

# clocks: the interval of the planner's checks

log = logging.getLogger(__name__)

#: Seconds between two checks by the planner.
CHECK_S = 1.0


@dataclass(kw_only=True)
class RemoteStorm(Storm):
    """A group whose partitions the broker assigns, and its events.

    Parameters
    ----------
    cluster
        The cluster, with the planner's topics.
    gateway
        Gateway to the same cluster.
    lone
        The only broker, which may be restarted; None if there are several.
    """

    cluster: Cluster
    gateway: KafkaGateway
    lone: KafkaBroker | None = None
    triggers: int = 0
    _plan: PlanDocument | None = None
    _check_at: float = 0.0

    @property
    def following(self) -> dict[str, Any]:
        """Settings of consumers for which the broker follows plans."""
        return {"group_protocol": "consumer", "group_remote_assignor": ASSIGNOR}

    def plan(self) -> str:
        """Publish a plan with random shares for all `NAMES`, even those of absent consumers."""
        self.version += 1
        shares: dict[str, dict[str, list[int]]] = {name: {self.topic: []} for name in NAMES}
        for partition in range(self.partitions):
            shares[self.rng.choice(NAMES)][self.topic].append(partition)
        counts = {self.topic: self.partitions}
        self._plan = self.cluster.publish(self.group, self.version, shares, counts)
        self._check_at = 0.0  # the planner checks at once after a publication
        return f"plan version {self.version}"

    def tombstone(self) -> str | None:
        """Withdraw the plan."""
        if self._plan is None:
            return None
        self._plan = None
        self.cluster.withdraw(self.group, self.version)
        return "withdrawn"

    def garbage(self) -> str:
        """Write garbage instead of a plan, with the group's key."""
        self.cluster.garble(self.group)
        return "garbage"

    def restart(self) -> str:
        """Stop or kill the only broker, and start it again."""
        assert self.lone is not None
        self.outages += 1
        crash = self.rng.random() < 1 / 2
        (self.lone.kill if crash else self.lone.stop)()
        self.lone.start()
        return "broker crashes" if crash else "broker restarts"

    def _settled(self) -> bool:
        """Return whether members own the assigned partitions; if not, run the planner."""
        if self._as_planned():
            self._check_at = time.monotonic() + CHECK_S
            return True
        if time.monotonic() >= self._check_at:
            for adoption in follow(
                self.gateway, self.gateway.settings, [self.group], self._published
            ):
                self.triggers += adoption.triggers
                log.info("%s", adoption)
            self._check_at = time.monotonic() + CHECK_S
        return False

    def _as_planned(self) -> bool:
        try:
            found = self.gateway.broker_groups([self.group])[self.group]
        except FairleadError:
            return False
        owned = {name: worker.state.get("owned") for name, worker in self.workers.items()}
        numbers = sorted(number for share in owned.values() for number in share or [])
        return (
            len(found.consumers) == len(self.workers)
            and owned == _targets(found, self.topic)
            and numbers == list(range(self.partitions))
            and (
                self._plan is None
                or BrokerPlan(self._plan, {self.topic: self.partitions}).reached(found)
            )
        )

    def _published(self, _: object) -> list[StoredPlan]:
        return [] if self._plan is None else [stored_plan(self._plan)]


def _targets(found: BrokerGroup, topic: str) -> dict[str, list[int]]:
    return {
        consumer.client_id: list(consumer.target.get(topic, ())) for consumer in found.consumers
    }

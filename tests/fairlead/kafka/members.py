"""Plain confluent-kafka consumers of the consumer protocol (KIP-848), polled by one thread.

Belongs here: consumers that join, leave and record revocations; descriptions of their groups as if
the broker's assignor followed plans. Belongs elsewhere: anything about plans.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from confluent_kafka import Consumer, TopicPartition

from fairlead.kafka.consumer_protocol import ASSIGNOR, BrokerGroup
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings
from fairlead.workflows.rebalancing import Describe
from tests.waiting import eventually

#: Seconds to wait for close(), which may hang for KIP-848 consumers; then the session expires.
CLOSES_S = 30.0
Owned = dict[str, dict[str, list[int]]]


def as_followers(gateway: KafkaGateway) -> Describe:
    """Return a function that describes groups as if their assignor were `fairlead`."""

    def describe(groups: Sequence[str]) -> dict[str, BrokerGroup]:
        described = gateway.broker_groups(groups)
        return {group: replace(described[group], assignor=ASSIGNOR) for group in described}

    return describe


class BrokerAssigned:
    """Consumers of groups whose assignment the broker computes. A context manager.

    Parameters
    ----------
    settings
        Settings of the cluster.
    config
        Properties of every consumer, which override the settings.
    """

    def __init__(self, settings: KafkaSettings, **config: Any) -> None:
        self._settings, self._config = settings, {"group.protocol": "consumer", **config}
        self._consumers: dict[str, Consumer] = {}
        self._turn = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        #: Name and partitions of each revocation, in order.
        self.revoked: list[tuple[str, list[tuple[str, int]]]] = []
        #: Values of the records that the consumers have read.
        self.values: list[bytes] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._done.set()
        self._thread.join()
        for name in list(self._consumers):
            self.leave(name)

    def join(self, group: str, name: str, topics: list[str], **config: Any) -> None:
        """Let a consumer join; `name` is the client id unless `config` sets another one."""
        consumer = Consumer(
            self._settings.librdkafka(
                **{
                    "group.id": group,
                    "client.id": name,
                    "auto.offset.reset": "earliest",
                    **self._config,
                    **{key.replace("_", "."): value for key, value in config.items()},
                }
            )
        )

        def revoke(_: Consumer, partitions: list[TopicPartition]) -> None:
            self.revoked.append(
                (name, sorted((partition.topic, partition.partition) for partition in partitions))
            )

        consumer.subscribe(topics, on_revoke=revoke)
        with self._turn:
            self._consumers[name] = consumer

    def leave(self, name: str) -> None:
        """Let a consumer leave its group."""
        with self._turn:
            closing = threading.Thread(target=self._consumers.pop(name).close, daemon=True)
            closing.start()
            closing.join(CLOSES_S)  # clock: some consumers never close

    def owned(self) -> Owned:
        """Return the partitions that each consumer owns, by topic."""
        found: Owned = {}
        with self._turn:
            for name, consumer in self._consumers.items():
                found[name] = {}
                for partition in sorted(
                    consumer.assignment(), key=lambda p: (p.topic, p.partition)
                ):
                    found[name].setdefault(partition.topic, []).append(partition.partition)
        return found

    def settle(self, partitions: int) -> None:
        """Wait until this many partitions are owned."""
        eventually(lambda: self._count() == partitions, f"{partitions} partitions are owned")

    def _count(self) -> int:
        shares = self.owned().values()
        return sum(len(numbers) for share in shares for numbers in share.values())

    def _poll(self) -> None:
        while not self._done.is_set():
            with self._turn:
                for consumer in self._consumers.values():
                    message = consumer.poll(0)
                    if message is not None and message.error() is None:
                        self.values.append(message.value() or b"")
            self._done.wait(0.02)  # clock: the time between polls

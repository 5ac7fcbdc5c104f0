"""Kafka clients that the plan followers of one process share, and requests of these clients.

Belongs here: sharing clients, and deleting them. Belongs elsewhere: topics and records
(`agreement_log`, `plan_source`).

A client needs threads and connections even while it is not used. So plan followers with equal
connection settings share admin clients, producers and plan readers. But each plan follower has its
own consumer of the coordination topic.
"""

import os
from collections.abc import Hashable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar
from weakref import WeakSet, WeakValueDictionary

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from fairlead.wire.agreement import LARGEST_RECORD
from fairlead.wire.partitions import kafka_uuid

Answer = TypeVar("Answer")

#: Seconds. Maximum time for sending a record.
_SEND_S: Final = 2.0
_SENDING: Final = {
    "acks": "all",
    # The client sends a record once; the member decides whether to send a refused record again.
    "retries": 0,
    "message.timeout.ms": int(_SEND_S * 1000),
    "linger.ms": 0,
    # Without compression, an assignment record of 50,000 partitions exceeds the megabyte that
    # brokers accept by default. Every client can read gzip.
    "compression.type": "gzip",
    "message.max.bytes": LARGEST_RECORD,
    "reconnect.backoff.max.ms": 1000,
}

#: Maps each key to its shared client. A client is deleted when no plan follower uses it any more.
shared: Final = WeakValueDictionary[Hashable, Any]()
#: Clients that do not work and must not be shared with further plan followers.
_forgotten: Final = WeakSet[Any]()


class Sender(Producer):
    """A producer that sends a record once, and drops unsent records when it is deleted."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        super().__init__({**connection, **_SENDING})

    def __del__(self) -> None:
        """Drop unsent records, and call the callbacks of sent records."""
        with suppress(RuntimeError):  # raised if the constructor failed
            self.purge(blocking=False)
            self.flush(0)


Client = TypeVar("Client", AdminClient, Sender)


def shared_client(kind: type[Client], connection: Mapping[str, Any]) -> Client:
    """Return a client of the class `kind`; plan followers with equal settings share one client."""
    key = (kind, key_of(connection))
    client: Client | None = shared.get(key)
    if client is None or client in _forgotten:  # two threads may create two, which is harmless
        client = shared[key] = kind(dict(connection))
    return client


def forget(client: AdminClient | Sender) -> None:
    """Stop sharing a client that does not work; `shared_client` then creates a new one."""
    _forgotten.add(client)


def key_of(connection: Mapping[str, Any]) -> Hashable:
    """Return a key that is the same for equal connection settings in one process.

    The key contains the process id, because a forked process lacks the client's threads. For
    callbacks and loggers it contains `id()`, because some are not hashable. The ids stay valid,
    because the shared client keeps these objects alive.
    """
    reach = {
        name: value if isinstance(value, str | bytes | int | float) else id(value)
        for name, value in connection.items()
    }
    return os.getpid(), frozenset(reach.items())


def described_topic(admin: AdminClient, topic: str, timeout_s: float) -> TopicDescription:
    """Return a topic's id and partitions.

    Parameters
    ----------
    admin
        Sends the request. The caller must keep a reference until this function returns.
    topic
        The topic's name.
    timeout_s
        Longest time of the request.

    Raises
    ------
    KafkaException
        The topic does not exist, or no broker answers in time.
    """
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)
    return answer_in_time(described[topic], timeout_s)


def topic_id(described: TopicDescription) -> str:
    """Return the id that the cluster gave a topic, as Kafka writes it."""
    return kafka_uuid(str(described.topic_id))


def answer_in_time(request: Future[Answer], timeout_s: float) -> Answer:
    """Return the response to a request; wait one second longer than its own time-out.

    Raises
    ------
    KafkaException
        The request failed or timed out.
    """
    try:
        return request.result(timeout_s + 1)
    except TimeoutError as error:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error

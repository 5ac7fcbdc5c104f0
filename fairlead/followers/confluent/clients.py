"""What the followers of one process share: the clients that ask and send, and readers of plans.

Belongs here: who shares what, and for how long. Does not: what is asked, sent or read through it.

A client costs threads and connections even while nobody uses it. Shared is what looks the same
from each follower; the tail of the pin topic is its own.
"""

import os
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet, WeakValueDictionary

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from fairlead.wire.pins import LARGEST_RECORD

#: How long a record may be on its way before nobody waits for it any more.
_SEND_S: Final = 2.0
_SENDING: Final = {
    "acks": "all",
    # A record that is refused is not there, and one that is lost is not waited for: whoever sent
    # it decides what then, and the client sends it once.
    "retries": 0,
    "message.timeout.ms": int(_SEND_S * 1000),
    "linger.ms": 0,
    # A pin of 50,000 partitions is larger than the megabyte that brokers take; compressed it is
    # not. Every client can read gzip.
    "compression.type": "gzip",
    "message.max.bytes": LARGEST_RECORD,
    "reconnect.backoff.max.ms": 1000,
}

#: For as long as somebody holds it.
shared: Final = WeakValueDictionary[Hashable, Any]()
_forgotten: Final = WeakSet[Any]()


class Sender(Producer):
    """A producer that keeps nothing for longer than `_SEND_S`, not even when it is let go."""

    def __del__(self) -> None:
        """Send no more, and tell what has become of what was sent."""
        with suppress(RuntimeError):  # which says that it was never made
            self.purge(blocking=False)
            self.flush(0)


def admin_client(connection: Mapping[str, Any]) -> AdminClient:
    """Return what asks the cluster, made unless another follower holds it."""
    key = (AdminClient, key_of(connection))
    client: AdminClient | None = shared.get(key)
    if client is None or client in _forgotten:  # of two made at once each does its work
        client = shared[key] = AdminClient(dict(connection))
    return client


def sender(connection: Mapping[str, Any]) -> Sender:
    """Return what sends pins, made unless another follower holds it."""
    key = (Sender, key_of(connection))
    client: Sender | None = shared.get(key)
    if client is None or client in _forgotten:
        client = shared[key] = Sender({**connection, **_SENDING})
    return client


def forget(client: AdminClient | Sender) -> None:
    """Let whoever asks for a client next have a new one, where this one does not do its work."""
    _forgotten.add(client)


def key_of(connection: Mapping[str, Any]) -> Hashable:
    """Return what is equal for followers of one process that reach the cluster in the same way.

    A fork has none of its parent's threads. Callbacks and loggers count by their ids: some have no
    hash, and whatever is shared holds them.
    """
    reach = {
        name: value if isinstance(value, str | bytes | int | float) else id(value)
        for name, value in connection.items()
    }
    return os.getpid(), frozenset(reach.items())

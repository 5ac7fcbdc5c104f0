"""Run one consumer in a separate process.

    python worker.py '{"journal": "...", "config": {...}, "topics": [...], ...}'

The consumer is a PlanConsumer; with `"plain": true`, it is confluent-kafka's own. The process
writes each event to the journal at once, as a line of JSON.
"""

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from fairlead.errors import ConfigurationError
from fairlead.followers import FollowOptions
from fairlead.followers.confluent import PlanConsumer

# clocks: times show whether two processes owned a partition at once

EXPECTED = {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT}


class Journal:
    """A file of events, one per line."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, event: str, **values: Any) -> None:
        """Write one event, with the time on the machine's clock, which all processes share."""
        line = json.dumps({"at": time.monotonic(), "event": event, **values})
        os.write(self._file, f"{line}\n".encode())


def build(spec: dict[str, Any]) -> Consumer:
    if spec.get("plain"):
        return Consumer(spec["config"])
    options = FollowOptions(plan_topic=spec["plan_topic"], rejoin_jitter_s=0.2)
    return PlanConsumer(
        spec["config"],
        options=options,
        coordination_topic=spec["coordination_topic"],
        group_secret=spec["group_secret"],
    )


@contextlib.contextmanager
def until_terminated() -> Iterator[list[bool]]:
    """Yield a list that stays empty until SIGTERM."""
    ended: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    yield ended


def consume(consumer: Consumer, journal: Journal) -> None:
    """Poll once; write the message to the journal, then store its offset."""
    message = consumer.poll(0.1)
    if message is None:
        return
    if (error := message.error()) is not None:
        if error.code() not in EXPECTED:
            journal.note("error", text=error.str())
        return
    journal.note("message", topic=message.topic(), value=(message.value() or b"").decode())
    consumer.store_offsets(message)


def main(spec: dict[str, Any]) -> None:
    """Consume until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(created).3f %(message)s")
    journal = Journal(spec["journal"])
    consumer = build(spec)

    def owns(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if spec.get("plain"):
            consumer.assign(partitions)
        share = [[p.topic, p.partition] for p in partitions]
        journal.note("own", partitions=share, member=consumer.memberid())

    def revoked(_: Consumer, __: list[TopicPartition]) -> None:
        journal.note("release")

    version = None
    with until_terminated() as ended:
        try:
            journal.note("ready")
            consumer.subscribe(spec["topics"], on_assign=owns, on_revoke=revoked)
            while not ended:
                consume(consumer, journal)
                if isinstance(consumer, PlanConsumer) and version != (
                    version := consumer.status().plan_version
                ):
                    journal.note("version", version=version)
        except ConfigurationError as error:
            journal.note("refused", text=str(error))
        consumer.unsubscribe()  # librdkafka can abort if close() unsubscribes
        consumer.close()
        journal.note("closed")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

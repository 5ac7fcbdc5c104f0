"""One consumer of the storm: it records every message, and the partitions that it owns.

    python storm_worker.py '{"client": "aiokafka", "configs": {...}, "topic": "t", "folder": "..."}'

The consumer writes two files. `messages` has a line for each message: its partition, number and
offset, written before the offset can be committed. It also has a line for each assigned partition:
only the partition. `state` is replaced at each change. On SIGTERM, the consumer leaves the group
and ends.
"""

import asyncio
import json
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from aiokafka.abc import ConsumerRebalanceListener as AiokafkaListener
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from kafka import ConsumerRebalanceListener as KafkaPythonListener

from fairlead.followers import FollowOptions, aiokafka, confluent, kafka_python
from fairlead.followers.core.status import FollowerStatus

log = logging.getLogger(__name__)

#: Name of confluent-kafka's own consumer, which is no plan follower.
PLAIN = "plain confluent-kafka"


class Notes(KafkaPythonListener, AiokafkaListener):  # type: ignore[misc] # neither is typed
    """Writes the worker's files; as a rebalance listener, it also records rebalances."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._messages = (folder / "messages").open("a", encoding="ascii")
        self._known: dict[str, Any] = {}
        #: Revoked partitions. Until the next assignment, clients still list them as assigned.
        self._revoked: set[int] = set()
        self._lock = threading.Lock()  # kafka-python calls its listener from another thread
        self.stopping = False
        signal.signal(signal.SIGTERM, self._stop)

    def read(self, batches: Iterable[list[Any]]) -> None:
        """Record messages; they are in the file when this returns."""
        for records in batches:
            self._messages.writelines(
                f"{r.partition} {r.value.decode()} {r.offset}\n" for r in records
            )
        self._messages.flush()

    def read_message(self, message: Message) -> None:
        """Record one message of confluent-kafka; it is in the file when this returns."""
        number = (message.value() or b"").decode()
        self._messages.write(f"{message.partition()} {number} {message.offset()}\n")
        self._messages.flush()

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Record that partitions now belong to this consumer."""
        numbers = [partition.partition for partition in assigned]
        self._messages.writelines(f"{number}\n" for number in numbers)
        self._messages.flush()
        with self._lock:
            self._revoked.difference_update(numbers)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Record at once that partitions no longer belong to this consumer."""
        with self._lock:
            self._revoked.update(partition.partition for partition in revoked)
            if self._known:
                self._write(self._known)

    def state(self, owned: Iterable[tuple[str, int]], status: FollowerStatus | None = None) -> None:
        """Record the owned partitions and, for a plan follower, the followed plan."""
        known: dict[str, Any] = {"owned": sorted(partition for _, partition in owned)}
        if status is not None:
            known |= {
                "version": status.plan_version,
                "latest": status.latest_version,
                "problem": status.latest_problem is not None,
                "joined": status.rebalances > 0,
                "rebalances": status.rebalances,
            }
        with self._lock:
            self._write(known)

    def _write(self, known: dict[str, Any]) -> None:
        known = {**known, "owned": [n for n in known["owned"] if n not in self._revoked]}
        if known != self._known:
            new = self._folder / "state.new"
            new.write_text(json.dumps(known))
            new.rename(self._folder / "state")
            self._known = known

    def _stop(self, *_: object) -> None:
        self.stopping = True


def run_kafka_python(topic: str, configs: dict[str, Any], notes: Notes) -> None:
    """Read with kafka-python until SIGTERM."""
    consumer = kafka_python.PlanConsumer(**configs)
    consumer.subscribe([topic], listener=notes)
    while not notes.stopping:
        notes.read(consumer.poll(timeout_ms=100).values())
        notes.state(consumer.assignment(), consumer.plan_assignor.status())
    consumer.close()


async def run_aiokafka(topic: str, configs: dict[str, Any], notes: Notes) -> None:
    """Read with aiokafka until SIGTERM."""
    consumer = aiokafka.PlanConsumer(**configs)
    consumer.subscribe([topic], listener=notes)
    await consumer.start()
    while not notes.stopping:
        notes.read((await consumer.getmany(timeout_ms=100)).values())
        notes.state(consumer.assignment(), consumer.plan_assignor.status())
    # Record now that nothing is owned: `stop` calls no listener, and is slow if a broker is frozen.
    notes.state((), consumer.plan_assignor.status())
    await consumer.stop()


def run_confluent(topic: str, configs: dict[str, Any], notes: Notes) -> None:
    """Read with confluent-kafka until SIGTERM; settings have kafka-python's names."""
    options = FollowOptions(
        plan_topic=configs.pop("plan_topic"), rejoin_jitter_s=configs.pop("rejoin_jitter_s")
    )
    consumer = confluent.PlanConsumer(
        librdkafka(configs), options=options, coordination_topic=f"{options.plan_topic}-agreement"
    )
    poll(consumer, topic, notes, consumer.status)


def run_plain(topic: str, configs: dict[str, Any], notes: Notes) -> None:
    """Read with confluent-kafka's own consumer, which follows no plans."""
    poll(Consumer(librdkafka(configs)), topic, notes, lambda: None)


def librdkafka(configs: dict[str, Any]) -> dict[str, Any]:
    """Return kafka-python's settings with librdkafka's names."""
    refresh_ms = configs.pop("metadata_max_age_ms")
    return {
        **{name.replace("_", "."): value for name, value in configs.items()},
        "topic.metadata.refresh.interval.ms": refresh_ms,
        "enable.auto.offset.store": False,  # `poll` stores offsets after it has recorded messages
        "on_commit": note_refusal,
    }


def note_refusal(error: KafkaError | None, _: object) -> None:
    """Log a refused commit, because librdkafka does not."""
    if error is not None and error.code() != KafkaError._NO_OFFSET:
        log.warning("Not committed: %s", error)


def poll(
    consumer: Consumer, topic: str, notes: Notes, status: Callable[[], FollowerStatus | None]
) -> None:
    """Read messages one by one until SIGTERM."""

    def lost(_: Consumer, partitions: list[TopicPartition]) -> None:
        log.warning("partitions lost")
        notes.on_partitions_revoked(partitions)

    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: notes.on_partitions_assigned(partitions),
        on_revoke=lambda _, partitions: notes.on_partitions_revoked(partitions),
        on_lost=lost,
    )
    while not notes.stopping:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            notes.read_message(message)
            consumer.store_offsets(message)
        notes.state(
            [(partition.topic, partition.partition) for partition in consumer.assignment()],
            status(),
        )
    consumer.close()


def concerns_offsets(record: logging.LogRecord) -> bool:
    """Return whether a log record of kafka-python is about offsets, or above the debug level."""
    offset_lines = ("Sending offset-commit", "Setting offset")
    return record.levelno > logging.DEBUG or str(record.msg).startswith(offset_lines)


def main(raw: str) -> None:
    """Run one worker."""
    task = json.loads(raw)
    folder = Path(task["folder"])
    logging.basicConfig(
        filename=folder / "log", level=logging.INFO, format="%(asctime)s %(name)s %(message)s"
    )
    of_offsets = logging.getLogger("kafka.coordinator.consumer")
    of_offsets.setLevel(logging.DEBUG)
    of_offsets.addFilter(concerns_offsets)
    notes = Notes(folder)
    if task["client"] == "aiokafka":
        asyncio.run(run_aiokafka(task["topic"], task["configs"], notes))
    elif task["client"] == "confluent-kafka":
        run_confluent(task["topic"], task["configs"], notes)
    elif task["client"] == PLAIN:
        run_plain(task["topic"], task["configs"], notes)
    else:
        run_kafka_python(task["topic"], task["configs"], notes)


if __name__ == "__main__":
    main(sys.argv[1])

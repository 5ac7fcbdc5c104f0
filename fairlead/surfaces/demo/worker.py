"""One consumer of the demo: a process that uses kafka-python and works at a fixed rate.

Run as `python -m fairlead.surfaces.demo.worker`. The process reports on standard output, one JSON
object per line: `assigned` after each rebalance, `processed` while it works. The process ends when
standard input ends.

Belongs here: consuming. Belongs elsewhere: measuring the effect of plans (`run`).
"""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor

from fairlead.followers.kafka_python import PlanConsumer
from fairlead.wire.partitions import by_topic

#: Seconds between a worker's reports. A poll returns at most as many records as the worker can
#: process in this time.
STEP_S = 0.5
#: Seconds. Longest delay that a worker makes up for. A busy machine may delay a worker. The worker
#: then works faster until its average rate is right again.
CAUGHT_UP_S = 1.0
#: Bytes of a fetch from a partition: about ten records, so that the worker reads its partitions in
#: turn. If a fetch returned a whole backlog, the worker would read a single partition for half a
#: minute, and samples could not show which partitions fall behind.
FETCH_BYTES = 1_000


def report(event: str, **values: object) -> None:
    """Write one event for the parent process."""
    print(json.dumps({"event": event, **values}), flush=True)  # noqa: T201


class ReportAssignments(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python is untyped
    """Reports each assignment."""

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Do nothing: the consumer commits automatically."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Report the new assignment."""
        report("assigned", partitions=by_topic(sorted(assigned)))


def consume(arguments: argparse.Namespace, stopped: threading.Event) -> Generator[str | None]:
    """Consume the partitions that plans assign or, without a plan topic, that `range` assigns.

    Yields
    ------
    The partition of each record, and None after a poll without records.
    """
    configuration = {
        "bootstrap_servers": arguments.bootstrap_servers,
        "group_id": arguments.group,
        "client_id": arguments.name,
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 1_000,
        "max_partition_fetch_bytes": FETCH_BYTES,
        "fetch_min_bytes": FETCH_BYTES,  # few fetches, because many consumers share a machine
    }
    consumer = (
        PlanConsumer(plan_topic=arguments.plan_topic, **configuration)
        if arguments.plan_topic
        else KafkaConsumer(partition_assignment_strategy=(RangePartitionAssignor,), **configuration)
    )
    consumer.subscribe(arguments.topics.split(","), listener=ReportAssignments())
    try:
        while not stopped.is_set():
            batches: dict[TopicPartition, list[Any]] = consumer.poll(
                timeout_ms=int(STEP_S * 1000), max_records=max(1, int(arguments.rate * STEP_S))
            )
            for at, batch in batches.items():
                for _ in batch:
                    yield f"{at.topic}-{at.partition}"
            if not batches:
                yield None
    finally:
        consumer.close()


def work(
    records: Iterable[str | None],
    rate: int,
    expensive: Mapping[str, float],
    stopped: threading.Event,
) -> None:
    """Process records at the requested rate until `stopped` is set.

    Processing is simulated by waiting, which the consumer measures as time per record. If a busy
    machine causes a delay, the next waits are shorter.
    """
    count, behind_s, ended_at, reported_at = 0, 0.0, 0.0, 0.0
    for partition in records:
        if partition is not None:
            until = time.monotonic() + expensive.get(partition, 1.0) / rate - behind_s
            stopped.wait(max(0.0, until - time.monotonic()))
            ended_at = time.monotonic()
            behind_s = min(max(0.0, ended_at - until), CAUGHT_UP_S)
            count += 1
        if count and (partition is None or ended_at - reported_at > STEP_S):
            report("processed", records=count, ended_at=ended_at)
            count, reported_at = 0, ended_at


def stop_after_input(stopped: threading.Event) -> None:
    """Set `stopped` when standard input ends."""
    sys.stdin.read()
    stopped.set()


def main() -> None:
    """Consume until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--name", required=True, help="client.id")
    parser.add_argument("--topics", required=True, help="comma-separated")
    parser.add_argument("--rate", required=True, type=int, help="records a second")
    parser.add_argument(
        "--expensive",
        default={},
        type=json.loads,
        help="JSON object: partition -> factor by which its records take longer",
    )
    parser.add_argument("--plan-topic", help="follow plans; without it: Kafka's default assignor")
    arguments = parser.parse_args()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C, the parent process stops its workers
    stopped = threading.Event()
    threading.Thread(target=stop_after_input, args=[stopped], daemon=True).start()
    with closing(consume(arguments, stopped)) as records:
        work(records, arguments.rate, arguments.expensive, stopped)


if __name__ == "__main__":
    main()

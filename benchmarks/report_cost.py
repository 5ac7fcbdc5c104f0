"""How much longer a sample takes if commits carry reports: `python -m benchmarks.report_cost`.

A report is the metadata of a commit: how long a consumer took to process records.

Belongs here: one broker with 10,000 groups whose commits carry reports and 10,000 groups without
reports; sampling both alternately; printing, and writing report_cost.json. Belongs elsewhere: the
time that consumers need to make reports (`meter`).
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from kafka.admin import KafkaAdminClient
from kafka.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OffsetCommitRequest,
)

from benchmarks import harness
from benchmarks.harness import in_turns, median, seconds
from benchmarks.services import create_topics, folder, kafka, wait_until
from fairlead.archive import SampleArchive
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings, Settings
from fairlead.wire.work_report import WorkReport
from fairlead.workflows import sampling
from tests.raw_requests import ask, join_group, sync_group

RESULTS: Final = Path(__file__).with_name("report_cost.json")
TOPIC: Final = "records"
GOAL: Final = 1.2
TIMEOUT_S: Final = 600.0
SESSION_MS: Final = 4 * 3_600_000  # longer than the benchmark, since members send no heartbeats
BROKER: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": str(SESSION_MS),
}


def main() -> None:
    """Measure, print and write report_cost.json."""
    options = harness.parser(__doc__, rounds=5)
    options.add_argument("--groups", type=int, default=10_000, help="of each kind")
    options.add_argument("--partitions", type=int, default=100, help="that each group reads")
    with (
        harness.measuring(options, RESULTS) as bench,
        kafka(settings=BROKER) as broker,
        folder() as place,
    ):
        groups, partitions = bench.options.groups, bench.options.partitions
        servers = broker.bootstrap_servers
        create_topics(servers, {TOPIC: partitions})
        fill(servers, partitions)
        without = [f"without-{number:05}" for number in range(groups)]
        reporting = [f"reporting-{number:05}" for number in range(groups)]
        join(servers, without, partitions, lambda *_: None)
        join(servers, reporting, partitions, report)
        bench.log(f"{groups} groups of each kind have committed")
        settings = Settings(kafka=KafkaSettings(bootstrap_servers=servers))
        with KafkaGateway(settings.kafka) as gateway:

            def side(names: list[str]) -> float:
                archive = SampleArchive(str(place / names[0]))
                took = seconds(lambda: sampling.take(gateway, archive, settings, names))
                rows = archive.newest(names)["reporter"]
                bench.log(f"{names[0]}: {took:.1f} s, {len(rows) - rows.null_count} report")
                return took

            plain, reports = in_turns(
                bench.options.rounds,
                lambda _: side(without),
                lambda _: side(reporting),
                warm_ups=1,
            )
        ratio = median(r / p for r, p in zip(reports, plain, strict=True))
        bench.write(
            {
                "groups": groups,
                "partitions": partitions,
                "without_s": harness.rounded(plain),
                "reporting_s": harness.rounded(reports),
                "ratio": ratio,
                "goal": GOAL,
            }
        )
        bench.show(
            "A sample",
            ("", "seconds"),
            [
                ("without reports", f"{median(plain):.1f}"),
                ("with reports", f"{median(reports):.1f}"),
                ("ratio", f"{ratio:.2f} (goal: {GOAL} at most)"),
            ],
        )


def fill(servers: str, partitions: int) -> None:
    """Append one record to each partition; make the broker create `__consumer_offsets`."""
    producer = Producer({"bootstrap.servers": servers})
    for partition in range(partitions):
        producer.produce(TOPIC, b"record", partition=partition)
    producer.flush(TIMEOUT_S)
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "first", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    wait_until(lambda: consumer.poll(0.1) is not None, "a first group settles")
    consumer.close()


def report(partition: int, member_id: str) -> str:
    """Return a report with values that differ by partition."""
    values = WorkReport(
        elapsed_ms=3_600_000,
        waiting_ms=2_000_000,
        handler_ms=1_500_000,
        calls=90_000,
        records=1 + partition,
        busy_ms=40 * (1 + partition),
        busy_squares_ms2=1_700 * (1 + partition),
        paused=0,
        at_ms=int(time.time() * 1000),
    )
    return values.text(member_id, "k3f9q2") + "\0"


def join(
    servers: str, groups: Sequence[str], partitions: int, metadata: Callable[[int, str], str | None]
) -> None:
    """Let a member join each group, own all partitions and commit offset 1 of each.

    Thousands of real consumers would need too much memory. So each member sends only three
    requests, and stays in its group until the session timeout.

    Parameters
    ----------
    metadata
        Called with a partition and the member's id; returns the metadata to commit.
    """
    admin = KafkaAdminClient(bootstrap_servers=servers)
    subscription = ConsumerProtocolSubscription(
        topics=[TOPIC], user_data=b"", owned_partitions=[], version=1
    ).encode(header=True)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[(TOPIC, list(range(partitions)))], user_data=b"", version=1
    ).encode(header=True)
    for group in groups:
        joined = join_group(admin, group, subscription, SESSION_MS)
        sync_group(admin, group, joined, assignment)
        committed = ask(
            admin,
            OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=joined.generation_id,
                member_id=joined.member_id,
                topics=[
                    (TOPIC, [(n, 1, metadata(n, joined.member_id)) for n in range(partitions)])
                ],
                max_version=5,
            ),
        )
        for _, answers in committed.topics:
            if failed := [code for _, code in answers if code]:
                raise RuntimeError(f"{group}: commits failed with error {failed[0]}")
    admin.close()


if __name__ == "__main__":
    main()

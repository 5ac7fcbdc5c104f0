"""Writing and reading members' records in the agreement log, on a real broker."""

import gc
import random
import weakref
from collections.abc import Callable
from contextlib import closing

import pytest

from fairlead.followers.confluent import clients
from fairlead.followers.confluent.agreement_log import AgreementLog, KafkaCoordinationTopic
from fairlead.sandbox import Services
from fairlead.wire.agreement import AssignmentRecord, Mark, Record, encode
from fairlead.wire.seals import read_secrets
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka


def large_assignment() -> AssignmentRecord:
    """Return an assignment of 50,000 partitions to 1,000 members, in random order."""
    partitions = [
        (f"orders-of-region-{topic}", number) for topic in range(1000) for number in range(50)
    ]
    random.Random(1).shuffle(partitions)
    shares: dict[str, dict[str, tuple[int, ...]]] = {}
    for number, (topic, partition) in enumerate(partitions):
        share = shares.setdefault(f"consumer-{number % 1000:032}", {})
        share[topic] = tuple(sorted((*share.get(topic, ()), partition)))
    topics = tuple(sorted({topic for topic, _ in partitions}))
    return AssignmentRecord(1, "consumer-1", topics, shares, plan_version=1)


def read_until(
    log: AgreementLog, record: Record, *, sender: AgreementLog | None = None
) -> list[Record]:
    """Read until `record` arrives; return all records read.

    With `sender`, first send the record, and send it again if a slow broker exceeds the time-out.
    """
    read, sent = list[Record](), sender.append(record) if sender else None

    def arrived() -> bool:
        nonlocal sent
        assert log.broken is None
        if sender is not None and sent is not None and (sent.refused or sent.doubtful):
            sent = sender.append(record)
        read.extend(entry.record for entry in log.read(0.1))
        return record in read

    eventually(arrived, lambda: f"it is read; sent: {sent}")
    return read


def test_assignment_of_a_large_group_arrives(
    services: Services, unique_name: str, kafka_topic: Callable[..., str]
) -> None:
    """A record larger than the broker's limit of one megabyte arrives, because it is compressed."""
    assignment = large_assignment()
    assert len(encode(assignment)) > 1_048_588
    connection = {"bootstrap.servers": services.bootstrap_servers}
    with closing(
        KafkaCoordinationTopic(unique_name, connection, kafka_topic()).open(PATIENCE_S)
    ) as log:
        assert read_until(log, assignment, sender=log)[0] == assignment


@pytest.mark.parametrize("broken", [None, "its leader is gone"])
def test_closed_log_leaves_no_client(
    services: Services, unique_name: str, kafka_topic: Callable[..., str], broken: str | None
) -> None:
    """After close, the log and its producer are freed, even if a record is being sent."""
    connection, before = {"bootstrap.servers": services.bootstrap_servers}, set(clients.shared)
    log = KafkaCoordinationTopic(unique_name, connection, kafka_topic()).open(PATIENCE_S)
    log.append(Mark("a mark", log.identity))
    log.broken = broken
    log.close()
    kept = weakref.ref(log), weakref.ref(log._producer)  # noqa: SLF001 - must be freed
    del log
    gc.collect()
    assert [known() for known in kept] == [None, None]
    assert set(clients.shared) <= before  # clients of earlier tests may end meanwhile


def generations(records: list[Record]) -> list[int]:
    """Return the generation of each assignment record in a list of records."""
    return [record.generation for record in records if isinstance(record, AssignmentRecord)]


def test_only_sealed_records_are_accepted(
    services: Services, unique_name: str, kafka_topic: Callable[..., str]
) -> None:
    """A member ignores records that were written with another secret or without one."""
    topic, connection = kafka_topic(), {"bootstrap.servers": services.bootstrap_servers}
    ours = read_secrets("what the members share")

    def opened(secrets: tuple[bytes, ...]) -> closing[AgreementLog]:
        return closing(
            KafkaCoordinationTopic(unique_name, connection, topic, secrets).open(PATIENCE_S)
        )

    with (
        opened(ours) as member,
        opened(()) as accepts_all,
        opened(read_secrets("what somebody made up")) as somebody,
        opened(ours) as other,
    ):
        for generation, log in enumerate((accepts_all, somebody, other), start=1):
            record = AssignmentRecord(generation, "consumer-1", ("orders",), {}, plan_version=1)
            read_until(accepts_all, record, sender=log)
        assert set(generations(read_until(member, record))) == {3}

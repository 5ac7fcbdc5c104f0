"""Samples, surveys and plans on three brokers while coordinators move: no process crashes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as PythonTopicPartition

from fairlead.errors import KafkaUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings
from tests.cluster import NODES, QUIET, KafkaCluster
from tests.lengths import LONG, form
from tests.programs import FAIRLEAD
from tests.topics import create_topics
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

OFFSETS = "__consumer_offsets"
GROUPS = [f"moves-{number}" for number in range(12)]
MOVES = form(short=8, long=180)
#: Number of freezes and of restarts of a broker, after `MOVES` moves of coordinators.
FREEZES = form(short=1, long=10)
RESTARTS = form(short=1, long=10)
#: Seconds of a freeze: longer than the sampler's request time-out and the broker's session.
FREEZE_S = form(short=15.0, long=60.0)

AT = "--bootstrap-servers"
PREFERRED = 0
#: Milliseconds. Interval at which kafka-python refreshes its list of brokers; longer than the test.
REFRESHED_MS = 3_600_000
#: Program that takes samples endlessly, alternately with the same gateway and with a new one.
SAMPLER = """
import sys
from fairlead.errors import FairleadError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings

settings = KafkaSettings(bootstrap_servers=sys.argv[1], request_timeout_s=10.0)
groups = sys.argv[2:]
with KafkaGateway(settings) as kept:
    while True:
        for gateway in (kept, KafkaGateway(settings)):
            try:
                if gateway is kept:
                    gateway.snapshot(groups, patience_s=0.0)
                else:
                    with gateway:
                        gateway.snapshot(gateway.list_groups(), patience_s=0.0)
            except FairleadError as error:
                print("failed", error, flush=True)
            else:
                print("sampled", flush=True)
"""


@contextmanager
def running(arguments: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process that must still run when the block ends."""
    with (
        log.open("wb") as output,
        subprocess.Popen(arguments, stdout=output, stderr=output) as process,
    ):
        try:
            yield process
            assert process.poll() is None, (
                f"ended with {process.returncode}: {log.read_text()[-2000:]}"
            )
        finally:
            process.kill()


def rotate(admin: KafkaAdminClient, partitions: int, first: int) -> None:
    """Elect another leader of each partition of the offsets topic, to move all coordinators."""
    orders = {
        PythonTopicPartition(OFFSETS, partition): [
            (first + partition + place) % NODES + 1 for place in range(NODES)
        ]
        for partition in range(partitions)
    }
    admin.alter_partition_reassignments(orders)
    admin.elect_leaders(PREFERRED, {OFFSETS: list(range(partitions))}, raise_errors=False)


def samples(log: Path) -> int:
    """Count the samples that a sampler has completed."""
    return log.read_text().count("sampled")


def wait_for_samples(sampler: "subprocess.Popen[bytes]", log: Path, more: int) -> None:
    """Wait until the sampler, which must still run, has completed more samples."""
    wanted = samples(log) + more

    def taken() -> bool:
        assert sampler.poll() is None, f"ended with {sampler.returncode}: {log.read_text()[-2000:]}"
        return samples(log) >= wanted

    eventually(taken, lambda: f"another sample: {log.read_text()[-2000:]}")


def join_and_commit(servers: str, group: str) -> None:
    """Create a group with a consumer that reads a topic, commits, and leaves."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, **QUIET})
    consumer.subscribe(["moves"])
    eventually(lambda: consumer.poll(0.1) or consumer.assignment(), "partitions are assigned")
    consumer.commit(offsets=[TopicPartition("moves", 0, 0)], asynchronous=False)
    consumer.close()


def plan(servers: str) -> None:
    """Run `fairlead plan`, which may report an error, but must not be ended by a signal."""
    environment = {**os.environ, "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS": servers}
    command = [str(FAIRLEAD), "plan", GROUPS[0], "--dry-run"]
    planned = subprocess.run(command, check=False, env=environment, capture_output=True)
    assert planned.returncode in {0, 1}


def listed(gateway: KafkaGateway, groups: Sequence[str] = ()) -> bool:
    """Return whether the gateway lists at least these groups."""
    try:
        return set(gateway.list_groups()) >= set(groups)
    except KafkaUnavailableError:
        return False


def test_no_process_crashes_when_coordinators_move(
    three_brokers: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fairlead avoids librdkafka's list_consumer_group_offsets, which would crash (issue 5040)."""
    monkeypatch.setitem(KafkaAdminClient.DEFAULT_CONFIG, "metadata_max_age_ms", REFRESHED_MS)
    servers = three_brokers.bootstrap_servers
    settings = KafkaSettings(bootstrap_servers=servers, request_timeout_s=PATIENCE_S)
    librdkafka = AdminClient({"bootstrap.servers": servers, **QUIET})
    create_topics(librdkafka, NewTopic("moves", 4, 3))
    for group in GROUPS:
        join_and_commit(servers, group)
    partitions = len(librdkafka.list_topics(OFFSETS, timeout=PATIENCE_S).topics[OFFSETS].partitions)
    admin = KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=int(1_000 * PATIENCE_S))
    log = tmp_path / "sampler.log"
    arguments = [sys.executable, "-c", SAMPLER, servers, *GROUPS]
    with closing(admin), running(arguments, log) as sampler, ExitStack() as beside:
        if LONG:
            survey = [str(FAIRLEAD), "survey", *f"--minutes 600 --every 2 {AT} {servers}".split()]
            beside.enter_context(running(survey, tmp_path / "survey.log"))
        wait_for_samples(sampler, log, 1)
        for number in range(MOVES):
            rotate(admin, partitions, number)
            wait_for_samples(sampler, log, 2)
        brokers = cycle(three_brokers.brokers.values())
        for broker, number in zip(brokers, range(RESTARTS), strict=False):
            broker.kill()
            with KafkaGateway(settings) as kept:
                eventually(partial(listed, kept), "the broker is fenced")
                broker.start()
                rotate(admin, partitions, number)
                eventually(partial(listed, kept, GROUPS), "all groups are listed")
            wait_for_samples(sampler, log, 2)
        for broker, _ in zip(brokers, range(FREEZES), strict=False):
            process = broker.process()
            assert process is not None
            process.suspend()
            if LONG:
                plan(servers)
            time.sleep(FREEZE_S)  # clock: longer than a time-out and a session
            process.resume()
            if LONG:
                plan(servers)
            wait_for_samples(sampler, log, 2)
    with KafkaGateway(settings) as gateway:
        samples = gateway.snapshot(GROUPS).samples

        def errors() -> list[str | None]:
            nonlocal samples
            samples = gateway.snapshot(GROUPS).samples
            found: list[str | None] = samples["error"].to_pylist()
            return found

        eventually(lambda: errors() == [None] * len(GROUPS), errors)
    assert [committed.count(0) for committed in samples["committed"].to_pylist()] == [1] * len(
        GROUPS
    )

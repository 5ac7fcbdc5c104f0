"""How fast a fleet is fetched, beside Kafka's own tool: `python -m benchmarks.fleet_fetch`.

Belongs here: a cluster with many groups, a snapshot of all of them with its lag, and Kafka's
consumer-group tool describing the same, in turns, compared partition by partition; printing, and
writing fleet_fetch.json. Does not: planning a fleet from recorded snapshots.

Three brokers, since the partitions are more than the files that one process may commonly open.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings, SparkSettings
from fairlead.spark.lag import snapshot_lag
from fairlead.spark.session import build_session
from fairlead.spark.warehouse import Warehouse
from tests.cluster import KafkaCluster
from tests.kafka_tools import run_kafka_tool

RESULTS = Path(__file__).with_name("fleet_fetch.json")
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
HOW = (
    "Medians of 7 rounds, ours and theirs in turns, on an embedded cluster of 3 brokers; nobody "
    "commits or produces meanwhile. Ours: connecting, listing the groups, KafkaGateway.snapshot, "
    "writing it as Parquet, snapshot_lag on Spark, collecting the lags; Spark runs "
    "already, but compiles what it runs in our first round, which `rounds` shows. "
    "Theirs: kafka-consumer-groups --describe --all-groups, its JVM's start included; without: "
    "what --list takes, which starts and connects too, is subtracted."
)
GOAL = 2.0
ROUNDS = 7
GROUPS, PARTITIONS_EACH, LIVE, MEMBERS = 200, 100, 20, 2
UNCOMMITTED = 0.02  # of the partitions
RECORDS = 10  # at most, in a partition
DEADLINE_S = 120.0

Lags = dict[tuple[str, str, int], int | None]
"""Group, topic and partition to lag; None: nothing is committed."""


@dataclass(frozen=True)
class Result:
    """What was measured, in seconds; medians, but for the rounds.

    Parameters
    ----------
    groups, live, partitions
        How many groups, how many of them with members, and how many partitions they read.
    ours_s, snapshot_s, lag_s
        All of ours; of it, connecting and fetching; and Parquet and Spark.
    spread_s
        Of the snapshot: how far apart in time its offsets can be.
    tool_s, tool_start_s
        Kafka's tool; of it, its start.
    ratio, ratio_without_start
        How often ours fits into the tool's time.
    rounds
        All of ours and the tool's time in each round.
    """

    groups: int
    live: int
    partitions: int
    ours_s: float
    snapshot_s: float
    lag_s: float
    spread_s: float
    tool_s: float
    tool_start_s: float
    ratio: float
    ratio_without_start: float
    rounds: list[tuple[float, float]]


@dataclass(frozen=True)
class Round:
    """One turn of ours."""

    snapshot_s: float
    lag_s: float
    spread_s: float
    lags: Lags


def main() -> None:
    """Measure a fleet; print the table and keep the figures."""
    console = Console(width=120)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        console.log("starting Spark and Kafka")
        spark = build_session(SparkSettings(), app_name="fleet_fetch")
        with KafkaCluster(Path(folder)) as cluster:
            console.log(f"{GROUPS} groups of {PARTITIONS_EACH} partitions")
            with fleet(cluster.bootstrap_servers):
                result = measure(cluster.bootstrap_servers, spark, Path(folder), console.log)
        spark.stop()
    RESULTS.write_text(
        json.dumps(
            {
                "how": HOW,
                "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
                "result": asdict(result),
            },
            indent=1,
        )
        + "\n"
    )
    print_table(console, result)


def measure(
    servers: str, spark: SparkSession, folder: Path, progress: Callable[[str], None]
) -> Result:
    """Let both sides tell all lags, in turns; end where they do not tell the same."""
    ours: list[Round] = []
    tool_s, start_s = [], []
    for number in range(ROUNDS):
        ours.append(by_fairlead(servers, spark, folder / f"warehouse-{number}"))
        began = time.perf_counter()
        output = tool(servers, "--describe", "--all-groups")
        tool_s.append(time.perf_counter() - began)
        began = time.perf_counter()
        tool(servers, "--list")
        start_s.append(time.perf_counter() - began)
        require_equal(ours[-1].lags, lags_by_kafka(output))
        progress(f"{ours[-1].snapshot_s:.2f} s + {ours[-1].lag_s:.2f} s, tool {tool_s[-1]:.2f} s")
    all_of_ours = [one.snapshot_s + one.lag_s for one in ours]
    ours_median, tool_median = statistics.median(all_of_ours), statistics.median(tool_s)
    start_median = statistics.median(start_s)
    return Result(
        groups=GROUPS,
        live=LIVE,
        partitions=len(ours[-1].lags),
        ours_s=round(ours_median, 3),
        snapshot_s=round(statistics.median(one.snapshot_s for one in ours), 3),
        lag_s=round(statistics.median(one.lag_s for one in ours), 3),
        spread_s=round(statistics.median(one.spread_s for one in ours), 3),
        tool_s=round(tool_median, 3),
        tool_start_s=round(start_median, 3),
        ratio=round(tool_median / ours_median, 2),
        ratio_without_start=round((tool_median - start_median) / ours_median, 2),
        rounds=[(round(a, 3), round(b, 3)) for a, b in zip(all_of_ours, tool_s, strict=True)],
    )


def by_fairlead(servers: str, spark: SparkSession, warehouse_path: Path) -> Round:
    """Fetch all groups as the assets do, and measure their lag."""
    began = time.perf_counter()
    with KafkaGateway(KafkaSettings(bootstrap_servers=servers)) as gateway:
        gateway.list_groups()  # which leaves out groups that nobody ever joined
        snapshot = gateway.snapshot([name(number) for number in range(GROUPS)])
    fetched = time.perf_counter()
    warehouse = Warehouse(str(warehouse_path))
    warehouse.write_snapshot(snapshot)
    rows = snapshot_lag(spark, warehouse, snapshot.snapshot_id).toArrow()
    ended = time.perf_counter()
    errors = [error for error in snapshot.groups["error"].to_pylist() if error]
    if errors:
        sys.exit(f"{len(errors)} groups cannot be planned: {errors[0]}")
    columns = ("group", "topic", "partition", "committed_offset", "lag")
    lags = {
        (group, topic, partition): lag if committed is not None else None
        for group, topic, partition, committed, lag in zip(
            *(rows[column].to_pylist() for column in columns), strict=True
        )
    }
    return Round(fetched - began, ended - fetched, snapshot.spread_s, lags)


def tool(servers: str, *arguments: str) -> str:
    """Run Kafka's consumer-group tool."""
    return run_kafka_tool(TOOL, "--bootstrap-server", servers, *arguments, timeout_s=300)


def lags_by_kafka(output: str) -> Lags:
    """Read the tool's column LAG."""
    lags: Lags = {}
    for line in output.splitlines():
        cells = line.split()
        if cells[:1] == ["GROUP"]:
            topic, partition, lag = (cells.index(c) for c in ("TOPIC", "PARTITION", "LAG"))
        elif cells and cells[0].startswith("fleet-"):
            behind = None if cells[lag] == "-" else int(cells[lag])
            lags[cells[0], cells[topic], int(cells[partition])] = behind
    return lags


def require_equal(ours: Lags, theirs: Lags) -> None:
    """End with an error unless both tell the same.

    Of groups without members the tool leaves out what was never committed.
    """
    ours_committed = {key: lag for key, lag in ours.items() if lag is not None}
    theirs_committed = {key: lag for key, lag in theirs.items() if lag is not None}
    if ours_committed != theirs_committed or not theirs.keys() <= ours.keys():
        differing = ours_committed.items() ^ theirs_committed.items() or theirs.keys() - ours.keys()
        sys.exit(f"The lags differ, {len(differing)} in all, such as {min(differing, key=str)}")


@contextmanager
def fleet(servers: str) -> Iterator[None]:
    """Make topics, records and commits; let some groups have members."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [
        NewTopic(
            name(number),
            PARTITIONS_EACH,
            replication_factor=1,
            config={"min.insync.replicas": "1", "segment.index.bytes": "4096"},
        )
        for number in range(GROUPS)
    ]
    for start in range(0, GROUPS, 20):  # thousands of partitions at once keep the brokers silent
        for created in admin.create_topics(topics[start : start + 20]).values():
            created.result(DEADLINE_S)
    random = np.random.default_rng(0)
    ends = random.integers(0, RECORDS + 1, (GROUPS, PARTITIONS_EACH))
    produce(servers, ends)
    commit(admin, random.integers(0, ends + 1), random.random(ends.shape) >= UNCOMMITTED)
    with ExitStack() as leaving:
        join(servers, leaving)
        yield


def produce(servers: str, ends: np.ndarray) -> None:
    """Append so many records to each partition."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "queue.buffering.max.messages": int(ends.sum()) + 1,
            # It takes the brokers a while until all know all topics; librdkafka would log each.
            "topic.metadata.propagation.max.ms": int(DEADLINE_S * 1000),
            "log_level": 3,
        }
    )
    lost = []
    for (number, partition), count in np.ndenumerate(ends):
        for _ in range(count):
            producer.produce(
                name(number),
                b"record",
                partition=partition,
                on_delivery=lambda error, _: lost.append(error) if error else None,
            )
    if producer.flush(DEADLINE_S) or lost:
        sys.exit(f"The records could not be produced: {lost[:1]}")


def commit(admin: AdminClient, offsets: np.ndarray, chosen: np.ndarray) -> None:
    """Commit the offsets of the chosen partitions, for each group in one request."""
    pending = list(range(GROUPS))
    deadline = time.monotonic() + DEADLINE_S
    while pending:  # a coordinator refuses what it does not know yet
        if time.monotonic() > deadline:
            sys.exit(f"{len(pending)} groups could not commit")
        answers = {}
        for number in pending:
            partitions = [
                TopicPartition(name(number), int(p), int(offsets[number, p]))
                for p in np.flatnonzero(chosen[number])
            ]
            request = ConsumerGroupTopicPartitions(name(number), partitions)
            answers[number] = admin.alter_consumer_group_offsets([request])[name(number)]
        pending = [
            number
            for number, answer in answers.items()
            if any(partition.error for partition in answer.result(DEADLINE_S).topic_partitions)
        ]


def join(servers: str, leaving: ExitStack) -> None:
    """Let consumers join the first groups, wait until they own everything, and fetch nothing."""
    consumers = []
    for number in range(LIVE):
        for member in range(MEMBERS):
            consumer = Consumer(
                {
                    "bootstrap.servers": servers,
                    "group.id": name(number),
                    "client.id": f"{name(number)}-{member}",
                    "enable.auto.commit": False,
                    "max.poll.interval.ms": 1_800_000,  # nobody polls while we measure
                    "session.timeout.ms": 45_000,
                }
            )
            leaving.callback(consumer.close)
            consumer.subscribe([name(number)], on_assign=Consumer.pause)
            consumers.append(consumer)
    deadline = time.monotonic() + DEADLINE_S
    share = PARTITIONS_EACH // MEMBERS
    while any(len(consumer.assignment()) != share for consumer in consumers):
        if time.monotonic() > deadline:
            sys.exit("the groups do not settle")
        for consumer in consumers:
            consumer.poll(0.01)


def name(number: int) -> str:
    """Return the name of a group, and of the topic that it reads."""
    return f"fleet-{number:04}"


def print_table(console: Console, result: Result) -> None:
    """Print what was measured."""
    title = (
        f"{result.groups} groups, {result.live} of them with members, "
        f"{result.partitions:,} partitions: the same lags"
    )
    table = Table(title=title, title_justify="left")
    for heading in ("", "seconds", "the tool takes"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("fetched, with lag", f"{result.ours_s:.2f}", f"(goal: {GOAL:.0f}x)")
    table.add_row("  fetching", f"{result.snapshot_s:.2f}", "")
    table.add_row("  lag on Spark", f"{result.lag_s:.2f}", "")
    table.add_row("kafka-consumer-groups", f"{result.tool_s:.2f}", f"{result.ratio:.1f}x")
    without = result.tool_s - result.tool_start_s
    table.add_row("  without its start", f"{without:.2f}", f"{result.ratio_without_start:.1f}x")
    console.print(table)


if __name__ == "__main__":
    main()

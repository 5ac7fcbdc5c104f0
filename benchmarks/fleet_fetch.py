"""Time to read all lags, compared with Kafka's own tool: `python -m benchmarks.fleet_fetch`.

Belongs here: a cluster with many groups; reading the lag of all groups alternately with Fairlead
and with Kafka's consumer-group tool; comparing the lags of each partition; printing, and writing
fleet_fetch.json. Belongs elsewhere: planning a fleet (`fleet`).

There are three brokers, because one process cannot open enough files for all partitions.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from benchmarks import harness
from benchmarks.harness import Bench, median, seconds
from benchmarks.services import folder, wait_until
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings, SparkSettings
from fairlead.spark.lag import write_lag
from fairlead.spark.session import build_session
from fairlead.spark.warehouse import Warehouse
from tests.cluster import KafkaCluster
from tests.kafka_tools import run_kafka_tool

RESULTS = Path(__file__).with_name("fleet_fetch.json")
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
HOW = (
    "Medians, ours and theirs in turns, on an embedded cluster of 3 brokers; nobody "
    "commits or produces meanwhile. Ours: connecting, listing the groups, KafkaGateway.snapshot, "
    "writing it as Parquet, write_lag on Spark, reading the lags; Spark runs "
    "already, but compiles what it runs in our first round, which `rounds` shows. "
    "Theirs: kafka-consumer-groups --describe --all-groups, its JVM's start included; without: "
    "what --list takes, which starts and connects too, is subtracted."
)
GOAL = 2.0
ROUNDS = 7
GROUPS, PARTITIONS_EACH, LIVE, MEMBERS = 200, 100, 20, 2
UNCOMMITTED = 0.02  # share of partitions without a committed offset
RECORDS = 10  # maximum number of records per partition
DEADLINE_S = 120.0

#: (group, topic, partition) -> lag, or None without a committed offset.
Lags = dict[tuple[str, str, int], int | None]


@dataclass(frozen=True)
class Result:
    """The measurements. Times are medians in seconds, except those in `rounds`.

    Parameters
    ----------
    groups, live, partitions
        Number of all groups, of groups with members, and of all partitions of all groups.
    our, snapshot_s, lag_s
        Fairlead's total time, and its two parts: `snapshot_s` for connecting and fetching, `lag_s`
        for Parquet and Spark.
    spread_s
        Time between the first and the last offset that a snapshot reads.
    tool_s, tool_start_s
        Total time of Kafka's tool, and the time that it needs to start.
    ratio, ratio_without_start
        The tool's time, with and without its start, divided by Fairlead's total time.
    rounds
        Fairlead's and the tool's time in each round.
    """

    groups: int
    live: int
    partitions: int
    our: float
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
    """Fairlead's times and lags in one round."""

    snapshot_s: float
    lag_s: float
    spread_s: float
    lags: Lags

    @property
    def whole_s(self) -> float:
        """Total time in seconds."""
        return self.snapshot_s + self.lag_s


def main() -> None:
    """Measure a fleet; print the table and write the figures."""
    options = harness.parser(__doc__, rounds=ROUNDS)
    options.add_argument("--groups", type=int, default=GROUPS, help=f"{LIVE} at least")
    with harness.measuring(options, RESULTS) as bench, folder() as place:
        groups = bench.options.groups
        bench.log("starting Spark and Kafka")
        spark = build_session(SparkSettings(), app_name="fleet_fetch")
        with KafkaCluster(place) as cluster:
            servers = cluster.bootstrap_servers
            bench.log(f"{groups} groups of {PARTITIONS_EACH} partitions")
            with fleet(servers, groups):
                result = measure(servers, spark, place, groups, bench)
        spark.stop()
        bench.write({"how": HOW, "result": asdict(result)})
        show(bench, result)


def measure(servers: str, spark: SparkSession, place: Path, groups: int, bench: Bench) -> Result:
    """Let Fairlead and Kafka's tool read all lags alternately; raise an error if lags differ."""

    def turn(number: int) -> tuple[Round, float, float]:
        ours = by_fairlead(servers, spark, place / f"warehouse-{number}", groups)
        began = time.perf_counter()
        output = tool(servers, "--describe", "--all-groups")
        took = time.perf_counter() - began
        require_equal(ours.lags, lags_by_kafka(output))
        bench.log(f"{ours.whole_s:.2f} s, the tool {took:.2f} s")
        return ours, took, seconds(lambda: tool(servers, "--list"))

    turns = [turn(number) for number in range(bench.options.rounds)]
    ours = [our for our, _, _ in turns]
    whole_s = median(our.whole_s for our in ours)
    tool_s, start_s = (
        median(taken[1] for taken in turns),
        median(taken[2] for taken in turns),
    )
    return Result(
        groups=groups,
        live=LIVE,
        partitions=len(ours[-1].lags),
        our=whole_s,
        snapshot_s=median(our.snapshot_s for our in ours),
        lag_s=median(our.lag_s for our in ours),
        spread_s=median(our.spread_s for our in ours),
        tool_s=tool_s,
        tool_start_s=start_s,
        ratio=round(tool_s / whole_s, 2),
        ratio_without_start=round((tool_s - start_s) / whole_s, 2),
        rounds=[(round(our.whole_s, 3), round(other, 3)) for our, other, _ in turns],
    )


def by_fairlead(servers: str, spark: SparkSession, warehouse_path: Path, groups: int) -> Round:
    """Fetch all groups as the assets do, and measure their lag."""
    began = time.perf_counter()
    with KafkaGateway(KafkaSettings(bootstrap_servers=servers)) as gateway:
        gateway.list_groups()  # as the asset does; omits groups that no member ever joined
        snapshot = gateway.snapshot([name(number) for number in range(groups)])
    fetched = time.perf_counter()
    warehouse = Warehouse(str(warehouse_path))
    warehouse.write_snapshot(snapshot, {})
    write_lag(spark, warehouse, snapshot.snapshot_id)
    rows = warehouse.load("lag", snapshot.snapshot_id)
    ended = time.perf_counter()
    errors = [error for error in snapshot.samples["error"].to_pylist() if error]
    if errors:
        sys.exit(f"{len(errors)} groups cannot be planned: {errors[0]}")
    columns = ("group", "topic", "partition", "committed_offset", "lag")
    lags = {
        (group, topic, partition): lag if committed is not None else None
        for group, topic, partition, committed, lag in zip(
            *(rows[column].to_pylist() for column in columns), strict=True
        )
    }
    return Round(fetched - began, ended - fetched, snapshot.spread_s or 0.0, lags)


def tool(servers: str, *arguments: str) -> str:
    """Run Kafka's consumer-group tool."""
    return run_kafka_tool(TOOL, "--bootstrap-server", servers, *arguments, timeout_s=300)


def lags_by_kafka(output: str) -> Lags:
    """Parse the column LAG of the tool's output."""
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
    """Raise an error if our lags differ from those of the tool.

    Partitions without a commit are not compared if the group has no members: the tool omits them.
    """
    ours_committed = {key: lag for key, lag in ours.items() if lag is not None}
    theirs_committed = {key: lag for key, lag in theirs.items() if lag is not None}
    if ours_committed != theirs_committed or not theirs.keys() <= ours.keys():
        differing = ours_committed.items() ^ theirs_committed.items() or theirs.keys() - ours.keys()
        sys.exit(f"The lags differ, {len(differing)} in all, such as {min(differing, key=str)}")


@contextmanager
def fleet(servers: str, groups: int) -> Iterator[None]:
    """Create topics, records and commits; add members to some groups."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [
        NewTopic(
            name(number),
            PARTITIONS_EACH,
            replication_factor=1,
            config={"min.insync.replicas": "1", "segment.index.bytes": "4096"},
        )
        for number in range(groups)
    ]
    for start in range(0, groups, 20):  # creating thousands of topics in one request blocks brokers
        for created in admin.create_topics(topics[start : start + 20]).values():
            created.result(DEADLINE_S)
    random = np.random.default_rng(0)
    ends = random.integers(0, RECORDS + 1, (groups, PARTITIONS_EACH))
    produce(servers, ends)
    commit(admin, random.integers(0, ends + 1), random.random(ends.shape) >= UNCOMMITTED)
    with ExitStack() as leaving:
        join(servers, leaving)
        yield


def produce(servers: str, ends: np.ndarray) -> None:
    """Append `ends[g, p]` records to partition `p` of the topic of group `g`."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "queue.buffering.max.messages": int(ends.sum()) + 1,
            # Otherwise librdkafka logs an error for each topic that a broker does not know yet.
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
    """Commit the offsets of the chosen partitions, with one request per group."""
    pending = list(range(len(offsets)))
    deadline = time.monotonic() + DEADLINE_S
    while pending:  # repeat, since a coordinator refuses topics that it does not know yet
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
    """Start consumers in some groups; wait until they own all partitions. They fetch no records."""
    consumers = []
    for number in range(LIVE):
        for member in range(MEMBERS):
            consumer = Consumer(
                {
                    "bootstrap.servers": servers,
                    "group.id": name(number),
                    "client.id": f"{name(number)}-{member}",
                    "enable.auto.commit": False,
                    "max.poll.interval.ms": 1_800_000,  # they do not poll after joining
                    "session.timeout.ms": 45_000,
                }
            )
            leaving.callback(consumer.close)
            consumer.subscribe([name(number)], on_assign=Consumer.pause)
            consumers.append(consumer)
    share = PARTITIONS_EACH // MEMBERS

    def settled() -> bool:
        for consumer in consumers:
            consumer.poll(0.01)
        return all(len(consumer.assignment()) == share for consumer in consumers)

    wait_until(settled, "the groups settle")


def name(number: int) -> str:
    """Return the name of a group; the topic that it reads has the same name."""
    return f"fleet-{number:04}"


def show(bench: Bench, result: Result) -> None:
    """Print the measurements."""
    without = result.tool_s - result.tool_start_s
    bench.show(
        f"{result.groups} groups, {result.live} of them with members, "
        f"{result.partitions:,} partitions: the same lags",
        ("", "seconds", "the tool takes"),
        [
            ("fetched, with lag", f"{result.our:.2f}", f"(goal: {GOAL:.0f}x)"),
            ("  fetching", f"{result.snapshot_s:.2f}", ""),
            ("  lag on Spark", f"{result.lag_s:.2f}", ""),
            ("kafka-consumer-groups", f"{result.tool_s:.2f}", f"{result.ratio:.1f}x"),
            ("  without its start", f"{without:.2f}", f"{result.ratio_without_start:.1f}x"),
        ],
    )


if __name__ == "__main__":
    main()

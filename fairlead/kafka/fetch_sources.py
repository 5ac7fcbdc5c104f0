"""The brokers from which consumers fetch partitions: racks, replicas, and sizes of logs.

Belongs here: requests to brokers. Belongs elsewhere: computing the traffic between racks
(`fairlead.domain.analysis.racks`).

A broker whose `replica.selector.class` is Kafka's RackAwareReplicaSelector sends a consumer to a
replica in the consumer's rack (KIP-392). In all other cases, consumers fetch from the leader.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from fairlead.domain.groups import FetchSources, GroupDescription, LogOffsets

SELECTOR: Final = "replica.selector.class"
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def topics_of_racks(descriptions: Iterable[GroupDescription]) -> set[str]:
    """Return the topics of those groups that have a member with a rack."""
    return {
        topic
        for described in descriptions
        if any(member.rack for member in described.members)
        for member in described.members
        for topic in member.topics
    }


def read_sources(admin: KafkaAdminClient, log: LogOffsets, topics: Iterable[str]) -> FetchSources:
    """Read the racks from which consumers fetch the partitions of topics, and the sizes of logs.

    Without the right to read configurations, assumes Kafka's default: consumers fetch from the
    leader. Without the right to read sizes of logs, the sizes are unknown.

    Parameters
    ----------
    log
        The existing partitions.
    topics
        The topics; racks and sizes of other topics are unknown in the result.

    Raises
    ------
    kafka.errors.KafkaError
        No broker answers, or a broker refuses a request.
    """
    wanted = sorted(topic for topic in topics if topic in log.starts)
    total = log.end.size
    rack_set = np.full(total, -1, dtype=np.int32)
    log_bytes = np.full(total, -1, dtype=np.int64)
    racks = {
        described["broker_id"]: described["rack"]
        for described in admin.describe_cluster()["brokers"]
        if described.get("rack")
    }
    if not racks or not wanted:
        return FetchSources((), rack_set, log_bytes)
    placed = [copy for copy in _placed(admin, wanted, log) if copy[1] >= 0]
    aware = _rack_aware(admin, {leader for _, leader, _ in placed})
    numbers: dict[tuple[str, ...], int] = {}
    for place, leader, replicas in placed:
        brokers = replicas if leader in aware else [leader]
        if key := tuple(sorted({racks[broker] for broker in brokers if broker in racks})):
            rack_set[place] = numbers.setdefault(key, len(numbers))
    leaders = {place: leader for place, leader, _ in placed}
    for place, broker, size in _sizes(admin, wanted, sorted(set(leaders.values())), log):
        if leaders.get(place) == broker:
            log_bytes[place] = size
    return FetchSources(tuple(numbers), rack_set, log_bytes)


def _placed(
    admin: KafkaAdminClient, topics: list[str], log: LogOffsets
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield three values for each partition: its index in `log`, leader (-1: none) and replicas."""
    for topic in admin.describe_topics(topics):
        first, count = log.place(topic["name"])
        for partition in topic["partitions"]:
            if partition["partition_index"] < count:
                yield (
                    first + partition["partition_index"],
                    partition["leader_id"],
                    partition["replica_nodes"],
                )


def _rack_aware(admin: KafkaAdminClient, brokers: set[int]) -> set[int]:
    """Return the brokers that send each consumer to the replica in the consumer's rack."""
    resources = [
        ConfigResource(ConfigResourceType.BROKER, str(broker), {SELECTOR: None})
        for broker in sorted(brokers)
    ]
    configs = admin.describe_configs(resources, config_filter="all").get("broker", {})
    values = {int(name): config.get(SELECTOR, {}).get("value") for name, config in configs.items()}
    return {broker for broker, value in values.items() if value == RACK_AWARE}


def _sizes(
    admin: KafkaAdminClient, topics: list[str], brokers: list[int], log: LogOffsets
) -> Iterator[tuple[int, int, int]]:
    """Yield three values for each replica: the partition's index in `log`, broker and bytes."""
    partitions = {topic: list(range(log.place(topic)[1])) for topic in topics}
    answers: list[dict[str, Any]] = admin.describe_log_dirs(partitions, brokers)
    for answer in answers:
        for folder in answer["log_dirs"]:
            for topic in folder["topics"]:
                first, count = log.place(topic["name"])
                for partition in topic["partitions"]:
                    if partition["partition_index"] < count and not partition["is_future_key"]:
                        yield (
                            first + partition["partition_index"],
                            answer["broker"],
                            partition["partition_size"],
                        )

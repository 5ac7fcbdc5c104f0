"""Reading committed offsets and metadata: requesting and decoding OffsetFetch responses."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.admin import KafkaAdminClient
from kafka.errors import CoordinatorNotAvailableError
from kafka.protocol.consumer import OffsetFetchResponse
from kafka.structs import OffsetAndMetadata, TopicPartition

from fairlead.kafka.commits import decode_commits, fetch_commits
from fairlead.settings import Settings
from tests.waiting import PATIENCE_S, eventually

Group = OffsetFetchResponse.OffsetFetchResponseGroup
Topic = Group.OffsetFetchResponseTopics
Partition = Topic.OffsetFetchResponsePartitions

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
partitions = st.builds(
    Partition,
    partition_index=st.integers(0, 2**31 - 1),
    committed_offset=st.integers(-1, 2**63 - 1),
    committed_leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.none() | texts,
    error_code=st.sampled_from([0, 3, 29]),
)
topics = st.builds(Topic, name=texts, partitions=st.lists(partitions, max_size=4))
groups = st.builds(
    Group,
    group_id=texts,
    topics=st.lists(topics, max_size=3, unique_by=lambda topic: topic.name),
    error_code=st.sampled_from([0, 15, 16, 30]),
)


@given(st.lists(groups, max_size=4, unique_by=lambda group: group.group_id))
def test_response_is_decoded_as_kafka_python_encodes_it(drawn: list[Any]) -> None:
    """Errors, offsets and metadata are decoded; partitions without a commit are left out."""
    body = OffsetFetchResponse(throttle_time_ms=7, groups=drawn).encode(version=8)

    decoded = decode_commits(bytes(body))

    assert {
        group: (
            code,
            {
                topic: list(zip(found.partitions, found.offsets, found.metadata, strict=True))
                for topic, found in commits.items()
            },
        )
        for group, (code, commits) in decoded.items()
    } == {
        group.group_id: (
            group.error_code,
            {
                topic.name: rows
                for topic in group.topics
                if (
                    rows := [
                        (row.partition_index, row.committed_offset, (row.metadata or "").encode())
                        for row in topic.partitions
                        if row.committed_offset >= 0
                    ]
                )
            },
        )
        for group in drawn
    }


@pytest.mark.kafka
def test_metadata_arrives_as_stored(
    settings: Settings, kafka_topic: Callable[..., str], unique_name: str
) -> None:
    """Any string that a consumer commits as metadata is returned as its UTF-8 bytes."""
    stored = ["", "plain", "ends\0", "Grüße \u202e", "x" * 126, "x" * 127, "x" * 4096]
    topic = kafka_topic(partitions=len(stored))
    admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)
    try:
        offsets = {
            TopicPartition(topic, partition): OffsetAndMetadata(partition, text, -1)
            for partition, text in enumerate(stored)
        }

        def committed() -> bool:
            try:
                results = admin.alter_group_offsets(unique_name, offsets).values()
            except CoordinatorNotAvailableError:
                return False
            return {result.errno for result in results} == {0}

        eventually(committed, "the coordinator is ready")
        fetched = fetch_commits(admin, [unique_name, f"{unique_name}-absent"], PATIENCE_S)
    finally:
        admin.close()

    assert not fetched.errors
    assert fetched.values[f"{unique_name}-absent"] == {}
    commits = fetched.values[unique_name][topic]
    assert dict(zip(commits.partitions.tolist(), commits.metadata, strict=True)) == {
        partition: text.encode() for partition, text in enumerate(stored)
    }
    assert commits.offsets.tolist() == commits.partitions.tolist()

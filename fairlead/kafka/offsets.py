"""Begin and end offsets of partitions, and numbers of partitions of topics.

Belongs here: reading offsets into arrays with librdkafka, in batches. Belongs elsewhere: members
and their partitions (`descriptions`), commits (`commits`), the table of samples
(`fairlead.domain.samples`).
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec, TopicDescription

from fairlead.common.progress import ReportCount, ReportProgress, phase
from fairlead.domain.groups import LogOffsets
from fairlead.kafka.requests import MISSING, Answers, ask_each

TOPICS_A_BATCH: Final = 100
#: A group's topics that the cluster does not list are looked up separately, at a cost of a request
#: per topic in every sample. A group with more of these topics than this number gets an error.
UNLISTED_TOPICS_PER_GROUP: Final = 1_000
#: Number of partitions in a batch. Small, because librdkafka's time for a batch grows faster than
#: the batch.
PARTITIONS_A_BATCH: Final = 500
#: Error message for a partition if librdkafka returns a negative offset and no error.
NO_ANSWER: Final = "its leader does not answer"
#: Time-out in seconds of a request for a batch. If the request fails, each partition of the batch
#: is requested separately.
IN_ONE_CALL_S: Final = 5.0


@dataclass(frozen=True)
class TopicSizes:
    """Numbers of partitions of topics.

    Parameters
    ----------
    counts
        Maps each existing topic to its number of partitions.
    hidden
        Maps each topic that cannot be read, for example because a right is missing, to the error.
    unlisted
        Groups with more than `UNLISTED_TOPICS_PER_GROUP` topics that the cluster does not list,
        each with the number of these topics. These topics were not looked up.
    """

    counts: Mapping[str, int]
    hidden: Mapping[str, str]
    unlisted: Mapping[str, int]


def topic_sizes(
    admin: AdminClient,
    topics_of: Mapping[str, Collection[str]],
    timeout_s: float,
    progress: ReportProgress = lambda _: None,
) -> TopicSizes:
    """Count the partitions of the topics of groups.

    Parameters
    ----------
    topics_of
        Maps each group to the topics that it subscribes to or has committed offsets for.
    """
    topics = {topic for own in topics_of.values() for topic in own}
    report = phase(progress, "Counted the partitions of {:,} of {:,} topics")
    counts = _in_one_call(admin, topics) if len(topics) > TOPICS_A_BATCH else {}
    report(len(counts), len(topics))
    unknown: set[str] = set()
    unlisted: dict[str, int] = {}
    for group, own in topics_of.items():
        missing = set(own) - counts.keys()
        if counts and len(missing) > UNLISTED_TOPICS_PER_GROUP:
            unlisted[group] = len(missing)
        else:
            unknown |= missing
    answers = described_topics(admin, sorted(unknown), timeout_s)
    report(len(topics), len(topics))
    hidden = {
        topic: error.str() for topic, error in answers.errors.items() if error.code() not in MISSING
    }
    counts |= {topic: len(description.partitions) for topic, description in answers.values.items()}
    return TopicSizes(counts, hidden, unlisted)


def described_topics(
    admin: AdminClient, topics: Sequence[str], timeout_s: float
) -> Answers[str, TopicDescription]:
    """Read the ids and partitions of topics; return an answer or an error for each topic."""

    def ask(portion: Sequence[str]) -> dict[str, "Future[TopicDescription]"]:
        return admin.describe_topics(TopicCollection(list(portion)), request_timeout=timeout_s)

    return ask_each(topics, ask, batch=TOPICS_A_BATCH, timeout_s=timeout_s)


def _in_one_call(admin: AdminClient, topics: Collection[str]) -> dict[str, int]:
    """Count the partitions of those topics that the cluster's metadata lists without an error."""
    try:
        listed = admin.list_topics(timeout=IN_ONE_CALL_S).topics
    except KafkaException:
        return {}  # the caller then requests each topic separately
    return {
        topic: len(listed[topic].partitions)
        for topic in topics
        if topic in listed and listed[topic].error is None
    }


def log_offsets(
    admin: AdminClient,
    reader: Consumer,
    counts: Mapping[str, int],
    hidden: Mapping[str, str],
    timeout_s: float,
    *,
    progress: ReportProgress = lambda _: None,
) -> tuple[LogOffsets, datetime]:
    """Read the begin offsets of partitions, then the end offsets.

    Call this after reading committed offsets: then lag cannot be negative if a consumer commits
    meanwhile.

    Parameters
    ----------
    admin, reader
        Clients of the same cluster; the reader has the isolation level `read_uncommitted`.
    counts, hidden
        As returned by `topic_sizes`.

    Returns
    -------
    The offsets, and the time when the reading of end offsets began, time-zone-aware.
    """
    topics = sorted(counts)
    firsts = np.concatenate(([0], np.cumsum([counts[topic] for topic in topics], dtype=np.int64)))
    partitions = [TopicPartition(topic, p) for topic in topics for p in range(counts[topic])]
    report = phase(progress, "Read the start offsets of {:,} of {:,} partitions")
    begin, begin_errors = _offsets(
        admin, reader, partitions, OFFSET_BEGINNING, timeout_s, report=report
    )
    ends_at = datetime.now(UTC)
    report = phase(progress, "Read the end offsets of {:,} of {:,} partitions")
    end, end_errors = _offsets(admin, reader, partitions, OFFSET_END, timeout_s, report=report)
    unreadable = dict(hidden)
    exists = dict(counts)
    for index, text in sorted((begin_errors | end_errors).items(), reverse=True):
        topic, number = partitions[index].topic, partitions[index].partition
        begin[index] = end[index] = -1
        if text is not None:
            unreadable[topic] = f"partition {number}: {text}"
        elif exists[topic] == number + 1:
            exists[topic] = number
    log = LogOffsets(
        starts=dict(zip(topics, firsts.tolist(), strict=False)),
        counts={topic: count for topic, count in exists.items() if count or not counts[topic]},
        begin=begin,
        end=end,
        unreadable=unreadable,
    )
    return log, ends_at


def _offsets(
    admin: AdminClient,
    reader: Consumer,
    partitions: Sequence[TopicPartition],
    where: int,
    timeout_s: float,
    *,
    report: ReportCount,
) -> tuple[npt.NDArray[np.int64], dict[int, str | None]]:
    """Return the partitions' offsets (-1: unknown), and a mapping from indices to errors.

    The error None means that there is no such partition. Requests a batch in one call, which is
    three times as fast as a request for each partition. If the call fails, requests each partition
    of the batch separately.
    """
    offsets = np.full(len(partitions), -1, dtype=np.int64)
    failed: list[int] = []
    for start in range(0, len(partitions), PARTITIONS_A_BATCH):
        portion = partitions[start : start + PARTITIONS_A_BATCH]
        portion_offsets = _at_once(reader, portion, where)
        if portion_offsets is None:
            failed += range(start, start + len(portion))
        else:
            offsets[start : start + len(portion)] = portion_offsets
        report(start + len(portion) - len(failed), len(partitions))
    answers = one_by_one(admin, partitions, failed, where, timeout_s)
    report(len(partitions), len(partitions))
    for index, answer in answers.values.items():
        offsets[index] = answer.offset  # type: ignore[attr-defined] # the stubs leave it out
    errors: dict[int, str | None] = {
        index: None if error.code() in MISSING else error.str()
        for index, error in answers.errors.items()
    }
    unanswered = {index: NO_ANSWER for index in answers.values if offsets[index] < 0}
    return offsets, errors | unanswered


def _at_once(reader: Consumer, portion: Sequence[TopicPartition], where: int) -> list[int] | None:
    """Read the offsets of a batch in one call; return None if a partition fails."""
    request = [TopicPartition(partition.topic, partition.partition, where) for partition in portion]
    try:
        answer = reader.offsets_for_times(request, timeout=IN_ONE_CALL_S)
    except KafkaException:
        return None
    if any(partition.error is not None or partition.offset < 0 for partition in answer):
        return None
    return [partition.offset for partition in answer]


def one_by_one(
    admin: AdminClient,
    partitions: Sequence[TopicPartition],
    left: Sequence[int],
    where: int,
    timeout_s: float,
    *,
    # Lag includes records of open transactions, as in Kafka's own tools.
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> Answers[int, ListOffsetsResultInfo]:
    """Read the offsets of the partitions with these indices; return an answer or an error for each.

    Parameters
    ----------
    where
        `OFFSET_BEGINNING` or `OFFSET_END`.
    """
    spec = OffsetSpec.earliest() if where == OFFSET_BEGINNING else OffsetSpec.latest()

    def ask(portion: Sequence[int]) -> dict[int, "Future[ListOffsetsResultInfo]"]:
        futures = admin.list_offsets(
            {partitions[index]: spec for index in portion},
            isolation_level=isolation,
            request_timeout=timeout_s,
        )
        return {index: futures[partitions[index]] for index in portion}

    return ask_each(left, ask, batch=PARTITIONS_A_BATCH, timeout_s=timeout_s)

"""The committed offsets of consumer groups, with their metadata as bytes.

Belongs here: OffsetFetch requests over kafka-python's connections, and decoding the responses.
Belongs elsewhere: begin and end offsets (`offsets`).

librdkafka's `list_consumer_group_offsets` cannot be used: if a coordinator moves during the call,
the process crashes with SIGSEGV (librdkafka issue 5040). kafka-python's own decoder takes 1.9 ms
for a group of 100 partitions, and fails if metadata is not UTF-8.
"""

import io
import struct
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from kafka.admin import KafkaAdminClient
from kafka.errors import BrokerResponseError, IncompatibleBrokerVersion, RequestTimedOutError
from kafka.errors import KafkaError as PythonKafkaError
from kafka.protocol.api_header import RequestHeader, ResponseHeader
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from fairlead.common.progress import ReportProgress, phase
from fairlead.domain.groups import CommittedOffsets, TopicCommits
from fairlead.kafka.requests import Answers, ask_each

#: Maximum number of groups in one OffsetFetch request, which limits the size of the response.
GROUPS_PER_REQUEST: Final = 100
#: Maximum number of requests in flight. kafka-python allows 5 on a connection.
REQUESTS_IN_FLIGHT: Final = 4
#: Maximum number of groups whose coordinators are looked up in one request.
GROUPS_PER_LOOKUP: Final = 1_000

#: First versions of these requests that accept several groups (KIP-709, KIP-699), since Kafka 3.0.
_OFFSET_FETCH: Final = 8
_FIND_COORDINATOR: Final = 4
_PARTITION: Final = struct.Struct(">iqi")  # partition, offset, leader epoch
_INT16: Final = struct.Struct(">h")
_INT32_BYTES: Final = 4


def fetch_commits(
    admin: KafkaAdminClient,
    groups: Sequence[str],
    timeout_s: float,
    progress: ReportProgress = lambda _: None,
) -> Answers[str, CommittedOffsets]:
    """Fetch all commits of groups from their coordinators.

    Parameters
    ----------
    admin
        kafka-python's client; the broker must be Kafka 3.0 or newer.
    groups
        Group ids.
    timeout_s
        Seconds. Time-out of a request, and longest time from the first request to the last retry.
    progress
        Called with a line for the user every few seconds, and at the end.

    Raises
    ------
    KafkaUnavailableError
        No broker answers. If only some groups fail, their errors are in the result instead.
    """

    def ask(portion: Sequence[str]) -> dict[str, "Future[CommittedOffsets]"]:
        try:
            return dict(admin._manager.run(_ask, admin, portion))  # noqa: SLF001 - no public way to send
        except PythonKafkaError as error:
            return dict.fromkeys(portion, _failed(error))

    report = phase(progress, "Read the commits of {:,} of {:,} groups")
    return ask_each(groups, ask, batch=GROUPS_PER_LOOKUP, timeout_s=timeout_s, report=report)


async def _ask(
    admin: KafkaAdminClient, groups: Sequence[str]
) -> Mapping[str, "Future[CommittedOffsets]"]:
    """Fetch the commits of some groups from their coordinators."""
    answers, by_node = await _find_coordinators(admin, groups)
    requests = sorted(
        (start, node, names[start : start + GROUPS_PER_REQUEST])
        for node, names in by_node.items()
        for start in range(0, len(names), GROUPS_PER_REQUEST)
    )  # alternates between coordinators, so that they work in parallel
    sent: deque[tuple[Sequence[str], Any]] = deque()
    for _, node, names in requests:
        if len(sent) == REQUESTS_IN_FLIGHT:
            answers |= await _receive(*sent.popleft())
        sent.append((names, admin._manager.send(_all_commits(names), node_id=node)))  # noqa: SLF001 - as above
    while sent:
        answers |= await _receive(*sent.popleft())
    return answers


async def _find_coordinators(
    admin: KafkaAdminClient, groups: Sequence[str]
) -> tuple[dict[str, "Future[CommittedOffsets]"], Mapping[int, list[str]]]:
    """Look up coordinators.

    Returns a mapping from group to error, and a mapping from node id to the groups that the node
    coordinates.
    """
    request = FindCoordinatorRequest(
        key_type=CoordinatorType.GROUP.value,
        coordinator_keys=list(groups),
        min_version=_FIND_COORDINATOR,
    )
    response = await admin._manager.send(request)  # noqa: SLF001 - as above
    failed: dict[str, Future[CommittedOffsets]] = {}
    by_node: dict[int, list[str]] = defaultdict(list)
    for coordinator in response.coordinators:
        if coordinator.error_code:
            failed[coordinator.key] = _future(KafkaError(coordinator.error_code))
        else:
            node = admin._manager.cluster.add_coordinator(  # noqa: SLF001 - as above
                coordinator, CoordinatorType.GROUP, coordinator.key, synthesize_node_id=False
            )
            by_node[node].append(coordinator.key)
    return failed, by_node


async def _receive(groups: Sequence[str], sent: Any) -> dict[str, "Future[CommittedOffsets]"]:
    try:
        response = await sent
    except PythonKafkaError as error:
        return dict.fromkeys(groups, _failed(error))
    return {
        group: _future(KafkaError(code) if code else commits)
        for group, (code, commits) in decode_commits(response.body).items()
    }


def _future(outcome: CommittedOffsets | KafkaError) -> "Future[CommittedOffsets]":
    future: Future[CommittedOffsets] = Future()
    if isinstance(outcome, KafkaError):
        future.set_exception(KafkaException(outcome))
    else:
        future.set_result(outcome)
    return future


def _failed(error: PythonKafkaError) -> "Future[CommittedOffsets]":
    """Convert an error of kafka-python to a future with librdkafka's error."""
    if isinstance(error, IncompatibleBrokerVersion):
        code, why = KafkaError._UNSUPPORTED_FEATURE, "the broker must be Kafka 3.0 or newer"
    elif isinstance(error, BrokerResponseError) and not isinstance(error, RequestTimedOutError):
        return _future(KafkaError(error.errno))
    else:
        code, why = KafkaError._TRANSPORT, str(error)
    return _future(KafkaError(code, why))


class _Undecoded:
    """The body of an OffsetFetch response as bytes; replaces kafka-python's decoded message."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.throttle_time_ms = int.from_bytes(body[:_INT32_BYTES], "big", signed=True)

    @staticmethod
    def parse_header(data: io.BytesIO) -> ResponseHeader:
        return ResponseHeader.decode(data, flexible=True)

    @classmethod
    def decode(cls, data: io.BytesIO) -> "_Undecoded":
        return cls(data.read())


class _Header(RequestHeader, init=False):  # type: ignore[misc,call-arg] # no types
    """The header of a request; kafka-python must not decode its response."""

    def get_response_class(self) -> type[_Undecoded]:
        return _Undecoded


class _OffsetFetch(OffsetFetchRequest, init=False):  # type: ignore[misc,call-arg] # no types
    header_class = _Header


def _all_commits(groups: Sequence[str]) -> _OffsetFetch:
    """Return a request for all commits of these groups."""
    wanted = [_OffsetFetch.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    return _OffsetFetch(groups=wanted, min_version=_OFFSET_FETCH, max_version=_OFFSET_FETCH)


def decode_commits(body: bytes) -> dict[str, tuple[int, CommittedOffsets]]:
    """Decode the body of a response to OffsetFetch, version 8.

    Leaves out partitions without a commit.

    Parameters
    ----------
    body
        The response without its header.

    Returns
    -------
    A mapping from group id to the group's error code (0: no error) and commits.

    Raises
    ------
    IndexError, struct.error
        The body is too short.
    """
    groups: dict[str, tuple[int, CommittedOffsets]] = {}
    count, at = _varint(body, _INT32_BYTES)
    for _ in range(count - 1):
        group, at = _text(body, at)
        topic_count, at = _varint(body, at)
        topics: dict[str, TopicCommits] = {}
        for _ in range(topic_count - 1):
            topic, at = _text(body, at)
            commits, at = _topic(body, at)
            if commits.partitions.size:
                topics[topic] = commits
        (code,) = _INT16.unpack_from(body, at)
        groups[group] = code, topics
        at = _after_tags(body, at + 2)
    return groups


def _topic(body: bytes, at: int) -> tuple[TopicCommits, int]:
    """Decode one topic's commits; return them and the position after them.

    The loop calls few functions, because it runs for each partition of a cluster.
    """
    count, at = _varint(body, at)
    partitions: list[int] = []
    offsets: list[int] = []
    metadata: list[bytes] = []
    unpack = _PARTITION.unpack_from
    for _ in range(count - 1):
        partition, offset, _ = unpack(body, at)
        at += 16
        length = body[at]
        if length < 0x80:  # noqa: PLR2004 - a varint of one byte, the usual case
            at += 1
        else:
            length, at = _varint(body, at)
        if offset >= 0 and partition >= 0:
            partitions.append(partition)
            offsets.append(offset)
            metadata.append(body[at : at + length - 1] if length > 1 else b"")
        # Skip the error code: a partition with an error has offset -1.
        at += length + 1 if length else 2
        at = at + 1 if body[at] == 0 else _after_tags(body, at)
    commits = TopicCommits(np.array(partitions, np.int32), np.array(offsets, np.int64), metadata)
    return commits, _after_tags(body, at)


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Decode an unsigned varint; return the value and the position after it."""
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - only the last byte of a varint is less
            return value, at
        shift += 7


def _text(body: bytes, at: int) -> tuple[str, int]:
    length, at = _varint(body, at)
    end = at + length - 1
    return body[at:end].decode(), end


def _after_tags(body: bytes, at: int) -> int:
    """Skip tagged fields; return the position after them."""
    count, at = _varint(body, at)
    for _ in range(count):
        _, at = _varint(body, at)
        size, at = _varint(body, at)
        at += size
    return at

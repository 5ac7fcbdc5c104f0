"""Sending many requests to Kafka in parallel, with retries, and an answer or error for each.

Belongs here: retries, which errors are retried, and reading partitions to their ends. Belongs
elsewhere: the content of requests.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import (
    Retrying,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential_jitter,
)

from fairlead.common.librdkafka import kafka_error
from fairlead.common.progress import ReportCount
from fairlead.errors import KafkaUnavailableError
from fairlead.settings import KafkaSettings

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")

ATTEMPTS: Final = 5
#: Number of batches in flight: while brokers work on one batch, another is being sent.
BATCHES_IN_FLIGHT: Final = 4
#: Maximum number of messages in one call of `Consumer.consume`.
_AT_ONCE: Final = 1000
#: Seconds that a future may take beyond the time-out of its request.
GRACE_S: Final = 5.0

# Errors that mean that no broker was reached.
_UNREACHABLE: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
    }
)
#: Transient error codes: a coordinator or leader is moving, or the client is throttled.
TRANSIENT: Final = _UNREACHABLE | {
    KafkaError._WAIT_COORD,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
}

#: Error codes for a topic or partition that does not exist (any more).
MISSING: Final = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)

#: Error codes to ignore when reading partitions: librdkafka needs a group id and looks up the
#: group's coordinator, although no member joins the group.
ABOUT_A_GROUP: Final = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED})


def kafka_answers(settings: KafkaSettings, *, within_s: float) -> bool:
    """Return whether a broker answers a request within this time."""
    # The variable keeps the client alive: requests fail when their client is garbage-collected.
    # `Any`, because the types in the stubs are wrong.
    admin: Any = AdminClient(settings.librdkafka())
    try:
        admin.describe_cluster(request_timeout=within_s).result()
    except KafkaException:
        return False
    return True


@dataclass(frozen=True)
class Answers(Generic[Key, Answer]):
    """Answers and errors of requests, for example by group or by topic.

    Parameters
    ----------
    values
        Maps each key that has an answer to the answer.
    errors
        Maps each key that has no answer to its last error.
    """

    values: dict[Key, Answer] = field(default_factory=dict)
    errors: dict[Key, KafkaError] = field(default_factory=dict)


def reader(settings: KafkaSettings, **overrides: Any) -> Consumer:
    """Return a consumer for `read_to_end`; it joins no group and commits nothing."""
    return Consumer(
        settings.librdkafka(
            **{
                "group.id": "fairlead",  # librdkafka requires it; the group is not joined
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "auto.offset.reset": "earliest",  # if the position was deleted
                "fetch.wait.max.ms": "50",
                **overrides,
            }
        )
    )


def read_to_end(
    consumer: Consumer, positions: Sequence[TopicPartition], timeout_s: float
) -> Iterator[Message]:
    """Yield the records of partitions from these positions to the partitions' present ends.

    Raises
    ------
    KafkaException
        A broker refuses the request.
    KafkaUnavailableError
        Reading takes longer than the time-out.
    """
    consumer.assign(list(positions))
    pending = {position.partition for position in positions}
    deadline = time.monotonic() + timeout_s
    while pending:
        if time.monotonic() > deadline:
            raise KafkaUnavailableError(
                f"Topic {positions[0].topic} was not read to its end in time"
            )
        for message in consumer.consume(_AT_ONCE, 0.1):
            if (error := message.error()) is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                pending.discard(message.partition() or 0)
            elif not error.retriable() and error.code() not in ABOUT_A_GROUP:
                raise KafkaException(error)


def ask_each(
    keys: Sequence[Key],
    ask: Callable[[Sequence[Key]], Mapping[Key, "Future[Answer]"]],
    *,
    batch: int,
    timeout_s: float,
    report: ReportCount = lambda _done, _total: None,
) -> Answers[Key, Answer]:
    """Send requests for all keys; retry requests that fail with a transient error.

    Parameters
    ----------
    keys
        What the requests are about, for example groups.
    ask
        Starts the requests for some keys and returns a future for each key.
    batch
        Maximum number of keys for one call of `ask`. At most `BATCHES_IN_FLIGHT` calls are in
        flight, which limits the load on brokers and the use of memory.
    timeout_s
        Time-out of a request in seconds. Retries also end this long after the first request.
    report
        Called after each batch with the number of answered keys and the number of all keys.

    Raises
    ------
    KafkaUnavailableError
        No broker answered any request. If only some keys fail, their errors are in the result.
    """
    answers: Answers[Key, Answer] = Answers()
    pending = list(keys)

    def ask_pending() -> bool:
        in_flight: deque[Mapping[Key, Future[Answer]]] = deque()
        unanswered = len(pending)
        for start in range(0, len(pending), batch):
            in_flight.append(ask(pending[start : start + batch]))
            if len(in_flight) == BATCHES_IN_FLIGHT:
                unanswered -= _collect(in_flight.popleft(), answers, timeout_s)
                report(len(keys) - unanswered, len(keys))
        while in_flight:
            unanswered -= _collect(in_flight.popleft(), answers, timeout_s)
            report(len(keys) - unanswered, len(keys))
        errors = answers.errors
        pending[:] = [key for key in pending if key in errors and errors[key].code() in TRANSIENT]
        return bool(pending)

    Retrying(
        retry=retry_if_result(bool),
        retry_error_callback=lambda _: None,  # `answers` has the errors already
        **backoff(timeout_s),
    )(ask_pending)
    unreachable = [e for e in answers.errors.values() if e.code() in _UNREACHABLE]
    if unreachable and not answers.values:
        raise KafkaUnavailableError(f"Kafka does not answer: {unreachable[0].str()}")
    return answers


def backoff(timeout_s: float) -> dict[str, Any]:
    """Return arguments for tenacity: the waits between attempts, and when to stop.

    After `timeout_s`, no attempt starts; so a request that has timed out is not retried.
    """
    return {
        "wait": wait_exponential_jitter(multiplier=0.1, max=2.0, jitter=0.1),
        "stop": stop_after_attempt(ATTEMPTS) | stop_after_delay(timeout_s),
    }


def _collect(
    futures: "Mapping[Key, Future[Answer]]", answers: Answers[Key, Answer], timeout_s: float
) -> int:
    """Store the results of all futures in `answers`; return the number of futures."""
    for key, future in futures.items():
        try:
            answers.values[key] = future.result(timeout_s + GRACE_S)
            answers.errors.pop(key, None)
        except KafkaException as error:
            answers.errors[key] = kafka_error(error)
        except TimeoutError:
            answers.errors[key] = KafkaError(KafkaError._TIMED_OUT)
    return len(futures)

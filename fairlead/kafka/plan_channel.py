"""Writing to a partition of the plan topic; a new writer fences the previous one.

Belongs here: the transactional producer of a partition, and finding out which record of a batch the
broker rejects. Belongs elsewhere: making the records (`fairlead.workflows.delivery`), and the lock
that writers take first (`fairlead.store.outbox`).

All writers of a partition share a transactional id, so the broker fences earlier producers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fairlead.common.librdkafka import kafka_error
from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.kafka.requests import TRANSIENT
from fairlead.settings import KafkaSettings
from fairlead.wire.record import Headers

#: Maximum size of a record, in the topic and the producer: a plan of a million partitions fits.
LARGEST_PLAN_BYTES: Final = 8 * 1024 * 1024

#: Maximum bytes of a transaction with several records. A larger transaction might time out before
#: all its records are sent.
_AT_ONCE_BYTES: Final = 16 * 1024 * 1024
_TRANSACTION_S: Final = 10
#: If a batch fails only because the broker rejected an earlier record, `send` repeats the batch.
#: It does so at most this number of times per record.
_TRIES: Final = 2
# Errors of the broker or the client that mean that a single record is invalid.
_OF_ONE_RECORD: Final = frozenset(
    {
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
    }
)
_FENCED: Final = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._FENCED,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._PURGE_QUEUE,
        KafkaError._STATE,  # the error of a fenced producer
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.PRODUCER_FENCED,
    }
)


@dataclass(frozen=True)
class Outgoing:
    """A record to send to the plan topic."""

    group: str
    value: bytes
    headers: Headers


class RefusedRecordError(Exception):
    """The broker rejects a batch because of one of its records."""


class SpoiledTransactionError(Exception):
    """A batch failed because an earlier rejection left a gap in the sequence numbers.

    The batch can be sent again.
    """


class PlanChannel:
    """The only writer of a partition, until another channel is created. A context manager.

    Creating the channel fences the previous writer, and waits until the previous writer's
    transaction is committed or aborted.

    Parameters
    ----------
    settings
        How to reach the cluster, and the topic's name.
    partition
        The partition of the topic.

    Raises
    ------
    ConfigurationError
        The user has no right to use the transactional id.
    KafkaUnavailableError
        Brokers do not answer in time.
    """

    def __init__(self, settings: KafkaSettings, partition: int) -> None:
        self._topic, self._partition = settings.plan_topic, partition
        self._timeout_s = settings.request_timeout_s
        config = settings.librdkafka(
            **{
                "transactional.id": f"{settings.plan_topic}-{partition}",
                "transaction.timeout.ms": str(_TRANSACTION_S * 1000),
                "delivery.timeout.ms": str(_TRANSACTION_S * 1000),
                "message.max.bytes": str(LARGEST_PLAN_BYTES),
                "linger.ms": "5",
            }
        )
        self._producer = Producer(config)
        self._in_transaction = False
        # Connect first: otherwise the producer needs half a second more to find its coordinator.
        connect = partial(self._producer.list_topics, self._topic)
        self._call("cannot be opened for writing", connect, self._timeout_s)
        self._call(
            "cannot be opened for writing", self._producer.init_transactions, self._timeout_s
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._in_transaction:  # else readers would wait until it times out
            with suppress(KafkaException), _fatal_errors():
                self._producer.abort_transaction(self._timeout_s)

    def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
        """Send records, at most one per group, and wait until they are committed.

        If the broker rejects a record, finds it by bisection and sends the other records.

        Returns
        -------
        A mapping from each group to its record's offset, or to the reason why the record was
        rejected.

        Raises
        ------
        ConfigurationError
            The user has no right to write to the topic.
        KafkaUnavailableError
            Brokers do not answer in time, or another writer has taken over. Some of the records may
            have been committed.
        """
        answers: dict[str, int | str] = {}
        pending = [list(batch) for batch in reversed(_batches(records))]
        spoiled = 0
        while pending:
            batch = pending.pop()
            try:
                answers.update(self._transact(batch))
            except SpoiledTransactionError as error:
                spoiled += 1
                if spoiled > _TRIES * len(records):
                    raise KafkaUnavailableError(f"Topic {self._topic}: {error}") from error
                pending.append(batch)
            except RefusedRecordError as refused:
                if len(batch) == 1:
                    answers[batch[0].group] = str(refused)
                    continue
                half = len(batch) // 2
                pending += [batch[half:], batch[:half]]
        return answers

    def _transact(self, batch: Sequence[Outgoing]) -> dict[str, int]:
        """Send a batch in one transaction; after a RefusedRecordError, nothing is committed."""
        offsets: dict[str, int] = {}
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets[(message.key() or b"").decode()] = message.offset() or 0

        self._call("cannot begin a transaction", self._producer.begin_transaction)
        self._in_transaction = True
        try:
            for record in batch:
                self._producer.produce(
                    self._topic,
                    record.value,
                    key=record.group.encode(),
                    headers=list(record.headers),
                    partition=self._partition,
                    on_delivery=delivered,
                )
            with _fatal_errors():
                self._producer.flush(_TRANSACTION_S + 1)
        except KafkaException as error:
            errors.insert(0, kafka_error(error))
        except BufferError as error:
            raise KafkaUnavailableError(f"Topic {self._topic}: {error}") from error
        if errors:
            self._give_up(errors, batch)
        self._call(
            "did not commit a transaction", self._producer.commit_transaction, self._timeout_s
        )
        self._in_transaction = False
        return offsets

    def _give_up(self, errors: Sequence[KafkaError], batch: Sequence[Outgoing]) -> NoReturn:
        """Abort a transaction in which records failed, and raise an error with the reason."""
        refused = _of_one_record(errors)
        cause = self._cause() if refused is None else None
        if cause is not None:
            refused = _of_one_record([cause]) or _of_some_record(cause, batch)
        spoiled = cause is not None and cause.code() == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        if not spoiled and refused is None:
            raise self._failure(KafkaException(errors[0]), "did not accept a record")
        self._call("cannot abort a transaction", self._producer.abort_transaction, self._timeout_s)
        self._in_transaction = False
        if spoiled or refused is None:
            raise SpoiledTransactionError(errors[0].str())
        raise RefusedRecordError(refused.str())

    def _cause(self) -> KafkaError | None:
        """Return why a transaction failed; its records' errors do not always show why."""
        try:
            with _fatal_errors():
                self._producer.commit_transaction(self._timeout_s)
        except KafkaException as error:
            return kafka_error(error)
        return None  # never reached: after a failed record, the commit fails

    def _call(self, what: str, call: Callable[..., object], *args: float) -> None:
        try:
            with _fatal_errors():
                call(*args)
        except KafkaException as error:
            raise self._failure(error, what) from error

    def _failure(self, error: KafkaException, what: str) -> Exception:
        cause = kafka_error(error)
        message = f"Topic {self._topic}, partition {self._partition}, {what}: {cause.str()}"
        if cause.code() in _FENCED or cause.fatal():
            self._in_transaction = False
            return KafkaUnavailableError(f"{message}. Another publisher has taken over")
        if cause.code() in TRANSIENT or cause.retriable() or cause.txn_requires_abort():
            return KafkaUnavailableError(message)
        return ConfigurationError(message)


def _of_one_record(errors: Sequence[KafkaError]) -> KafkaError | None:
    return next((error for error in errors if error.code() in _OF_ONE_RECORD), None)


def _of_some_record(cause: KafkaError, batch: Sequence[Outgoing]) -> KafkaError | None:
    """Return the error if a single record of the batch may have caused it; else None."""
    passing = cause.code() in TRANSIENT or cause.code() in _FENCED or cause.retriable()
    return cause if len(batch) > 1 and cause.txn_requires_abort() and not passing else None


@contextmanager
def _fatal_errors() -> Iterator[None]:
    """Raise the client's fatal error, such as a fenced producer, instead of a SystemError.

    If the fatal error occurs between two callbacks, the next callback fails with a SystemError.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


def _batches(records: Sequence[Outgoing]) -> list[list[Outgoing]]:
    """Split records into batches, one per transaction."""
    batches: list[list[Outgoing]] = []
    room = 0
    for record in records:
        size = len(record.value)
        if not batches or size > room:
            batches.append([])
            room = _AT_ONCE_BYTES
        batches[-1].append(record)
        room -= size
    return batches

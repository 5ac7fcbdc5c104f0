"""Sending to one partition of the plan topic, so that no earlier sender speaks after a later one.

Belongs here: the transactional producer of a partition, and finding the one record of a batch that
the broker refuses. Does not: what is sent, and the lock that senders take first
(`fairlead.workflows.delivery`).

All senders of a partition share one transactional id: the broker fences whoever had it before.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.kafka.requests import TRANSIENT, kafka_error
from fairlead.settings import KafkaSettings
from fairlead.wire.record import Headers

LARGEST_PLAN_BYTES: Final = 8 * 1024 * 1024
"""Above the plan of a million partitions; a record's limit on the topic and in the producer."""

#: Bytes in a transaction, unless one record has more: sent well within the transaction's time.
_AT_ONCE_BYTES: Final = 16 * 1024 * 1024
_TRANSACTION_S: Final = 10
#: How often a batch is sent again that another one's refusal has spoiled, by records.
_TRIES: Final = 2
# What a broker, or the client before it, says of a record by itself.
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
        KafkaError._FATAL,  # noqa: SLF001 - so librdkafka names its local errors
        KafkaError._FENCED,  # noqa: SLF001 - the same
        KafkaError._PURGE_INFLIGHT,  # noqa: SLF001 - the same
        KafkaError._PURGE_QUEUE,  # noqa: SLF001 - the same
        KafkaError._STATE,  # noqa: SLF001 - what was fenced may begin nothing any more
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.PRODUCER_FENCED,
    }
)


@dataclass(frozen=True)
class Outgoing:
    """A record to be sent."""

    group: str
    value: bytes
    headers: Headers


class RefusedRecordError(Exception):
    """The broker takes a batch not, because of a record in it."""


class SpoiledTransactionError(Exception):
    """A record that was refused before has left a gap in what the broker counts: the same again."""


class PlanChannel:
    """The one sender to a partition, until another one opens it. A context manager.

    Opening fences whoever had the partition before, and waits until what that sender began is
    either committed or gone.

    Parameters
    ----------
    settings
        How to reach the cluster, and the topic's name.
    partition
        Of the topic.

    Raises
    ------
    ConfigurationError
        The transactional id may not be used.
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
        # Connected first: else it looks for its coordinator half a second later again.
        connect = partial(self._producer.list_topics, self._topic)
        self._call("cannot be opened", connect, self._timeout_s)
        self._call("cannot be opened", self._producer.init_transactions, self._timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._in_transaction:  # the broker ends it too, but later
            with suppress(KafkaException), _fatal_errors():
                self._producer.abort_transaction(self._timeout_s)

    def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
        """Send records, one a group, and wait until they are committed.

        A record that the broker refuses is found by halves; the others are sent all the same.

        Returns
        -------
        Group to the record's offset, or to why the broker refuses it.

        Raises
        ------
        ConfigurationError
            The topic may not be written.
        KafkaUnavailableError
            Brokers do not answer in time, or another sender has taken over. What was not committed
            before may have been sent or not.
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
        """Send a batch in one transaction; RefusedRecordError: nothing of it is sent."""
        offsets: dict[str, int] = {}
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets[(message.key() or b"").decode()] = message.offset() or 0

        self._call("takes no transaction", self._producer.begin_transaction)
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
        self._call("did not commit", self._producer.commit_transaction, self._timeout_s)
        self._in_transaction = False
        return offsets

    def _give_up(self, errors: Sequence[KafkaError], batch: Sequence[Outgoing]) -> NoReturn:
        """Leave a transaction in which records failed, and raise what that means."""
        refused = _of_one_record(errors)
        cause = self._cause() if refused is None else None
        if cause is not None:
            refused = _of_one_record([cause]) or _of_some_record(cause, batch)
        spoiled = cause is not None and cause.code() == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        if not spoiled and refused is None:
            raise self._failure(KafkaException(errors[0]), "did not take a record")
        self._call("cannot be left", self._producer.abort_transaction, self._timeout_s)
        self._in_transaction = False
        if spoiled or refused is None:
            raise SpoiledTransactionError(errors[0].str())
        raise RefusedRecordError(refused.str())

    def _cause(self) -> KafkaError | None:
        """Return why a transaction cannot go on; its records may just say that it cannot."""
        try:
            with _fatal_errors():
                self._producer.commit_transaction(self._timeout_s)
        except KafkaException as error:
            return kafka_error(error)
        return None  # it cannot be: a record failed

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
    """Return what may be due to one of many records; of one alone it would be said."""
    passing = cause.code() in TRANSIENT or cause.code() in _FENCED or cause.retriable()
    return cause if len(batch) > 1 and cause.txn_requires_abort() and not passing else None


@contextmanager
def _fatal_errors() -> Iterator[None]:
    """Raise a fatal error, as that somebody is fenced, as what it is.

    The client raises it among callbacks, of which the next one fails for that.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise


def _batches(records: Sequence[Outgoing]) -> list[list[Outgoing]]:
    """Cut records into what goes into one transaction each."""
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

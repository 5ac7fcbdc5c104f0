"""Delivery: intents, then records, then what became of them; and what a crash left in between.

Belongs here: the order of the database's steps and the topic's, which holds whatever dies or
freezes between two of them. Does not: what is to be sent (`publication`, `retirement`, `lease`),
the steps themselves (`fairlead.store.outbox`, `fairlead.kafka.plan_channel`).

A sender takes the partition's lock, fences whoever sent before, and commits its intents on the
session that holds the lock: so nobody has fenced in between. One that froze before has lost the
lock, and cannot commit; one that froze after is fenced, and cannot send. Nor can it say any more
that something was not sent: its turn has passed, and another may have sent it.

The way of one plan, from top to bottom; `publication_pass` begins with what the last run left:

==================  ===================  ==================================  =====================
step                the plan is          who does it                         died before the next
==================  ===================  ==================================  =====================
`PublishRequest`    approved             `publication`, after verifying      nothing has happened
`OutboxEntry`       sending              `Turn.intend`: Postgres commits     `decide`: sent, or
                                                                             stale
record in topic     sending              `Channel.send`: Kafka commits       `finish`: published
`PublishedRecord`   published            `Outbox.confirm`: Postgres commits
(the topic will     refused              `Outbox.refuse`: Postgres commits
not have it)
==================  ===================  ==================================  =====================

A retirement goes the same way from `published` to `retired`, and stays `published` on it. A plan
that is told again, for its lease, has no entry: nothing is lost where that fails.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol, Self, TypeVar

from fairlead.domain.records import StoredPlan
from fairlead.errors import InvalidPlanError
from fairlead.kafka.plan_channel import Outgoing
from fairlead.kafka.plan_topic import Record
from fairlead.settings import KafkaSettings
from fairlead.store.outbox import Outbox, PartitionLock
from fairlead.store.outbox_entries import OutboxEntry, PublishRequest
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.record import Headers, Origin, plan_headers, retired_value
from fairlead.wire.record_reading import VerifiedRecord, read_record
from fairlead.wire.signing import Signer, Verifier


class _OfGroup(Protocol):
    @property
    def group(self) -> str: ...


Grouped = TypeVar("Grouped", bound=_OfGroup)


class Channel(Protocol):
    """The one sender to a partition, as `fairlead.kafka.plan_channel.PlanChannel`."""

    def __enter__(self) -> Self:
        """Use it."""

    def __exit__(self, *exc_info: object) -> None:
        """Let go of it."""

    def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
        """Send records; returns each group's offset, or why its record is refused."""


class Topic(Protocol):
    """What delivery needs of the plan topic."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def origin(self) -> Origin:
        """The topic, with the ids of the cluster and of the topic in it."""

    def partition_for_key(self, group: str) -> int:
        """Return the partition of a group's key."""

    def open(self, partition: int) -> Channel:
        """Become the one sender to a partition."""

    def newest(
        self,
        partition: int,
        groups: Sequence[str],
        only: Callable[[Record], bool] | None = None,
    ) -> Mapping[str, Record]:
        """Return the newest committed record that counts of groups with keys in a partition."""

    def held_up(self, partition: int, offset: int) -> int | None:
        """Return from which offset on followers read nothing of a partition; None: they read on."""


@dataclass(frozen=True)
class PublishOptions:
    """What goes for every record that is sent.

    Parameters
    ----------
    lease
        How long consumers follow a plan that they are not told of again.
    signer
        Signs the records; None: they are not signed.
    """

    lease: timedelta
    signer: Signer | None = None

    @classmethod
    def of(cls, settings: KafkaSettings) -> Self:
        """Return what the settings say."""
        return cls(settings.lease, settings.signer)

    def verifier(self) -> Verifier | None:
        """Return what tells the planner's own records; None: they are not signed."""
        return None if self.signer is None else self.signer.verifier()

    def outgoing(self, intent: OutboxEntry, origin: Origin) -> Outgoing:
        """Return the record that an intent becomes."""
        plan = intent.plan
        retired = intent.kind == "retired"
        value = retired_value(plan.group, plan.version) if retired else plan.document
        headers: Headers = plan_headers(
            value,
            group=plan.group,
            version=plan.version,
            origin=origin,
            epoch=intent.epoch,
            lease_until=intent.lease_until,
            kind=intent.kind,
            signer=self.signer,
        )
        return Outgoing(plan.group, value, headers)


#: Behind where a record is.
_HANGS: Final = (
    "; consumers do not read it yet: a transaction that another producer has left open hides all "
    "of the partition from offset "
)


@dataclass(frozen=True)
class Delivered:
    """What became of an intent.

    Parameters
    ----------
    intent
        It.
    position
        Partition and offset in the plan topic; None: the topic refuses it, or it was withdrawn.
    reason
        Why, or where it is.
    """

    intent: OutboxEntry
    position: tuple[int, int] | None
    reason: str


#: Says of plans that are on their way why they may not be sent; of groups that cannot be asked now,
#: nothing may be said at all: they are not in the answer.
Objections = Callable[[Sequence[StoredPlan]], Mapping[str, str]]


def deliver(
    outbox: Outbox, topic: Topic, wanted: Sequence[PublishRequest], options: PublishOptions
) -> Iterator[Delivered]:
    """Send what is wanted, a transaction or a few for each partition of the topic.

    One group's refusal is that group's: the others are sent.

    Raises
    ------
    ConfigurationError
        The topic cannot be written.
    KafkaUnavailableError
        Kafka does not answer, or another sender took over. What is on its way is settled by the
        next run.
    StoreUnavailableError
        The database does not answer, or this sender has lost its turn: nothing was sent.
    """
    for partition, wanted_here in by_partition(topic, wanted).items():
        with outbox.turn(topic.name, partition) as turn:
            channel = topic.open(partition)
            intents = turn.intend(wanted_here)
        with channel:
            yield from _Sender(outbox, topic, channel, turn.held, options).send(intents)


def settle(
    outbox: Outbox,
    topic: Topic,
    intents: Sequence[OutboxEntry],
    options: PublishOptions,
    *,
    objections: Objections,
    now: datetime,
) -> Iterator[Delivered]:
    """Finish or withdraw what an earlier sender has left on its way.

    What the topic has is finished, whatever has become of the group since: consumers follow it. The
    rest is sent, if the group still is what its plan was made for, and withdrawn if not.

    Parameters
    ----------
    intents
        Outstanding ones.
    objections
        To plans that are not in the topic.
    now
        When leases begin.

    Raises
    ------
    ConfigurationError, KafkaUnavailableError, StoreUnavailableError
        As `deliver`.
    """
    for partition, intents_here in by_partition(topic, intents).items():
        with outbox.turn(topic.name, partition) as turn:
            channel = topic.open(partition)
        groups = [intent.group for intent in intents_here]
        left = outbox.outstanding(groups)  # another sender may have settled some
        with channel:
            sender = _Sender(outbox, topic, channel, turn.held, options)
            missing = yield from sender.finish(left)
            yield from sender.decide(missing, objections, now)


@dataclass(frozen=True)
class _Sender:
    """Whoever has had the last turn at a partition."""

    outbox: Outbox
    topic: Topic
    channel: Channel
    held: PartitionLock
    options: PublishOptions

    def send(self, intents: Sequence[OutboxEntry]) -> Iterator[Delivered]:
        """Send what was intended, and record what came of it."""
        if not intents:
            return
        origin, name = self.topic.origin, self.topic.name
        answers = self.channel.send(
            [self.options.outgoing(intent_of, origin) for intent_of in intents]
        )
        sent: dict[str, tuple[OutboxEntry, PublishedRecord]] = {}
        refused: dict[str, tuple[OutboxEntry, str]] = {}
        for intent in intents:
            answer = answers[intent.group]
            if isinstance(answer, str):
                refused[intent.group] = (intent, f"the topic {name} does not take it: {answer}")
            else:
                sent[intent.group] = (intent, self._sent(intent, intent.lease_until, answer))
        self.outbox.confirm(sent)
        self.outbox.refuse(refused, self.held)
        last = max((at.offset for _, at in sent.values()), default=None)
        since = None if last is None else self.topic.held_up(self.held.partition, last)
        for intent, at in sent.values():
            done = self._is_at(intent, at)
            yield done if since is None else replace(done, reason=f"{done.reason}{_HANGS}{since}")
        yield from (Delivered(intent, None, reason) for intent, reason in refused.values())

    def finish(self, left: Sequence[OutboxEntry]) -> Generator[Delivered, None, list[OutboxEntry]]:
        """Confirm what the topic has; returns what it has not.

        Somebody may have covered it since; who has read it before follows it all the same.
        """
        if not left:
            return []
        origin, verifier = self.topic.origin, self.options.verifier()
        wanted = {intent.group: intent for intent in left}
        found: dict[str, VerifiedRecord] = {}

        def is_what_was_intended(record: Record) -> bool:
            intent, said = wanted[record.group], told(record, origin, verifier)
            rank = (intent.epoch, intent.plan.version, intent.kind == "retired")
            if said is None or said.identity.rank != rank:
                return False
            found[record.group] = said
            return True

        newest = self.topic.newest(self.held.partition, list(wanted), is_what_was_intended)
        sent = {
            group: (
                wanted[group],
                self._sent(wanted[group], found[group].lease_until, record.position.offset),
            )
            for group, record in newest.items()
        }
        self.outbox.confirm(sent)
        yield from (self._is_at(intent, at) for intent, at in sent.values())
        return [intent for intent in left if intent.group not in sent]

    def decide(
        self, missing: Sequence[OutboxEntry], objections: Objections, now: datetime
    ) -> Iterator[Delivered]:
        """Send what the topic has not, or withdraw what its group has outgrown."""
        reasons = objections([intent.plan for intent in missing if intent.kind == "plan"])
        withdrawn: dict[str, tuple[OutboxEntry, str]] = {}
        again = []
        for intent in missing:
            if intent.kind == "retired":
                again.append(intent)
            elif reason := reasons.get(intent.group):
                withdrawn[intent.group] = (intent, reason)
            elif intent.group in reasons:
                again.append(replace(intent, lease_until=now + self.options.lease))
        self.outbox.withdraw(withdrawn, self.held)
        yield from (Delivered(intent, None, reason) for intent, reason in withdrawn.values())
        yield from self.send(again)

    def _sent(self, intent: OutboxEntry, until: datetime | None, offset: int) -> PublishedRecord:
        return PublishedRecord(intent.epoch, until, self.topic.name, self.held.partition, offset)

    def _is_at(self, intent: OutboxEntry, at: PublishedRecord) -> Delivered:
        where = f"{at.topic}-{at.partition} at offset {at.offset}"
        return Delivered(intent, (at.partition, at.offset), where)


def told(record: Record, origin: Origin, verifier: Verifier | None) -> VerifiedRecord | None:
    """Read a record as a follower that knows all would; None: it would not heed it."""
    if record.value is None:
        return None
    try:
        return read_record(
            record.value, record.headers, group=record.group, origin=origin, verifier=verifier
        )
    except InvalidPlanError:
        return None


def by_partition(topic: Topic, ones: Iterable[Grouped]) -> dict[int, list[Grouped]]:
    """Gather what is of groups by the partitions that their keys land in, ascending."""
    found: dict[int, list[Grouped]] = {}
    for settled in ones:
        found.setdefault(topic.partition_for_key(settled.group), []).append(settled)
    return dict(sorted(found.items()))

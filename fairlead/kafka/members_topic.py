"""The members topic: compacted; its newest record under a group's id says who the members are.

Belongs here: creating the topic, reading the newest records, sending others. Does not: what one
says (`fairlead.wire.members_record`), nor when one is sent (`fairlead.workflows.following`).
"""

import logging
from collections.abc import Collection, Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fairlead.errors import ConfigurationError, InvalidPlanError, KafkaUnavailableError
from fairlead.kafka.plan_channel import LARGEST_PLAN_BYTES
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.kafka.requests import TRANSIENT, kafka_error
from fairlead.settings import KafkaSettings
from fairlead.wire.members_record import Membership, read_membership

log = logging.getLogger(__name__)

Known = dict[str, tuple[Membership, int]]
"""Group to what its newest good record says, and the record's epoch."""


class MembersTopic:
    """Reads and sends records of who is who. Not for several threads.

    Unlike plans, these are sent without a turn: each says how things are, and the next look mends
    what an older one has covered.

    Parameters
    ----------
    settings
        How to reach the cluster, the topic's name, and what records are signed with.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        as_topic = {"plan_topic": settings.members_topic, "plan_topic_partitions": 1}
        self._topic = PlanTopic(settings.model_copy(update=as_topic))
        self._settings = settings
        self._signer = settings.signer
        self._ready = False

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._topic.name

    def ensure(self) -> None:
        """Create the topic unless it exists; raises as `PlanTopic.ensure`.

        Brokers wait for it, and move nothing before: it is made with the plan topic.
        """
        if not self._ready:
            self._topic.ensure()
            self._ready = True

    def newest(self, groups: Collection[str]) -> Known:
        """Return what is said of groups; the topic is made, if there is none.

        Raises
        ------
        ConfigurationError
            The topic may not be created or read, or would lose records.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        self.ensure()
        verifier = None if self._signer is None else self._signer.verifier()
        by_partition: dict[int, list[str]] = {}
        for group in groups:
            by_partition.setdefault(self._topic.partition_for_key(group), []).append(group)
        known: Known = {}
        for partition, groups_there in by_partition.items():
            for group, record in self._topic.newest(partition, groups_there).items():
                if record.value is None:
                    continue
                try:
                    known[group] = read_membership(
                        record.value,
                        record.headers,
                        group=group,
                        origin=self._topic.origin,
                        verifier=verifier,
                    )
                except InvalidPlanError as error:
                    log.warning("Topic %s, group %s: %s; said again", self.name, group, error)
        return known

    def send(self, memberships: Iterable[Membership], known: Known) -> None:
        """Send records, and wait until they are written.

        Parameters
        ----------
        memberships
            What is to be said.
        known
            What was said last.

        Raises
        ------
        ConfigurationError
            The topic may not be written.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(error)

        producer = Producer(
            self._settings.librdkafka(
                **{
                    "enable.idempotence": "true",
                    "message.max.bytes": str(LARGEST_PLAN_BYTES),
                    "delivery.timeout.ms": str(int(self._settings.request_timeout_s * 1000)),
                }
            )
        )
        for membership in memberships:
            after = known[membership.group][1] if membership.group in known else 0
            headers = membership.headers(
                origin=self._topic.origin, after=after, signer=self._signer
            )
            try:
                producer.produce(
                    self.name,
                    membership.to_bytes(),
                    key=membership.group.encode(),
                    headers=list(headers),
                    partition=self._topic.partition_for_key(membership.group),
                    on_delivery=delivered,
                )
            except KafkaException as error:
                errors.append(kafka_error(error))
        left = producer.flush(self._settings.request_timeout_s)
        if errors and errors[0].code() not in TRANSIENT:
            raise ConfigurationError(f"Topic {self.name} does not take a record: {errors[0].str()}")
        if errors or left:
            raise KafkaUnavailableError(f"Topic {self.name}: not written in time")

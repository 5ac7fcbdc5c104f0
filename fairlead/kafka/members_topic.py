"""The members topic, a compacted topic with a record of the members of each group.

Belongs here: creating the topic, reading the newest records, sending new records. Belongs
elsewhere: the content of records (`fairlead.wire.members_record`), and deciding when to send them
(`fairlead.workflows.following`).
"""

import logging
from collections.abc import Collection, Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from fairlead.common.librdkafka import kafka_error
from fairlead.errors import ConfigurationError, InvalidPlanError, KafkaUnavailableError
from fairlead.kafka.compacted_topic import CompactedTopic
from fairlead.kafka.plan_channel import LARGEST_PLAN_BYTES
from fairlead.kafka.requests import TRANSIENT
from fairlead.settings import KafkaSettings
from fairlead.wire.members_record import Membership, read_membership

log = logging.getLogger(__name__)

#: Maps each group to the content of its newest valid record, and the record's epoch.
Known = dict[str, tuple[Membership, int]]


class MembersTopic(CompactedTopic):
    """Reads and sends records of groups' members. Use it in one thread.

    Until this topic exists, the broker's assignor keeps all assignments as they are. Unlike plans,
    these records are sent without a lock: each record is complete, and if an older record replaces
    a newer one, the next sample corrects this.

    Parameters
    ----------
    settings
        How to reach the cluster, the topic's name, and the private key.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings, settings.members_topic, partitions=1)
        self._signer = settings.signer

    def memberships(self, groups: Collection[str]) -> Known:
        """Return the newest record of each group; leave out groups without a valid record.

        Raises
        ------
        ConfigurationError
            The topic does not exist, or the user has no right to read the topic.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        verifier = None if self._signer is None else self._signer.verifier()
        by_partition: dict[int, list[str]] = {}
        for group in groups:
            by_partition.setdefault(self.partition_for_key(group), []).append(group)
        known: Known = {}
        for partition, groups_there in by_partition.items():
            for group, record in self.newest(partition, groups_there).items():
                if record.value is None:
                    continue
                try:
                    known[group] = read_membership(
                        record.value,
                        record.headers,
                        group=group,
                        origin=self.origin,
                        verifier=verifier,
                    )
                except InvalidPlanError as error:
                    log.warning(
                        "Topic %s, group %s: %s; sending the record again", self.name, group, error
                    )
        return known

    def send(self, memberships: Iterable[Membership], known: Known) -> None:
        """Send records, and wait until brokers have written them.

        Parameters
        ----------
        memberships
            The records to send.
        known
            The newest records, as returned by `memberships`.

        Raises
        ------
        ConfigurationError
            The topic refuses a record, for example because the user has no right to write.
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
            headers = membership.headers(origin=self.origin, after=after, signer=self._signer)
            try:
                producer.produce(
                    self.name,
                    membership.to_bytes(),
                    key=membership.group.encode(),
                    headers=list(headers),
                    partition=self.partition_for_key(membership.group),
                    on_delivery=delivered,
                )
            except KafkaException as error:
                errors.append(kafka_error(error))
        unsent = producer.flush(self._settings.request_timeout_s)
        if errors and errors[0].code() not in TRANSIENT:
            raise ConfigurationError(f"Topic {self.name} refuses a record: {errors[0].str()}")
        if errors or unsent:
            raise KafkaUnavailableError(f"Topic {self.name}: records were not written in time")

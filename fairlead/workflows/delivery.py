"""Records of the plan topic: creating a record to send, and checking a record that was read.

Belongs here: options of records, creating a record, and reading a record by the rules of consumers
that follow plans. Belongs elsewhere: the order of records (`reconciling`), Kafka
(`fairlead.kafka`).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from fairlead.errors import InvalidPlanError
from fairlead.kafka.compacted_topic import Record
from fairlead.kafka.plan_channel import Outgoing
from fairlead.settings import KafkaSettings
from fairlead.store.outbox_entries import OutboxEntry
from fairlead.wire.record import Headers, Origin, plan_headers, withdrawn_value
from fairlead.wire.record_reading import VerifiedRecord, read_record
from fairlead.wire.signing import Signer, Verifier


@dataclass(frozen=True)
class PublishOptions:
    """Options of every record that is sent.

    Parameters
    ----------
    lease
        Time for which consumers follow a plan without renewal.
    signer
        Signs the records; None: records are not signed.
    """

    lease: timedelta
    signer: Signer | None = None

    @classmethod
    def of(cls, settings: KafkaSettings) -> Self:
        """Return the options in settings."""
        return cls(settings.lease, settings.signer)

    def verifier(self) -> Verifier | None:
        """Return the verifier of the planner's own records; None: records are not signed."""
        return None if self.signer is None else self.signer.verifier()

    def outgoing(self, entry: OutboxEntry, origin: Origin) -> Outgoing:
        """Return the record to send for an entry of Postgres's outbox: a plan or a withdrawal."""
        plan = entry.plan
        withdrawn = entry.kind == "withdrawn"
        value = withdrawn_value(plan.group, plan.version) if withdrawn else plan.document
        headers: Headers = plan_headers(
            value,
            group=plan.group,
            version=plan.version,
            origin=origin,
            epoch=entry.epoch,
            lease_until=entry.lease_until,
            kind=entry.kind,
            signer=self.signer,
        )
        return Outgoing(plan.group, value, headers)


def accepted(record: Record, origin: Origin, verifier: Verifier | None) -> VerifiedRecord | None:
    """Parse a record; return None if consumers that follow plans would refuse the record."""
    if record.value is None:
        return None
    try:
        return read_record(
            record.value, record.headers, group=record.group, origin=origin, verifier=verifier
        )
    except InvalidPlanError:
        return None

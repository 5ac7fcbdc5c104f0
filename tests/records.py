"""Records of the plan topic for tests: a signing key, signed and unsigned headers, and sending."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.kafka.compacted_topic import Position, Record
from fairlead.kafka.plan_channel import Outgoing
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Services
from fairlead.settings import KafkaSettings
from fairlead.wire.document import PlanDocument
from fairlead.wire.record import Headers, Kind, Origin, plan_headers
from fairlead.wire.signing import Signer
from tests.waiting import PATIENCE_S, eventually

#: A signing key for tests only.
SIGNER = Signer.from_text("tests:MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f")
PUBLIC = SIGNER.public_text()
ORIGIN = Origin("fairlead.plans", "cluster", "log")


def signed(
    value: bytes,
    *,
    group: str = "group",
    version: int = 1,
    origin: Origin = ORIGIN,
    epoch: int = 1,
    lease_until: datetime | None = None,
    kind: Kind = "plan",
    signer: Signer | None = SIGNER,
) -> Headers:
    """Return a record's headers as the planner sends them. By default, the lease is a day."""
    until = lease_until or datetime.now(UTC) + timedelta(days=1)
    return plan_headers(
        value,
        group=group,
        version=version,
        origin=origin,
        epoch=epoch,
        lease_until=until if kind == "plan" else None,
        kind=kind,
        signer=signer,
    )


def unsigned(value: bytes, *, lease_until: datetime | None = None) -> Headers:
    """Return an unsigned plan's headers, without the ids of cluster and log.

    Without `lease_until`, the headers have no lease either.
    """
    match = re.search(rb'"version": ?(\d{1,9})\b', value)
    version = int(match[1]) if match else 1
    return plan_headers(
        value, group="", version=version, origin=Origin(""), epoch=1, lease_until=lease_until
    )


def signed_plan(plan: PlanDocument, origin: Origin = ORIGIN) -> tuple[bytes, Headers]:
    """Return the value and headers of a plan's signed record."""
    value = plan.to_bytes()
    return value, signed(value, group=plan.group, version=plan.version, origin=origin)


def origin_of(services: Services, topic: str) -> Origin:
    """Return the origin (topic, cluster, log) for the headers of a topic's records."""
    settings = KafkaSettings(
        bootstrap_servers=services.bootstrap_servers,
        plan_topic=topic,
        request_timeout_s=PATIENCE_S,
    )
    with PlanTopic(settings) as plans:
        return plans.origin


def newest_record(topic: PlanTopic, group: str = "orders") -> Record:
    """Return a group's newest record, which must exist."""
    record = topic.read(group)
    assert record is not None
    return record


def publish(topic: PlanTopic, group: str, value: bytes, headers: Headers) -> Position:
    """Send one record as the publisher does, again if a transaction times out; wait for its end."""
    partition, answers = topic.partition_for_key(group), list[int | str]()

    def sent() -> bool:
        with suppress(KafkaUnavailableError), topic.open(partition) as channel:
            answers.append(channel.send([Outgoing(group, value, headers)])[group])
        return bool(answers)

    eventually(sent, "the broker answers in time")
    (answer,) = answers
    if isinstance(answer, str):
        raise ConfigurationError(f"{topic.name} did not take the record of group {group}: {answer}")
    offset = answer
    eventually(lambda: topic.held_up(partition, offset) is None, "the transaction ends")
    return Position(partition, offset)

"""What Kafka allows whoever asks, by its own telling, and the commands that allow more.

Belongs here: authorized operations (KIP-430), and rules where Kafka tells none. Does not: which
rights are needed (`fairlead.surfaces.doctor`).
"""

from collections.abc import Collection, Iterable
from typing import Any, Final

from confluent_kafka import (
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from fairlead.common.commands import shell_quote
from fairlead.errors import KafkaUnavailableError
from fairlead.kafka.requests import GRACE_S, kafka_error
from fairlead.settings import KafkaSettings

CLUSTER: Final = "cluster"
CLUSTER_NAME: Final = "kafka-cluster"
#: What nobody but a superuser is given all of.
_EVERYTHING: Final = frozenset({"ALTER", "CLUSTER_ACTION", "CREATE", "DESCRIBE"})
_KINDS: Final = {
    CLUSTER: ResourceType.BROKER,
    "topic": ResourceType.TOPIC,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,  # type: ignore[attr-defined] # as above
}


def remedy(kind: str, name: str, operations: Iterable[str], *, prefixed: bool = False) -> str:
    """Return the command that gives somebody rights.

    Examples
    --------
    >>> remedy("topic", "orders", ["DESCRIBE_CONFIGS"]).partition(" --operation ")[2]
    'DescribeConfigs --topic orders'
    """
    asked = " ".join(f"--operation {_spelt(operation)}" for operation in operations)
    whom = f"--{kind}" if kind == CLUSTER else f"--{kind} {shell_quote(name)}"
    pattern = " --resource-pattern-type prefixed" if prefixed else ""
    return (
        "kafka-acls.sh --bootstrap-server BROKER --add --allow-principal User:NAME "
        f"{asked} {whom}{pattern}"
    )


class Rights:
    """Asks a cluster what it allows this user.

    Parameters
    ----------
    settings
        How to reach it, and as whom.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._admin = AdminClient(settings.librdkafka())
        self._wait_s = settings.request_timeout_s
        self._user = str(settings.librdkafka().get("sasl.username", ""))
        self._cluster: Any = None

    @property
    def admin(self) -> AdminClient:
        """The client, for what is no right."""
        return self._admin

    def cluster(self) -> Any:
        """Return the cluster's description, with the operations that are allowed on it.

        Raises
        ------
        KafkaUnavailableError
            No broker answers in time.
        """
        if self._cluster is None:
            asked: Any = self._admin.describe_cluster(
                include_authorized_operations=True, request_timeout=self._wait_s
            )
            try:
                self._cluster = asked.result(self._wait_s + GRACE_S)
            except KafkaException as error:
                why = kafka_error(error).str()
                raise KafkaUnavailableError(f"Kafka does not answer: {why}") from error
        return self._cluster

    def on_cluster(self) -> frozenset[str]:
        """Return the operations that are allowed on the cluster."""
        return _names(self.cluster())

    def on_topics(self, topics: Collection[str]) -> dict[str, tuple[frozenset[str], str | None]]:
        """Return the operations that are allowed on topics, or what Kafka says instead."""
        asked = self._admin.describe_topics(
            TopicCollection(list(topics)),
            include_authorized_operations=True,
            request_timeout=self._wait_s,
        )
        return self._told(asked)

    def on_groups(self, groups: Collection[str]) -> dict[str, tuple[frozenset[str], str | None]]:
        """Return the operations that are allowed on groups, or what Kafka says instead."""
        asked = self._admin.describe_consumer_groups(
            list(groups),
            include_authorized_operations=True,  # type: ignore[call-arg] # not in the stubs
            request_timeout=self._wait_s,
        )
        return self._told(asked)

    def _told(self, asked: Any) -> dict[str, tuple[frozenset[str], str | None]]:
        found: dict[str, tuple[frozenset[str], str | None]] = {}
        for name, future in asked.items():
            try:
                found[name] = _names(future.result(self._wait_s + GRACE_S)), None
            except KafkaException as error:
                cause = kafka_error(error)
                found[name] = frozenset(), f"{cause.name()}: {cause.str()}"
        return found

    def by_rule(self, kind: str, name: str, operation: str) -> bool | None:
        """Return whether a rule allows an operation where Kafka tells no operations; None: unknown.

        Rules may be read with DESCRIBE on the cluster, and superusers need none.
        """
        if self.on_cluster() >= _EVERYTHING:
            return True
        match = AclBindingFilter(
            _KINDS[kind],
            name,
            ResourcePatternType.MATCH,
            None,  # type: ignore[arg-type] # anybody, whatever the stubs say
            None,  # type: ignore[arg-type] # from anywhere
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        try:
            future: Any = self._admin.describe_acls(match, request_timeout=self._wait_s)
            rules = future.result(self._wait_s + GRACE_S)
        except KafkaException as error:
            off = kafka_error(error).code() == KafkaError.SECURITY_DISABLED
            return True if off else None
        if not self._user:  # whoever a certificate names
            return None
        mine = [
            rule
            for rule in rules
            if rule.principal in {f"User:{self._user}", "User:*"}
            and rule.operation.name in {operation, "ALL"}
        ]
        denied = any(rule.permission_type is AclPermissionType.DENY for rule in mine)
        return bool(mine) and not denied


def _names(described: Any) -> frozenset[str]:
    names = {operation.name for operation in described.authorized_operations or ()}
    return frozenset(names)


def _spelt(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))

"""The rights of the present user in Kafka, and the commands that grant missing rights.

Belongs here: reading authorized operations (KIP-430), and ACLs for resources that have no
authorized operations. Belongs elsewhere: which rights Fairlead needs (`fairlead.surfaces.doctor`).
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
from fairlead.common.librdkafka import kafka_error
from fairlead.errors import KafkaUnavailableError
from fairlead.kafka.requests import GRACE_S
from fairlead.settings import KafkaSettings

CLUSTER: Final = "cluster"
CLUSTER_NAME: Final = "kafka-cluster"
#: Operations on the cluster. A user with the right to all of them counts as a superuser.
_EVERYTHING: Final = frozenset({"ALTER", "CLUSTER_ACTION", "CREATE", "DESCRIBE"})
_KINDS: Final = {
    CLUSTER: ResourceType.BROKER,
    "topic": ResourceType.TOPIC,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,  # type: ignore[attr-defined] # as above
}

#: Maps each name to the authorized operations, and the error if there is no answer.
Operations = dict[str, tuple[frozenset[str], KafkaError | None]]


def remedy(kind: str, name: str, operations: Iterable[str], *, prefixed: bool = False) -> str:
    """Return the command that grants rights.

    Examples
    --------
    >>> remedy("topic", "orders", ["DESCRIBE_CONFIGS"]).partition(" --operation ")[2]
    'DescribeConfigs --topic orders'
    """
    options = " ".join(f"--operation {_spelt(operation)}" for operation in operations)
    whom = f"--{kind}" if kind == CLUSTER else f"--{kind} {shell_quote(name)}"
    pattern = " --resource-pattern-type prefixed" if prefixed else ""
    return (
        "kafka-acls.sh --bootstrap-server BROKER --add --allow-principal User:NAME "
        f"{options} {whom}{pattern}"
    )


class Rights:
    """Reads the rights of the present user in a cluster.

    Parameters
    ----------
    settings
        How to reach the cluster, and the user.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.admin = AdminClient(settings.librdkafka())
        self._wait_s = settings.request_timeout_s
        self._user = str(settings.librdkafka().get("sasl.username", ""))
        self._cluster: Any = None

    def cluster(self) -> Any:
        """Return the cluster's description with its authorized operations.

        Raises
        ------
        KafkaUnavailableError
            No broker answers in time.
        """
        if self._cluster is None:
            future: Any = self.admin.describe_cluster(
                include_authorized_operations=True, request_timeout=self._wait_s
            )
            try:
                self._cluster = future.result(self._wait_s + GRACE_S)
            except KafkaException as error:
                why = kafka_error(error).str()
                raise KafkaUnavailableError(f"Kafka does not answer: {why}") from error
        return self._cluster

    def on_cluster(self) -> frozenset[str]:
        """Return the authorized operations on the cluster."""
        return _names(self.cluster())

    def on_topics(self, topics: Collection[str]) -> Operations:
        """Return the authorized operations on each topic, or the error of reading them."""
        futures = self.admin.describe_topics(
            TopicCollection(list(topics)),
            include_authorized_operations=True,
            request_timeout=self._wait_s,
        )
        return self._operations(futures)

    def on_groups(self, groups: Collection[str]) -> Operations:
        """Return the authorized operations on each group, or the error of reading them."""
        futures = self.admin.describe_consumer_groups(
            list(groups),
            include_authorized_operations=True,  # type: ignore[call-arg] # not in the stubs
            request_timeout=self._wait_s,
        )
        return self._operations(futures)

    def _operations(self, futures: Any) -> Operations:
        operations: Operations = {}
        for name, future in futures.items():
            try:
                operations[name] = _names(future.result(self._wait_s + GRACE_S)), None
            except KafkaException as error:
                operations[name] = frozenset(), kafka_error(error)
        return operations

    def by_rule(self, kind: str, name: str, operation: str) -> bool | None:
        """Return whether ACLs allow the user an operation; None: unknown.

        Use this for resources for which Kafka does not report authorized operations. Reading ACLs
        requires DESCRIBE on the cluster. For superusers, returns True without an ACL.
        """
        if self.on_cluster() >= _EVERYTHING:
            return True
        match = AclBindingFilter(
            _KINDS[kind],
            name,
            ResourcePatternType.MATCH,
            None,  # type: ignore[arg-type] # any principal; the stubs are wrong
            None,  # type: ignore[arg-type] # from anywhere
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        try:
            future: Any = self.admin.describe_acls(match, request_timeout=self._wait_s)
            rules = future.result(self._wait_s + GRACE_S)
        except KafkaException as error:
            off = kafka_error(error).code() == KafkaError.SECURITY_DISABLED
            return True if off else None
        if not self._user:  # the user's name is in a certificate, so unknown here
            return None
        rules_of_user = [
            rule
            for rule in rules
            if rule.principal in {f"User:{self._user}", "User:*"}
            and rule.operation.name in {operation, "ALL"}
        ]
        denied = any(rule.permission_type is AclPermissionType.DENY for rule in rules_of_user)
        return bool(rules_of_user) and not denied


def _names(described: Any) -> frozenset[str]:
    return frozenset(operation.name for operation in described.authorized_operations or ())


def _spelt(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))

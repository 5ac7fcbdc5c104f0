"""What followers with confluent-kafka ask of a cluster about their topics.

Belongs here: the pin topic's settings, and a topic's id. Does not: reading or writing a topic
(`pin_log`, `plan_source`).
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from fairlead.common.commands import alter_topic, shell_quote
from fairlead.errors import ConfigurationError
from fairlead.followers.confluent.clients import admin_client
from fairlead.wire.partitions import kafka_uuid

log = logging.getLogger(__name__)

#: Append only: compaction would remove the record that decides. A day's retention is long: a record
#: matters for seconds.
PIN_TOPIC_CONFIG: Final = {
    "cleanup.policy": "delete",
    "retention.ms": str(24 * 60 * 60 * 1000),
    "compression.type": "gzip",  # as members send it: whatever others send, every client reads
}
PIN_PARTITIONS: Final = 8


class TopicIdRequest:
    """Asks for the id that the cluster gave a topic.

    Parameters
    ----------
    admin
        Asks; answers nothing once it is let go.
    topic
        Its name.
    timeout_s
        How long the request may take.
    """

    def __init__(self, admin: AdminClient, topic: str, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        asked = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)
        self._asked = asked[topic]

    def answer(self) -> str:
        """Wait for the id; "" where the cluster gives none.

        Raises
        ------
        KafkaException
            No broker answers in time: what is not known now must not pass for unknown to all.
        """
        try:
            return kafka_uuid(str(self._asked.result(self._timeout_s + 1).topic_id))
        except TimeoutError as error:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error  # noqa: SLF001
        except KafkaException as error:
            if cause_of(error).code() == KafkaError._UNSUPPORTED_FEATURE:  # noqa: SLF001
                return ""
            raise


def create_pin_topic(connection: Mapping[str, Any], topic: str, *, timeout_s: float = 10.0) -> None:
    """Create the pin topic unless it exists.

    Raises
    ------
    ConfigurationError
        It may not be created.
    KafkaException
        No broker answers in time.
    """
    admin = admin_client(connection)
    new = NewTopic(topic, PIN_PARTITIONS, config=PIN_TOPIC_CONFIG)  # replicas: the brokers' default
    try:
        admin.create_topics([new], request_timeout=timeout_s)[topic].result(timeout_s + 1)
    except KafkaException as error:
        code = cause_of(error).code()
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise ConfigurationError(
                f"The pin topic {topic} does not exist and may not be created. Create it: "
                f"kafka-topics.sh --create --topic {shell_quote(topic)} "
                f"--partitions {PIN_PARTITIONS} "
                + " ".join(f"--config {name}={value}" for name, value in PIN_TOPIC_CONFIG.items())
            ) from error
        if code != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    except TimeoutError as error:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error  # noqa: SLF001


def check_pin_topic(connection: Mapping[str, Any], topic: str, *, timeout_s: float = 10.0) -> None:
    """Check that the pin topic is not compacted, where its settings may be read.

    Raises
    ------
    ConfigurationError
        It is compacted.
    """
    admin = admin_client(connection)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        config = admin.describe_configs([resource], request_timeout=timeout_s)[resource].result(
            timeout_s + 1
        )
    except (KafkaException, TimeoutError) as error:
        log.debug("The settings of pin topic %s cannot be read: %s", topic, error)
        return
    if "compact" in (config["cleanup.policy"].value or ""):
        raise ConfigurationError(
            f"The pin topic {topic} has cleanup.policy={config['cleanup.policy'].value}: "
            "compaction would remove the record that decides. Change it: "
            + alter_topic(topic, "cleanup.policy=delete")
        )


def cause_of(error: KafkaException) -> KafkaError:
    """Return what an exception of the client carries."""
    cause = error.args[0]
    return cause if isinstance(cause, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(cause))

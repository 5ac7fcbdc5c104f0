"""Create topics on brokers that may be slow."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.common.librdkafka import kafka_error
from tests.waiting import PATIENCE_S, eventually

#: Error that means success: names are unique, so an earlier attempt has created the topic.
_MADE = KafkaError.TOPIC_ALREADY_EXISTS
#: Errors after which to try again: a busy controller may briefly lose a broker, or answer too late.
_AGAIN = {KafkaError.INVALID_REPLICATION_FACTOR, KafkaError._TIMED_OUT}


def create_topics(admin: AdminClient, *topics: NewTopic) -> None:
    """Create topics with names that no test used before."""
    for topic in topics:
        eventually(lambda: _is_made(admin, topic), f"topic {topic.topic}")  # noqa: B023 - at once


def _is_made(admin: AdminClient, topic: NewTopic) -> bool:
    try:
        admin.create_topics([topic])[topic.topic].result(timeout=PATIENCE_S)
    except KafkaException as error:
        code = kafka_error(error).code()
        if code not in {_MADE, *_AGAIN}:
            raise
        return bool(code == _MADE)
    return True

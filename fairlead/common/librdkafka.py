"""Errors of confluent-kafka's clients, for the planner and followers.

Belongs here: reading them. Does not: which of them are retried.
"""

from confluent_kafka import KafkaError, KafkaException


def kafka_error(error: KafkaException) -> KafkaError:
    """Return the KafkaError in an exception of the client.

    Examples
    --------
    >>> kafka_error(KafkaException("what the client says")).str()
    'what the client says'
    """
    cause = error.args[0]
    return cause if isinstance(cause, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(cause))

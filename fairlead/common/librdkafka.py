"""Errors of confluent-kafka's clients, for the planner and for consumers that follow plans.

Belongs here: getting Kafka's error from an exception. Belongs elsewhere: which errors are retried
(`fairlead.kafka.requests`).
"""

from confluent_kafka import KafkaError, KafkaException


def kafka_error(error: KafkaException) -> KafkaError:
    """Return the KafkaError that an exception of a client contains.

    Examples
    --------
    >>> kafka_error(KafkaException("what the client says")).str()
    'what the client says'
    """
    cause = error.args[0]
    return cause if isinstance(cause, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(cause))

"""Opening kafka-python's clients, for the planner and for consumers that follow plans.

Belongs here: workarounds for two bugs of kafka-python. First, kafka-python logs passwords at the
level DEBUG. Second, if the constructor of a client cannot reach the cluster, the client's network
thread keeps running.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kafka.net.compat import KafkaNetClient

Client = TypeVar("Client")

_REQUEST: Final = "kafka.net.connection"
#: Loggers that may log passwords, in configurations and in encoded requests.
_ALWAYS: Final = ("kafka.admin.client", "kafka.protocol.parser")


def connect(kind: Callable[..., Client], configuration: Mapping[str, Any]) -> Client:
    """Return a new consumer or admin client; leave no thread running if this fails.

    Parameters
    ----------
    kind
        KafkaConsumer or KafkaAdminClient.
    configuration
        The client's configuration.

    Raises
    ------
    kafka.errors.KafkaError
        The client's constructor fails.
    """
    keep_secrets()
    clients: list[KafkaNetClient] = []

    def new_client(**settings: Any) -> KafkaNetClient:
        clients.append(configuration.get("kafka_client", KafkaNetClient)(**settings))
        return clients[-1]

    try:
        return kind(**{**configuration, "kafka_client": new_client})
    except BaseException:
        for client in clients:
            client.close()
        raise


def keep_secrets() -> None:
    """Stop kafka-python from logging passwords in this process; can be called repeatedly.

    kafka-python logs passwords in the configurations of admin clients, and in authentication
    requests, both decoded and encoded.
    """
    for name in (_REQUEST, *_ALWAYS):
        logging.getLogger(name).addFilter(_holds_no_secret)


def _holds_no_secret(record: logging.LogRecord) -> bool:
    if record.levelno > logging.DEBUG:
        return True
    if record.name == _REQUEST:
        arguments = record.args if isinstance(record.args, tuple) else (record.args,)
        return not any(type(handler).__name__.startswith("Sasl") for handler in arguments)
    return "configuration" not in record.msg and record.name != "kafka.protocol.parser"

"""Opening kafka-python's clients, for the planner and followers.

Belongs here: workarounds for two bugs of kafka-python. It logs passwords at DEBUG, and a client
that cannot reach the cluster raises an error, but leaves its network thread running.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kafka.net.compat import KafkaNetClient

Client = TypeVar("Client")

_REQUEST: Final = "kafka.net.connection"
#: Loggers that may print passwords: of the configuration, and of encoded requests.
_ALWAYS: Final = ("kafka.admin.client", "kafka.protocol.parser")


def connect(kind: Callable[..., Client], configuration: Mapping[str, Any]) -> Client:
    """Return a new consumer or admin client; a failed attempt leaves no thread.

    Parameters
    ----------
    kind
        KafkaConsumer or KafkaAdminClient.
    configuration
        The client's configuration.

    Raises
    ------
    kafka.errors.KafkaError
        An error of the constructor.
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

    kafka-python logs the configuration of admin clients, and authentication as requests and as
    bytes.
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

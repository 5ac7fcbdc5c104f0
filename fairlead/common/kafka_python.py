"""How the planner and followers open clients of kafka-python.

Belongs here: workarounds for two bugs of kafka-python. It logs passwords at DEBUG, and a client
that cannot reach the cluster raises, but leaves its network thread running.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:  # imported when a client is opened: it takes as long as all else of the planner
    from kafka.net.compat import KafkaNetClient

Client = TypeVar("Client")

_REQUEST: Final = "kafka.net.connection"
#: The client's whole configuration; every byte that is sent, and each request once more.
_ALWAYS: Final = ("kafka.admin.client", "kafka.protocol.parser")


def connect(kind: Callable[..., Client], configuration: Mapping[str, Any]) -> Client:
    """Return a new consumer or admin client; an attempt that fails ends its thread.

    Parameters
    ----------
    kind
        KafkaConsumer or KafkaAdminClient.
    configuration
        The client's configuration.

    Raises
    ------
    kafka.errors.KafkaError
        Whatever the constructor raises.
    """
    from kafka.net.compat import KafkaNetClient  # noqa: PLC0415 - see above

    keep_secrets()
    clients: list[KafkaNetClient] = []

    def new_client(**settings: Any) -> "KafkaNetClient":
        clients.append(configuration.get("kafka_client", KafkaNetClient)(**settings))
        return clients[-1]

    try:
        return kind(**{**configuration, "kafka_client": new_client})
    except BaseException:
        for client in clients:
            client.close()
        raise


def keep_secrets() -> None:
    """Keep kafka-python from logging passwords, in this process; may be called again and again.

    It logs the configuration of an admin client, and how a client authenticates: as requests, and
    as the bytes that are sent.
    """
    for name in (_REQUEST, *_ALWAYS):
        logging.getLogger(name).addFilter(_holds_no_secret)


def _holds_no_secret(record: logging.LogRecord) -> bool:
    if record.levelno > logging.DEBUG:
        return True
    if record.name == _REQUEST:
        given = record.args if isinstance(record.args, tuple) else (record.args,)
        return not any(type(handler).__name__.startswith("Sasl") for handler in given)
    return "configuration" not in record.msg and record.name != "kafka.protocol.parser"

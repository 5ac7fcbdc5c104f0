"""Connect with kafka-python, or fail without a trace.

Belongs here: the way round one error of kafka-python 3.0: what does not reach the cluster raises
from its constructor, but leaves its network thread running.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka.net.compat import KafkaNetClient

from fairlead.common.kafka_python_log import keep_secrets

Connected = TypeVar("Connected")


def connect(kind: Callable[..., Connected], configuration: Mapping[str, Any]) -> Connected:
    """Return a new consumer or admin client; each attempt that fails ends its thread.

    Parameters
    ----------
    kind
        KafkaConsumer or KafkaAdminClient.
    configuration
        Its own.
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

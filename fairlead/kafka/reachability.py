"""Check whether a broker accepts TCP connections, to report a wrong address within seconds.

Belongs here: TCP connections. Belongs elsewhere: failed logins (`refusals`).

librdkafka and kafka-python try to connect until a request times out, and then report neither the
address nor the reason. kafka-python also leaks sockets.
"""

import socket
import time
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from fairlead.errors import KafkaUnavailableError
from fairlead.settings import KafkaSettings

#: Total seconds for all addresses: enough to resolve a name and to send a lost packet again.
CONNECT_S: Final = 3.0
_DEFAULT_PORT: Final = 9092
_MOST_NAMED: Final = 3


def unreachable(bootstrap_servers: str) -> str | None:
    """Return why no bootstrap server accepts a connection; None if one does.

    Examples
    --------
    >>> unreachable("localhost:1")
    'localhost:1: Connection refused'
    """
    addresses = [address.strip() for address in bootstrap_servers.split(",") if address.strip()]
    answers: SimpleQueue[str | None] = SimpleQueue()
    for address in addresses:  # in parallel, so that a silent address does not delay the others
        Thread(target=lambda at=address: answers.put(_refusal(at)), daemon=True).start()
    deadline = time.monotonic() + CONNECT_S
    reasons: list[str] = []
    for _ in addresses:
        try:
            reason = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            silent = [at for at in addresses if not any(why.startswith(at) for why in reasons)]
            reasons += [f"{at}: no answer within {CONNECT_S:.0f} s" for at in silent]
            break
        if reason is None:
            return None
        reasons.append(reason)
    return "; ".join(reasons[:_MOST_NAMED])


def require_broker(settings: KafkaSettings) -> None:
    """Raise KafkaUnavailableError if no bootstrap server accepts a connection.

    The message has the addresses and the reasons; `refusals` adds the name of the setting.
    """
    if why := unreachable(str(settings.librdkafka()["bootstrap.servers"])):
        raise KafkaUnavailableError(f"Kafka does not answer: {why}")


def _refusal(address: str) -> str | None:
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or port.endswith("]"):
        host, port = f"{host}{colon}{port}", str(_DEFAULT_PORT)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
    except (OSError, ValueError) as error:
        return f"{address}: {getattr(error, 'strerror', None) or error}"
    return None

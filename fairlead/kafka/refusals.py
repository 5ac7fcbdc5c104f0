"""Finding out why a connection fails, for example a wrong password or an untrusted certificate.

Belongs here: connecting once more to learn the reason and to name a remedy. Belongs elsewhere:
retries (`requests`).

For every reason, librdkafka raises the same time-out. It passes the reason only to a callback.
"""

import re
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.settings import KafkaSettings, set_by

_PATIENCE_S: Final = 5.0
#: Form of librdkafka's messages: "sasl_ssl://HOST:PORT/bootstrap: WHAT (after 12ms in state ...)"
_REASON: Final = re.compile(r"(?:\w+://)?(?P<where>[^/\s]+)/\S+: (?P<what>.+?)(?: \(after .*)?")
#: OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_OTHER_HOST: Final = frozenset({62, 64})


def raise_if_refused(error: BaseException | None, settings: KafkaSettings) -> None:
    """If the error is a KafkaUnavailableError, raise an error that explains it; otherwise return.

    Raises
    ------
    ConfigurationError
        A broker refuses the client; the message has its address, the reason and the settings.
    KafkaUnavailableError
        No broker answers; the message has the addresses and the name of the setting.
    """
    if not isinstance(error, KafkaUnavailableError):
        return
    if why := refusal(settings):
        raise ConfigurationError(why) from error
    where = set_by("kafka.bootstrap_servers", "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS")
    raise KafkaUnavailableError(
        f"{error}. Does a broker run at {settings.bootstrap_servers}, and is {where} right?"
    ) from error


def refusal(settings: KafkaSettings) -> str | None:
    """Connect once more; return why brokers refuse the connection, or None.

    Returns None if brokers accept the connection or do not answer. With the protocol PLAINTEXT,
    always returns None, without connecting.
    """
    config = settings.librdkafka()
    if config.get("security.protocol", "plaintext").lower() == "plaintext":
        return None
    reasons: dict[int, str] = {}

    def listen(error: KafkaError) -> None:
        reasons.setdefault(error.code(), error.str())

    admin = AdminClient({**config, "log_level": "0", "error_cb": listen})
    with suppress(KafkaException):
        admin.list_topics(timeout=_PATIENCE_S)
    admin.poll(0)
    if denied := _REASON.fullmatch(reasons.get(KafkaError._AUTHENTICATION, "")):
        return (
            f"Kafka at {denied['where']} refuses the user {config.get('sasl.username', '')}: "
            f"{denied['what']}. Are sasl.mechanism, sasl.username and sasl.password of "
            "kafka.properties right?"
        )
    if broken := _REASON.fullmatch(reasons.get(KafkaError._SSL, "")):
        return _distrust(broken["where"], broken["what"], config)
    return None


def _distrust(where: str, what: str, config: dict[str, Any]) -> str:
    """Return the reason of a failed TLS handshake, found by a handshake with Python's `ssl`.

    librdkafka's message is the same for all reasons.
    """
    authorities = config.get("ssl.ca.location", "")
    with suppress(OSError, ValueError):
        try:
            _shake_hands(where, authorities)
        except ssl.SSLCertVerificationError as error:
            if error.verify_code in _OTHER_HOST:
                return (
                    f"Kafka at {where} shows another host's certificate: {error.verify_message} "
                    "Name brokers in kafka.bootstrap_servers, and in their advertised.listeners, "
                    "as their certificates do"
                )
            return (
                f"Kafka at {where} shows a certificate that is not trusted: {error.verify_message}."
                f" Is ssl.ca.location of kafka.properties ({authorities or 'not set: the system'}) "
                "the authority that signed it?"
            )
    return f"Kafka at {where}: {what}. Are the ssl.* settings of kafka.properties right?"


def _shake_hands(where: str, authorities: str) -> None:
    host, _, port = where.rpartition(":")
    host = host.strip("[]")
    folder = bool(authorities) and Path(authorities).is_dir()
    context = ssl.create_default_context(
        cafile=None if folder else authorities or None, capath=authorities if folder else None
    )
    with (
        socket.create_connection((host, int(port)), timeout=_PATIENCE_S) as connection,
        context.wrap_socket(connection, server_hostname=host),
    ):
        pass

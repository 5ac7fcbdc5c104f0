"""kafka-python's connection settings, translated from librdkafka's.

Belongs here: settings for addresses, encryption and authentication, and opening a client with them.
Belongs elsewhere: other settings of librdkafka, which kafka-python does not need.
"""

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from fairlead.common.kafka_python import connect
from fairlead.common.nearest import nearest
from fairlead.errors import ConfigurationError
from fairlead.settings import KafkaSettings

_NAMES: Final = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_UPPER_CASE: Final = {"security_protocol", "sasl_mechanism"}
_HOSTNAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_VERIFICATION: Final = "enable.ssl.certificate.verification"
_MECHANISMS: Final = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
_OAUTH: Final = "OAuth is not supported, because kafka-python gets no token from librdkafka"
_STORE: Final = (
    "kafka-python reads PEM files: use ssl.ca.location, ssl.certificate.location and "
    "ssl.key.location"
)
#: Names or prefixes of settings that are refused, with the reason. Other security settings that
#: kafka-python lacks are refused as well.
REFUSED: Final = {
    "sasl.oauthbearer.": _OAUTH,
    "enable.sasl.oauthbearer.unsecure.jwt": _OAUTH,
    "sasl.kerberos.": "Kerberos is not supported, because confluent-kafka is built without it",
    "sasl.jaas.config": "it is a setting of Java clients: use sasl.username and sasl.password",
    "ssl.keystore.": _STORE,
    "ssl.truststore.": _STORE,
    _VERIFICATION: "certificates are always verified: name their authority in ssl.ca.location",
}
_SECURITY_PREFIXES: Final = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")


def kafka_python_settings(librdkafka: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a librdkafka configuration for kafka-python.

    Leaves out settings that do not concern connections.

    Parameters
    ----------
    librdkafka
        Maps librdkafka's names of settings to values. Secrets are in plain text.

    Returns
    -------
    dict
        Maps kafka-python's names of settings to values. Secrets are in plain text: never log them.

    Raises
    ------
    ConfigurationError
        A setting is misspelt, or a security setting is refused. The message has the setting's name
        and the reason, but never its value.

    Examples
    --------
    >>> kafka_python_settings({"bootstrap.servers": "k:9093", "security.protocol": "ssl",
    ...                        "ssl.ca.location": "ca.pem", "linger.ms": "5"})
    {'bootstrap_servers': 'k:9093', 'security_protocol': 'SSL', 'ssl_cafile': 'ca.pem'}
    """
    translated: dict[str, Any] = {}
    problems = []
    for name, value in librdkafka.items():
        target = _NAMES.get(name)
        if target is not None:
            translated[target] = value.upper() if target in _UPPER_CASE else value
            if target == "sasl_mechanism" and value.upper() not in _MECHANISMS:
                problems.append(f"{name} must be one of {', '.join(sorted(_MECHANISMS))}")
        elif name == _HOSTNAME_CHECK:
            translated["ssl_check_hostname"] = value.lower() != "none"
        elif (name, value) != (_VERIFICATION, "true") and (why := _objection(name)):
            problems.append(why)
    if problems:
        raise ConfigurationError(
            f"kafka.properties: {'; '.join(sorted(problems))} (see docs/own-cluster.md)"
        )
    return translated


def open_admin(settings: KafkaSettings, **overrides: Any) -> KafkaAdminClient:
    """Connect kafka-python's admin client; `overrides` are settings of kafka-python.

    Raises
    ------
    kafka.errors.KafkaError
        No broker answers, or a broker refuses the connection.
    """
    timeout_ms = int(settings.request_timeout_s * 1000)
    configuration = {
        "client_id": "fairlead",
        **kafka_python_settings(settings.librdkafka()),
        "request_timeout_ms": timeout_ms,
        "bootstrap_timeout_ms": timeout_ms,
        **overrides,
    }
    return connect(KafkaAdminClient, configuration)


def _objection(name: str) -> str | None:
    """Return why a setting is refused; None if it is accepted."""
    reasons = (why for start, why in REFUSED.items() if name.startswith(start))
    if why := next(reasons, None):
        return f"{name} cannot be used: {why}"
    meant = nearest(name, [*_NAMES, _HOSTNAME_CHECK])
    about_security = name.startswith(_SECURITY_PREFIXES)
    if not about_security and not meant:
        return None
    if not _known_to_librdkafka(name):
        return f"there is no setting {name}" + (f", did you mean {meant}?" if meant else "")
    if about_security:
        return f"{name} cannot be used: kafka-python, the second client here, has no such setting"
    return None


def _known_to_librdkafka(name: str) -> bool:
    try:
        AdminClient({"log_level": "0", name: ""})
    except KafkaException as error:
        return "No such configuration property" not in str(error)
    except (TypeError, ValueError):  # a known setting whose value is a callback
        return True
    return True

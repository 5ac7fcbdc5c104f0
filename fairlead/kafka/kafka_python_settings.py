"""Settings for kafka-python from librdkafka's: how it connects.

Belongs here: the librdkafka names that decide whether and as whom a client gets in, and what
kafka-python calls them. Does not: any other librdkafka setting, which kafka-python does not need.
"""

from collections.abc import Mapping
from typing import Any, Final

from fairlead.errors import ConfigurationError

_NAMES: Final = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_UPPER_CASE: Final = {"security_protocol", "sasl_mechanism"}
_HOSTNAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_VERIFICATION: Final = "enable.ssl.certificate.verification"
_SECURITY_PREFIXES: Final = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")


def kafka_python_settings(librdkafka: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a librdkafka configuration for kafka-python.

    Settings that have nothing to do with getting in are left out.

    Parameters
    ----------
    librdkafka
        librdkafka names to values, secrets revealed.

    Returns
    -------
    dict
        kafka-python names to values, secrets revealed: never log it.

    Raises
    ------
    ConfigurationError
        A security setting has no equivalent; the message names it, never its value.

    Examples
    --------
    >>> kafka_python_settings({"bootstrap.servers": "k:9093", "security.protocol": "ssl",
    ...                        "ssl.ca.location": "ca.pem", "linger.ms": "5"})
    {'bootstrap_servers': 'k:9093', 'security_protocol': 'SSL', 'ssl_cafile': 'ca.pem'}
    """
    translated: dict[str, Any] = {}
    untranslatable = []
    for name, value in librdkafka.items():
        if name in _NAMES:
            target = _NAMES[name]
            translated[target] = value.upper() if target in _UPPER_CASE else value
        elif name == _HOSTNAME_CHECK:
            translated["ssl_check_hostname"] = value.lower() != "none"
        elif name.startswith(_SECURITY_PREFIXES) and (name, value) != (_VERIFICATION, "true"):
            untranslatable.append(name)
    if untranslatable:
        raise ConfigurationError(
            f"kafka.properties: {', '.join(sorted(untranslatable))} cannot be used here: members' "
            "subscriptions are read by a second client, kafka-python, which has no such setting. "
            "Certificates and keys are given as files, by the ssl.*.location settings"
        )
    return translated

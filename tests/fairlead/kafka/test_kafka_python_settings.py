"""Settings of librdkafka, translated to settings of kafka-python."""

import re
from pathlib import Path

import pytest

from fairlead.errors import ConfigurationError
from fairlead.kafka.kafka_python_settings import REFUSED, kafka_python_settings

ROOT = Path(__file__).parents[3]


def test_tls_and_sasl_are_translated() -> None:
    """Credentials for librdkafka also work for kafka-python."""
    assert kafka_python_settings(
        {
            "bootstrap.servers": "a:1,b:2",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "fairlead",
            "sasl.password": "secret",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "me.pem",
            "ssl.key.location": "me.key",
            "ssl.key.password": "other",
            "ssl.endpoint.identification.algorithm": "none",
            "socket.keepalive.enable": "true",
        }
    ) == {
        "bootstrap_servers": "a:1,b:2",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "fairlead",
        "sasl_plain_password": "secret",
        "ssl_cafile": "ca.pem",
        "ssl_certfile": "me.pem",
        "ssl_keyfile": "me.key",
        "ssl_password": "other",
        "ssl_check_hostname": False,
    }


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"ssl.keystore.location": "k.p12"}, "kafka-python reads PEM files: use ssl.ca.location"),
        ({"ssl.sigalgs.list": "x"}, "kafka-python, the second client here, has no such setting"),
        ({"ssl.ca.pem": "x"}, "kafka-python, the second client here, has no such setting"),
        ({"sasl.oauthbearer.method": "oidc"}, "OAuth is not supported"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256"),
        ({"sasl.kerberos.service.name": "kafka"}, "Kerberos is not supported"),
        ({"enable.ssl.certificate.verification": "false"}, "certificates are always verified"),
        ({"ssl.ca.loction": "ca.pem"}, "did you mean ssl.ca.location?"),
        ({"securty.protocol": "ssl"}, "did you mean security.protocol?"),
    ],
)
def test_error_has_the_reason_or_the_intended_name(properties: dict[str, str], reason: str) -> None:
    """Impossible and misspelt settings are refused before any request to a broker."""
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        kafka_python_settings(properties)


def test_every_refused_setting_is_documented() -> None:
    """docs/own-cluster.md names every setting that is refused."""
    page = (ROOT / "docs/own-cluster.md").read_text()
    assert [name for name in REFUSED if f"`{name.removesuffix('.')}" not in page] == []


def test_setting_with_its_default_value_is_accepted() -> None:
    """For example, `enable.ssl.certificate.verification` may be true, but not false."""
    assert kafka_python_settings({"enable.ssl.certificate.verification": "true"}) == {}

"""One set of settings for two client libraries."""

import pytest

from fairlead.errors import ConfigurationError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.kafka_python_settings import kafka_python_settings
from fairlead.settings import KafkaSettings


def test_tls_and_sasl_are_translated() -> None:
    """What lets librdkafka in lets kafka-python in."""
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
    ("name", "value"),
    [
        ("ssl.key.pem", "hunter2"),
        ("sasl.oauthbearer.client.secret", "hunter2"),
        ("enable.ssl.certificate.verification", "false"),
    ],
)
def test_an_untranslatable_setting_is_named_without_its_value(name: str, value: str) -> None:
    """A security setting is never dropped silently, nor its value shown."""
    settings = KafkaSettings(properties={name: value})  # type: ignore[dict-item] # pydantic wraps it
    with pytest.raises(ConfigurationError, match=name) as caught:
        KafkaGateway(settings)
    assert value not in str(caught.value).replace(name, "")


def test_verification_that_is_on_anyway_needs_no_translation() -> None:
    """Stating a default is no reason to refuse."""
    assert kafka_python_settings({"enable.ssl.certificate.verification": "true"}) == {}

"""Refused connections have an error with the reason, and kafka-python logs no password."""

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import SecretStr

from fairlead.errors import ConfigurationError, GroupError, KafkaUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.refusals import refusal
from fairlead.sandbox.kafka import free_ports
from fairlead.settings import KafkaSettings
from tests.fairlead.kafka.secured import (
    PASSWORD,
    PLAIN_USER,
    SecuredBroker,
    certify,
)

pytestmark = pytest.mark.kafka

Settings = Callable[..., KafkaSettings]


@pytest.fixture(scope="module")
def broker(secured: SecuredBroker) -> SecuredBroker:
    """Return a broker with a user that has no rights."""
    secured.add_user("kim")
    return secured


@pytest.fixture
def settings(broker: SecuredBroker) -> Settings:
    """Return a function that makes valid settings, with the given changes."""

    def make(changes: dict[str, str], servers: str = broker.servers) -> KafkaSettings:
        properties = broker.librdkafka("kim") | changes
        del properties["bootstrap.servers"]
        return KafkaSettings(
            bootstrap_servers=servers,
            properties={name: SecretStr(value) for name, value in properties.items()},
            request_timeout_s=3.0,  # clock: nobody is let in
        )

    return make


def said(settings: KafkaSettings) -> str:
    """Return the gateway's error when it cannot connect; a busy broker gets a longer time-out."""
    try:
        return _said(settings)
    except KafkaUnavailableError:
        return _said(settings.model_copy(update={"request_timeout_s": 30.0}))  # clock: the same


def _said(settings: KafkaSettings) -> str:
    with pytest.raises(ConfigurationError) as caught, KafkaGateway(settings) as gateway:
        gateway.list_groups()
    assert isinstance(caught.value.__cause__, KafkaUnavailableError)
    return str(caught.value)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_password_is_said_to_be_one(
    settings: Settings, broker: SecuredBroker, mechanism: str
) -> None:
    """The error names address, user and the settings to check, but not the password."""
    message = said(settings({"sasl.mechanism": mechanism, "sasl.password": "hunter2"}))
    assert message.startswith(f"Kafka at {broker.servers} refuses the user kim: SASL auth")
    assert "sasl.password of kafka.properties" in message
    assert "hunter2" not in message


def test_a_mechanism_that_the_broker_lacks_is_named(settings: Settings) -> None:
    """The error lists the mechanisms that the broker has."""
    assert "SCRAM-SHA-512" in said(settings({"sasl.mechanism": "SCRAM-SHA-256"}))


def test_an_unknown_authority_is_said_to_be_one(settings: Settings, tmp_path: Path) -> None:
    """The error says that the certificate is not trusted, and names ssl.ca.location."""
    other, _ = certify(tmp_path, "another")
    message = said(settings({"ssl.ca.location": str(other)}))
    assert "shows a certificate that is not trusted" in message
    assert f"ssl.ca.location of kafka.properties ({other})" in message


def test_another_hosts_certificate_is_said_to_be_one(
    settings: Settings, broker: SecuredBroker
) -> None:
    """The error says that the certificate, for 127.0.0.1, is not valid for localhost."""
    port = broker.servers.rpartition(":")[2]
    message = said(settings({}, f"localhost:{port}"))
    assert message.startswith(f"Kafka at localhost:{port} shows another host's certificate")
    assert "not valid for 'localhost'" in message


def test_a_broker_that_is_down_refuses_nobody(settings: Settings) -> None:
    """The error is transient and no refusal, so that a retry may succeed."""
    (port,) = free_ports(1)
    down = settings({}, f"127.0.0.1:{port}")
    assert refusal(down) is None
    with pytest.raises(KafkaUnavailableError), KafkaGateway(down) as gateway:
        gateway.list_groups()


@pytest.mark.parametrize(("user", "mechanism"), [("kim", "SCRAM-SHA-512"), (PLAIN_USER, "PLAIN")])
def test_kafka_python_logs_no_password(
    settings: Settings, caplog: pytest.LogCaptureFixture, user: str, mechanism: str
) -> None:
    """Its log of settings and requests has no password; other lines are kept."""
    caplog.set_level(logging.DEBUG, "kafka")
    named = settings({"sasl.mechanism": mechanism, "sasl.username": user})
    with suppress(GroupError), KafkaGateway(named) as gateway:
        gateway.live_group("orders")
    logged = [record.getMessage() for record in caplog.records]
    assert any("ApiVersions" in line for line in logged)
    assert not [line for line in logged if PASSWORD in line]

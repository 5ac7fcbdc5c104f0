"""Who is not let in is told why, and what kafka-python logs of who is, holds no password."""

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
    """Return a broker with a user, who may do nothing."""
    secured.add_user("kim")
    return secured


@pytest.fixture
def settings(broker: SecuredBroker) -> Settings:
    """Return a function that makes settings which let in, but for what is given otherwise."""

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
    """Return what the gateway says of a cluster that it cannot ask; a busy one takes longer."""
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
    """Where, for whom, and which settings to look at; not the password."""
    message = said(settings({"sasl.mechanism": mechanism, "sasl.password": "hunter2"}))
    assert message.startswith(f"Kafka at {broker.servers} refuses the user kim: SASL auth")
    assert "sasl.password of kafka.properties" in message
    assert "hunter2" not in message


def test_a_mechanism_that_the_broker_lacks_is_named(settings: Settings) -> None:
    """With those that it has."""
    assert "SCRAM-SHA-512" in said(settings({"sasl.mechanism": "SCRAM-SHA-256"}))


def test_an_unknown_authority_is_said_to_be_one(settings: Settings, tmp_path: Path) -> None:
    """The certificate is not trusted; the setting that would name its authority is."""
    other, _ = certify(tmp_path, "another")
    message = said(settings({"ssl.ca.location": str(other)}))
    assert "shows a certificate that is not trusted" in message
    assert f"ssl.ca.location of kafka.properties ({other})" in message


def test_another_hosts_certificate_is_said_to_be_one(
    settings: Settings, broker: SecuredBroker
) -> None:
    """The certificate is for 127.0.0.1, not for localhost."""
    port = broker.servers.rpartition(":")[2]
    message = said(settings({}, f"localhost:{port}"))
    assert message.startswith(f"Kafka at localhost:{port} shows another host's certificate")
    assert "not valid for 'localhost'" in message


def test_a_broker_that_is_down_refuses_nobody(settings: Settings) -> None:
    """It is worth a retry."""
    (port,) = free_ports(1)
    down = settings({}, f"127.0.0.1:{port}")
    assert refusal(down) is None
    with pytest.raises(KafkaUnavailableError), KafkaGateway(down) as gateway:
        gateway.list_groups()


@pytest.mark.parametrize(("user", "mechanism"), [("kim", "SCRAM-SHA-512"), (PLAIN_USER, "PLAIN")])
def test_kafka_python_logs_no_password(
    settings: Settings, caplog: pytest.LogCaptureFixture, user: str, mechanism: str
) -> None:
    """Neither with its configuration nor with what it sends; what else it logs stays."""
    caplog.set_level(logging.DEBUG, "kafka")
    named = settings({"sasl.mechanism": mechanism, "sasl.username": user})
    with suppress(GroupError), KafkaGateway(named) as gateway:
        gateway.live_group("orders")
    logged = [record.getMessage() for record in caplog.records]
    assert any("ApiVersions" in line for line in logged)
    assert not [line for line in logged if PASSWORD in line]

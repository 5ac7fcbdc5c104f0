"""Error messages about failed connections and logins; no message or log has a password."""

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
from tests.fairlead.kafka.secured import PASSWORD, PLAIN_USER, SecuredBroker, certify
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka

Settings = Callable[..., KafkaSettings]


@pytest.fixture(scope="module")
def broker(secured: SecuredBroker) -> SecuredBroker:
    """Return a broker with one user, who has no rights."""
    secured.add_user("kim")
    return secured


@pytest.fixture
def settings(broker: SecuredBroker) -> Settings:
    """Return a function that makes valid Kafka settings with some changes."""

    def make(changes: dict[str, str], servers: str = broker.servers) -> KafkaSettings:
        properties = broker.librdkafka("kim") | changes
        del properties["bootstrap.servers"]
        return KafkaSettings(
            bootstrap_servers=servers,
            properties={name: SecretStr(value) for name, value in properties.items()},
            request_timeout_s=3.0,  # clock: no login succeeds
        )

    return make


def error_of(settings: KafkaSettings) -> str:
    """Return the gateway's error; try again with more time if the broker did not answer."""
    try:
        return _error_of(settings)
    except KafkaUnavailableError:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fairlead.kafka.refusals._PATIENCE_S", 300.0)
            return _error_of(settings.model_copy(update={"request_timeout_s": 300.0}))


def _error_of(settings: KafkaSettings) -> str:
    with pytest.raises(ConfigurationError) as caught, KafkaGateway(settings) as gateway:
        gateway.list_groups()
    assert isinstance(caught.value.__cause__, KafkaUnavailableError)
    return str(caught.value)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_error_of_a_wrong_password(
    settings: Settings, broker: SecuredBroker, mechanism: str
) -> None:
    """The error names the address, the user and the settings to check, but not the password."""
    message = error_of(settings({"sasl.mechanism": mechanism, "sasl.password": "hunter2"}))
    assert message.startswith(f"Kafka at {broker.servers} refuses the user kim: SASL auth")
    assert "sasl.password of kafka.properties" in message
    assert "hunter2" not in message


def test_a_mechanism_that_the_broker_lacks_is_named(settings: Settings) -> None:
    """The error lists the broker's mechanisms."""
    assert "SCRAM-SHA-512" in error_of(settings({"sasl.mechanism": "SCRAM-SHA-256"}))


def test_error_of_an_unknown_authority(settings: Settings, tmp_path: Path) -> None:
    """If the certificate is not trusted, the error names the setting for trusted authorities."""
    other, _ = certify(tmp_path, "another")
    message = error_of(settings({"ssl.ca.location": str(other)}))
    assert "shows a certificate that is not trusted" in message
    assert f"ssl.ca.location of kafka.properties ({other})" in message


def test_error_of_another_hosts_certificate(settings: Settings, broker: SecuredBroker) -> None:
    """The error says that the certificate, for 127.0.0.1, is not valid for localhost."""
    port = broker.servers.rpartition(":")[2]
    message = error_of(settings({}, f"localhost:{port}"))
    assert message.startswith(f"Kafka at localhost:{port} shows another host's certificate")
    assert "not valid for 'localhost'" in message


def test_error_of_a_broker_that_is_down_is_transient(settings: Settings) -> None:
    """The error is KafkaUnavailableError, not ConfigurationError."""
    (port,) = free_ports(1)
    down = settings({}, f"127.0.0.1:{port}")
    assert refusal(down) is None
    with pytest.raises(KafkaUnavailableError), KafkaGateway(down) as gateway:
        gateway.list_groups()


@pytest.mark.parametrize(("user", "mechanism"), [("kim", "SCRAM-SHA-512"), (PLAIN_USER, "PLAIN")])
def test_kafka_python_logs_no_password(
    settings: Settings, caplog: pytest.LogCaptureFixture, user: str, mechanism: str
) -> None:
    """Debug logs leave out the client's configuration and logins, but have its other requests."""
    caplog.set_level(logging.DEBUG, "kafka")
    named = settings({"sasl.mechanism": mechanism, "sasl.username": user})
    named = named.model_copy(update={"request_timeout_s": PATIENCE_S})
    with suppress(GroupError), KafkaGateway(named) as gateway:
        gateway.live_group("orders")
    logged = [record.getMessage() for record in caplog.records]
    assert any("ApiVersions" in line for line in logged)
    assert not [line for line in logged if PASSWORD in line]

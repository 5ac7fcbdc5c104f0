"""Fixture that delays empty fetch responses by minutes, to test that no client waits for them."""

from typing import Any, Final

import pytest

from fairlead.followers.confluent import config

#: Seconds. An action that takes less time did not wait for an empty fetch response.
SOONER_S: Final = 240.0


@pytest.fixture
def patient_broker(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return client settings with which brokers delay an empty fetch response by five minutes."""
    monkeypatch.setattr(config, "_PATIENCE_MS", 299_000)
    return {"socket.timeout.ms": 300_000}

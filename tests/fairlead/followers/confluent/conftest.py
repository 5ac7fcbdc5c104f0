"""A fixture that makes brokers hold empty fetches for minutes, to test that no client waits."""

from typing import Any, Final

import pytest

from fairlead.followers.confluent import config

#: Seconds. An action that takes less time did not wait for the end of an empty fetch.
SOONER_S: Final = 240.0


@pytest.fixture
def patient_broker(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return client settings that make brokers hold each empty fetch for five minutes."""
    monkeypatch.setattr(config, "_PATIENCE_MS", 299_000)
    return {"socket.timeout.ms": 300_000}

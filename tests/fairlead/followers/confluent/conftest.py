"""A fixture for tests that clients do not wait for a fetch that a broker holds for minutes."""

from typing import Any, Final

import pytest

from fairlead.followers.confluent import config

#: Seconds. An action that takes less did not wait for the answer to such a fetch.
SOONER_S: Final = 240.0


@pytest.fixture
def patient_broker(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return client settings with which brokers hold an empty fetch for five minutes."""
    monkeypatch.setattr(config, "_PATIENCE_MS", 299_000)
    return {"socket.timeout.ms": 300_000}

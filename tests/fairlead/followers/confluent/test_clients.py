"""Users with equal connection settings share clients, without a broker."""

import gc
import os
from typing import Any

import pytest

from fairlead.followers.confluent import clients

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


@pytest.mark.parametrize("client_of", [clients.admin_client, clients.sender])
def test_client_is_shared_until_its_last_user_closes_it(client_of: Any) -> None:
    """Users with the same settings share a client, which is freed after its last user."""
    before = len(clients.shared)
    client = client_of(NOWHERE)
    assert client_of(dict(NOWHERE)) is client
    assert client_of({**NOWHERE, "socket.timeout.ms": 5000}) is not client  # clock: any
    del client
    gc.collect()
    assert len(clients.shared) == before


def test_failed_client_is_no_longer_shared() -> None:
    """New users get and share another client once the old one has failed."""
    client = clients.sender(NOWHERE)
    clients.forget(client)
    fresh = clients.sender(NOWHERE)
    assert fresh is not client
    clients.forget(client)
    assert clients.sender(NOWHERE) is fresh


def test_forked_process_makes_its_own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent's clients have no threads in the child process."""
    client = clients.admin_client(NOWHERE)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert clients.admin_client(NOWHERE) is not client


def test_settings_without_a_hash_are_compared_by_identity() -> None:
    """An example is a callback; only the same object gives the same key."""

    class Tokens:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, _: str) -> tuple[str, float]:
            raise NotImplementedError

    tokens = Tokens()
    key = clients.key_of({"oauth_cb": tokens})
    assert key == clients.key_of({"oauth_cb": tokens})
    assert key != clients.key_of({"oauth_cb": Tokens()})

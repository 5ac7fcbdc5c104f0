"""Sharing of Kafka clients by users with equal connection settings; no broker is needed."""

import gc
import os
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from fairlead.followers.confluent import clients

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


@pytest.mark.parametrize("kind", [AdminClient, clients.Sender])
def test_client_is_shared_until_its_last_user_closes_it(kind: Any) -> None:
    """Users with equal settings share a client, which is freed when its last user closes it."""
    before = len(clients.shared)
    client = clients.shared_client(kind, NOWHERE)
    assert clients.shared_client(kind, dict(NOWHERE)) is client
    others = {**NOWHERE, "socket.timeout.ms": 5000}  # clock: any value
    assert clients.shared_client(kind, others) is not client
    del client
    gc.collect()
    assert len(clients.shared) == before


def test_failed_client_is_no_longer_shared() -> None:
    """After a client has failed, new users share a new client."""
    client = clients.shared_client(clients.Sender, NOWHERE)
    clients.forget(client)
    fresh = clients.shared_client(clients.Sender, NOWHERE)
    assert fresh is not client
    clients.forget(client)
    assert clients.shared_client(clients.Sender, NOWHERE) is fresh


def test_forked_process_makes_its_own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork copies a client without its threads, so the child process needs a new client."""
    client = clients.shared_client(AdminClient, NOWHERE)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert clients.shared_client(AdminClient, NOWHERE) is not client


def test_settings_without_a_hash_are_compared_by_identity() -> None:
    """Settings with callbacks are equal only if the callback is the same object."""

    class Tokens:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, _: str) -> tuple[str, float]:
            raise NotImplementedError

    tokens = Tokens()
    key = clients.key_of({"oauth_cb": tokens})
    assert key == clients.key_of({"oauth_cb": tokens})
    assert key != clients.key_of({"oauth_cb": Tokens()})

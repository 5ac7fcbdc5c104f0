"""Topic and database agree after any life, and the model would notice if they did not."""

import logging

import pytest

from tests.fairlead.workflows.model.lives import live_many
from tests.fairlead.workflows.model.store import ModelOutbox
from tests.fairlead.workflows.model.topic import ModelChannel

pytestmark = pytest.mark.long

#: Of the 10,000 that `python -m tests.fairlead.workflows.model.lives` lives.
LIVES = 300
#: So many are enough to notice what happens in every two-hundredth.
NOTICED = 1500


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Leave out what followers say of garbage, thousands of times."""
    caplog.set_level(logging.CRITICAL, logger="fairlead")


def test_topic_and_database_agree_after_any_life() -> None:
    """Kills, freezes, lost sessions, members that join, expiry, garbage: both say the same."""
    live_many(0, LIVES)


def test_a_sender_that_is_not_fenced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the broker's fence somebody follows what is not published."""
    monkeypatch.setattr(ModelChannel, "_require_living", lambda _: None)
    with pytest.raises(AssertionError):
        live_many(0, NOTICED)


def test_a_session_that_commits_after_it_was_lost_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a lock that is held to the commit a publisher fences the living, and speaks."""
    monkeypatch.setattr(ModelOutbox, "_lost", lambda *_: False)
    with pytest.raises(AssertionError):
        live_many(0, NOTICED)

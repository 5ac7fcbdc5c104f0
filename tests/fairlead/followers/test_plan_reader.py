"""The reader's thread: what counts as current, through failures and reconnections."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fairlead.followers.plan_cache import PlanCache, PlanState
from fairlead.followers.plan_reader import PlanReader
from tests.fairlead.followers.helpers import ScriptedSource, eventually, record

UNREAD = PlanState(problem="the plan topic has not been read to its end yet")


def version(state: PlanState) -> int | None:
    return state.plan.version if state.plan else None


@contextmanager
def reading(open_source: Callable[[], ScriptedSource | None]) -> Iterator[PlanReader]:
    """Run a reader, and close it."""
    reader = PlanReader("group", open_source, lambda: PlanCache("group"), lambda: None)
    reader.start()
    try:
        yield reader
    finally:
        reader.close()


def test_plan_counts_once_the_topic_is_read_to_its_end() -> None:
    """Half-read history is no plan: the newest version decides from the start."""
    source = ScriptedSource(record(0, 1), record(1, None), record(2, 2))
    with reading(lambda: source) as reader:
        eventually(source.feed.empty, "all is read")
        assert reader.state == UNREAD
        source.ended.set()
        assert version(reader.current(at_least=-1, timeout_s=30)) == 2
    assert source.closed


def test_fresh_cache_answers_without_waiting() -> None:
    """A rebalance with a current plan at hand costs no time, whatever the timeout."""
    source = ScriptedSource(record(0, 1))
    source.ended.set()
    with reading(lambda: source) as reader:
        eventually(lambda: reader.caught_up, "the end is reached")
        source.feed.put(RuntimeError("the broker is gone"))
        assert version(reader.current(at_least=0, timeout_s=600)) == 1


def test_waits_for_a_plan_that_another_member_has_seen() -> None:
    """The cache is behind where somebody has read further."""
    source = ScriptedSource(record(0, 1))
    source.ended.set()
    with reading(lambda: source) as reader:
        eventually(lambda: version(reader.state) == 1, "version 1 is read")
        threading.Timer(0.05, source.feed.put, [record(9, 2)]).start()
        assert version(reader.current(at_least=9, timeout_s=30)) == 2


def test_wait_is_bounded_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A topic that cannot be read to its end holds no rebalance up for long."""
    with reading(ScriptedSource) as reader, caplog.at_level(logging.WARNING):
        assert reader.current(at_least=-1, timeout_s=0.01) == UNREAD
    assert "not read to its end within 0.0 s" in caplog.text


def test_last_good_plan_stays_while_the_topic_is_read_anew() -> None:
    """A new connection starts from the beginning; old tombstones on the way take nothing back."""
    first, second = ScriptedSource(record(0, 2)), ScriptedSource(record(0, 1), record(1, None))
    first.ended.set()
    sources = iter([first, second])
    with reading(lambda: next(sources)) as reader:
        eventually(lambda: version(reader.state) == 2, "version 2 is read")
        first.feed.put(ConnectionError("reset"))
        eventually(second.feed.empty, "the second connection has read the tombstone")
        assert version(reader.state) == 2
        second.feed.put(record(2, 3))
        second.ended.set()
        eventually(lambda: version(reader.state) == 3, "version 3 is read")
    assert first.closed


def test_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Retries do not fill the log of whoever is on call."""
    attempts: list[None] = []

    def refuse() -> ScriptedSource:
        attempts.append(None)
        raise ConnectionError("no broker")

    with caplog.at_level(logging.WARNING), reading(refuse):
        eventually(lambda: len(attempts) == 3, "three attempts")
    assert len(caplog.messages) == 1
    assert "ConnectionError: no broker" in caplog.text


def test_missing_topic_is_no_plan_at_once() -> None:
    """A group whose topic does not exist yet waits for nothing; that it may not read it is said."""
    with reading(lambda: None) as reader:
        state = reader.current(at_least=-1, timeout_s=600)
    assert state == PlanState(problem="the plan topic does not exist, or may not be read")

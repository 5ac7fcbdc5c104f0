"""The reader's thread keeps the plan current through failures and reconnections."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fairlead.followers.core import plan_reader
from fairlead.followers.core.plan_cache import PlanRecord, PlanState
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.record import NOTHING
from tests.fairlead.followers.helpers import ScriptedSource, make_plan, record, seen
from tests.records import signed
from tests.waiting import PATIENCE_S, eventually

UNREAD = PlanState(problem="the plan topic has not been read to its end yet")


def version(state: PlanState) -> int | None:
    return state.plan.version if state.plan else None


@contextmanager
def reading(open_source: Callable[[], ScriptedSource | None]) -> Iterator[PlanReader]:
    """Run a reader, and close it."""
    reader = PlanReader("group", open_source, None, lambda: None)
    reader.serve()
    try:
        yield reader
    finally:
        reader.close()


def test_plan_counts_once_the_topic_is_read_to_its_end() -> None:
    """There is no plan until the topic is read to its end, so no outdated version is followed."""
    source = ScriptedSource(record(0, 1), record(1, None), record(2, 2))
    with reading(lambda: source) as reader:
        eventually(source.feed.empty, "all is read")
        assert reader.state == UNREAD
        source.ended.set()
        assert version(reader.current(at_least=NOTHING, timeout_s=PATIENCE_S)) == 2
    eventually(lambda: source.closed, "it is closed")


def test_fresh_cache_answers_without_waiting() -> None:
    """Once the topic is read to its end, the plan is returned at once, even without a broker."""
    source = ScriptedSource(record(0, 1))
    source.ended.set()
    with reading(lambda: source) as reader:
        eventually(lambda: reader.caught_up, "the end is reached")
        source.feed.put(RuntimeError("the broker is gone"))
        assert version(reader.current(at_least=seen(1), timeout_s=600)) == 1


def test_waits_for_a_plan_that_another_member_has_seen() -> None:
    """The reader waits until it has read a newer plan that another member reports."""
    source = ScriptedSource(record(0, 1))
    source.ended.set()
    with reading(lambda: source) as reader:
        eventually(lambda: version(reader.state) == 1, "version 1 is read")
        threading.Timer(0.05, source.feed.put, [record(9, 2)]).start()
        assert version(reader.current(at_least=seen(2), timeout_s=PATIENCE_S)) == 2


def test_wait_for_a_plan_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    """A topic that cannot be read to its end delays a rebalance only briefly, with a warning."""
    with reading(ScriptedSource) as reader, caplog.at_level(logging.WARNING):
        assert reader.current(at_least=NOTHING, timeout_s=0.01) == UNREAD
    assert "not read to its end within 0.0 s" in caplog.text


def test_last_good_plan_stays_while_the_topic_is_read_again() -> None:
    """A new connection reads from the beginning; old tombstones do not withdraw the plan."""
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
    """Repeated attempts to connect add no further warnings."""
    attempts: list[None] = []

    def refuse() -> ScriptedSource:
        attempts.append(None)
        raise ConnectionError("no broker")

    with caplog.at_level(logging.WARNING), reading(refuse):
        eventually(lambda: len(attempts) >= 3, "three attempts")
    assert len(caplog.messages) == 1
    assert "ConnectionError: no broker" in caplog.text


def test_missing_topic_is_no_plan_at_once() -> None:
    """Without a plan topic, the reader reports the problem at once instead of waiting."""
    with reading(lambda: None) as reader:
        state = reader.current(at_least=NOTHING, timeout_s=600)
    assert state == PlanState(problem="the plan topic does not exist, or may not be read")


def leased(version: int) -> PlanRecord:
    """Return a signed record of a plan with a lease."""
    value = make_plan({"a": {"t": [0]}}, partition_counts={"t": 1}, version=version).to_bytes()
    return PlanRecord(0, b"group", value, tuple(signed(value, version=version)))


def test_plan_with_a_lease_outlives_its_record() -> None:
    """A plan with a lease is still followed after compaction or deletion of the plan topic."""
    first, emptied = ScriptedSource(leased(2)), ScriptedSource(PlanRecord(7, b"group", b"garbage"))
    first.ended.set()
    emptied.ended.set()
    sources = iter([first, emptied, None])
    with reading(lambda: next(sources)) as reader:
        eventually(lambda: version(reader.state) == 2, "version 2 is read")
        first.feed.put(ConnectionError("reset"))
        eventually(lambda: reader.state.skipped == 1, "what covers it is read")
        assert version(reader.state) == 2
        emptied.feed.put(ConnectionError("reset"))
        eventually(lambda: "does not exist" in str(reader.state.problem), "the topic is gone")
        assert version(reader.state) == 2


def test_reader_follows_its_key_if_the_topic_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the plan topic grows, the reader changes to the partition that now has the group's key."""
    monkeypatch.setattr(plan_reader, "_CHECK_S", 0.0)

    class Grown(ScriptedSource):
        def moved(self) -> bool:
            return self.ended.is_set()

    first, second = Grown(leased(1)), ScriptedSource()
    sources = iter([first, second])
    with reading(lambda: next(sources)) as reader:
        eventually(first.feed.empty, "version 1 is read")
        first.ended.set()
        eventually(lambda: first.closed, "the old partition is left")
        second.feed.put(leased(2))
        second.ended.set()
        eventually(lambda: version(reader.state) == 2, "version 2 is read")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_ended_reader_serves_no_other_follower() -> None:
    """If a reader's thread has ended (`sys.exit`), it accepts no more plan followers."""

    def leave() -> ScriptedSource | None:
        raise SystemExit

    reader = PlanReader("group", leave, None, lambda: None)
    assert reader.serve()
    eventually(lambda: not reader.serve(), "it has ended")
    reader.close()

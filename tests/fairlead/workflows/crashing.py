"""A planning run in a separate process that is killed or frozen between two steps.

Belongs here: the steps of a run on the store and the plan topic, and the crash points between them.
Spark is left out, since its results do not outlive a crash. Belongs elsewhere: assertions.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import event

from fairlead.domain.policy import Approval, Policy
from fairlead.errors import FairleadError
from fairlead.kafka.plan_channel import Outgoing, PlanChannel
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.workflows.proposal import carry_out
from fairlead.workflows.reconciling import withdraw
from tests.fairlead.workflows.plans import OPTIONS, run
from tests.fixtures.plans import SNAPSHOT_AT, make_draft
from tests.stored import record_adoption
from tests.waiting import PATIENCE_S

#: Crash points of a planning run, in order, with the stored plan's state; None: no plan is stored.
PLANNING: Final = {
    "lag uncommitted": None,
    "lag committed": None,
    "plan half written": None,
    "decision uncommitted": None,
    "decision committed": "proposed",
    "approval uncommitted": "proposed",
    "approval committed": "approved",
    "before the fence": "approved",
    "after the fence": "approved",
    "entry uncommitted": "approved",
    "entry committed": "sending",
    "before the send": "sending",
    "inside the send": "sending",
    "after the send": "sending",
    "publication uncommitted": "sending",
    "publication committed": "published",
    "adoption uncommitted": "published",
    "adoption committed": "published",
}
#: Crash points of a withdrawal after a run, with the stored plan's state.
WITHDRAWAL: Final = {
    f"withdrawal: {point}": "published"
    for point in (
        *("before the fence", "after the fence", "entry uncommitted", "entry committed"),
        *("before the send", "inside the send", "after the send", "withdrawal uncommitted"),
    )
} | {"withdrawal: withdrawal committed": "withdrawn"}
POLICY: Final = Policy(approval=Approval(automatic=True))

Reach = Callable[[str], None]


def nothing(_: str) -> None:
    """Do nothing at any crash point."""


def start(point: str, how: signal.Signals, *run: Any) -> BaseProcess:
    """Start a run that sends itself a signal at a crash point; return its process."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.fairlead.workflows.crashing"])
    process = context.Process(target=_stop_at, args=(point, how, *run))
    process.start()
    return process


def _stop_at(point: str, how: signal.Signals, url: str, kafka: KafkaSettings, group: str) -> None:
    step, _, name = point.rpartition(": ")

    def reach(where: str) -> None:
        if where == name:
            os.kill(os.getpid(), how)

    with suppress(FairleadError):  # a run that was frozen for long and then continues gets an error
        plan(url, kafka, group, "s1", nothing if step else reach)
        if step:
            withdraw_plan(url, kafka, group, reach)


def plan(url: str, kafka: KafkaSettings, group: str, snapshot: str, reach: Reach = nothing) -> None:
    """Store lag, decide, approve, publish and record adoption, as a planning run does."""
    at = SNAPSHOT_AT + timedelta(minutes=int(snapshot.removeprefix("s")))
    with open_store(url, reach) as (store, transaction), Reaching(kafka, reach) as topic:
        transaction.name = "lag"
        store.record_lag(lag(group, snapshot, at))
        transaction.name = "decision"
        draft = make_draft(snapshot, group=group, snapshot_at=at, expires_at=None)
        carry_out(store, [draft], [POLICY], at)
        transaction.name = "publication"
        run(store, topic, groups=[group], now=at)
        transaction.name = "adoption"
        published = store.published(group)
        if published is not None:  # None if the run completed a withdrawal
            version = published.version
            record_adoption(store, group, version, observed_at=at, planned=3, as_planned=3)


def withdraw_plan(url: str, kafka: KafkaSettings, group: str, reach: Reach = nothing) -> None:
    """Withdraw a group's published plan."""
    with open_store(url, reach) as (store, transaction), Reaching(kafka, reach) as topic:
        transaction.name = "withdrawal"
        withdraw(store, group, topic=topic, options=OPTIONS, reason="enough")


def lag(group: str, snapshot: str, at: datetime) -> pa.Table:
    """Return lag of the three partitions for which `make_draft` makes plans."""
    return pa.table(
        {
            "snapshot_id": [snapshot] * 3,
            "snapshot_at": pa.array([at] * 3, pa.timestamp("us", tz="UTC")),
            "group": [group] * 3,
            "topic": ["t0"] * 3,
            "partition": pa.array(range(3), pa.int32()),
            "lag": pa.array([7, 8, 9], pa.int64()),
            "status": ["OK"] * 3,
        }
    )


class Transaction:
    """The kind of data that a transaction writes, such as "lag": a part of crash points' names.

    Attributes
    ----------
    name
        Kind of the data to be inserted; approvals and outbox entries are recognised by their SQL.
    written, committed
        Kind of the data that was written in the open transaction, and in the last committed one.
    """

    name = ""
    written: str | None = None
    committed: str | None = None


@contextmanager
def open_store(url: str, reach: Reach) -> Iterator[tuple[PlanStore, Transaction]]:
    """Open a store that calls `reach` before and after each commit, with the crash point's name."""
    engine = create_store_engine(url, connect_timeout_s=int(PATIENCE_S))
    transaction = Transaction()

    @event.listens_for(engine, "after_cursor_execute")
    def executed(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "approve_plan" in statement:
            transaction.written = "approval"
        elif statement.startswith("INSERT INTO fairlead_raw.plan_intent"):
            transaction.written = "entry"
        elif statement.startswith("INSERT"):
            transaction.written = transaction.name
        if statement.startswith("INSERT INTO fairlead_raw.plan "):
            reach("plan half written")

    @event.listens_for(engine, "commit")
    def commits(_: Any) -> None:
        if transaction.written:
            reach(f"{transaction.written} uncommitted")
        transaction.committed, transaction.written = transaction.written, None

    @event.listens_for(engine, "checkin")
    def is_back(*_: Any) -> None:
        if transaction.committed:
            reach(f"{transaction.committed} committed")
        transaction.committed = None

    try:
        yield PlanStore(engine), transaction
    finally:
        engine.dispose()


class Reaching(PlanTopic):
    """A plan topic that calls `reach` before and after steps of sending, with the crash point."""

    def __init__(self, settings: KafkaSettings, reach: Reach) -> None:
        super().__init__(settings)
        self._reach = reach

    def open(self, partition: int) -> PlanChannel:
        """Open a partition for sending, and fence other senders."""
        reach = self._reach

        class Channel(PlanChannel):
            def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
                reach("before the send")
                answers = super().send(records)
                reach("after the send")
                return answers

            def _call(self, what: str, call: Callable[..., object], *args: float) -> None:
                if what == "did not commit a transaction":
                    reach("inside the send")
                super()._call(what, call, *args)

        reach("before the fence")
        channel = Channel(self._settings, partition)
        reach("after the fence")
        return channel

"""A planning run that dies where it is told to, in a process of its own.

Belongs here: the steps of a run on the store and the plan topic, without Spark, which computes
nothing that outlives a crash; and the points between them. Does not: any expectation.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import event

from fairlead.domain.policy import Approval, Policy
from fairlead.kafka.plan_channel import Outgoing, PlanChannel
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings
from fairlead.store import PlanStore, create_store_engine
from fairlead.workflows.proposal import Look, carry_out
from fairlead.workflows.reconciling import withdraw
from tests.fairlead.store.conftest import SNAPSHOT_AT, make_draft
from tests.fairlead.workflows.plans import OPTIONS, run
from tests.stored import record_adoption
from tests.waiting import PATIENCE_S

#: Where a run can die, in its order, and the state its plan is in then; None: there is no plan.
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
    "intent uncommitted": "approved",
    "intent committed": "sending",
    "before the send": "sending",
    "inside the send": "sending",
    "after the send": "sending",
    "publication uncommitted": "sending",
    "publication committed": "published",
    "adoption uncommitted": "published",
    "adoption committed": "published",
}
#: The same for a retirement, which the run then ends with.
RETIRING: Final = {
    "before the fence": "published",
    "after the fence": "published",
    "intent uncommitted": "published",
    "intent committed": "published",
    "before the send": "published",
    "inside the send": "published",
    "after the send": "published",
    "retirement uncommitted": "published",
    "retirement committed": "retired",
}
POLICY: Final = Policy(approval=Approval(automatic=True))

Reach = Callable[[str], None]


def survive(_: str) -> None:
    """Die nowhere."""


def die_at(point: str, url: str, kafka: KafkaSettings, group: str, *, retiring: bool) -> None:
    """Run, and be killed at a point."""

    def reach(where: str) -> None:
        if where == point:
            os.kill(os.getpid(), signal.SIGKILL)

    plan(url, kafka, group, "s1", survive if retiring else reach)
    if retiring:
        send_back(url, kafka, group, reach)


def plan(url: str, kafka: KafkaSettings, group: str, snapshot: str, reach: Reach) -> None:
    """Store lag, decide, approve, publish and look who follows, as a planning run does."""
    at = SNAPSHOT_AT + timedelta(minutes=int(snapshot.removeprefix("s")))
    with open_store(url, reach) as (store, transaction), Reaching(kafka, reach) as topic:
        transaction.name = "lag"
        store.record_lag(lag(group, snapshot, at))
        transaction.name = "decision"
        draft = make_draft(snapshot, group=group, snapshot_at=at, expires_at=None)
        carry_out(store, [Look(draft, POLICY)], at)
        transaction.name = "publication"
        run(store, topic, groups=[group], now=at)
        transaction.name = "adoption"
        published = store.published(group)
        if published is not None:  # a retirement that was on its way ends what waits, too
            record_adoption(
                store,
                group,
                published.version,
                observed_at=at,
                planned=3,
                as_planned=3,
            )


def send_back(url: str, kafka: KafkaSettings, group: str, reach: Reach) -> None:
    """Retire a group's published plan."""
    with open_store(url, reach) as (store, transaction), Reaching(kafka, reach) as topic:
        transaction.name = "retirement"
        withdraw(store, group, topic=topic, options=OPTIONS, reason="enough")


def lag(group: str, snapshot: str, at: datetime) -> pa.Table:
    """Return the lag of the three partitions that the drafts plan."""
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
    """What is being written, for the names of points.

    Attributes
    ----------
    name
        Of the step; an approval has a name of its own.
    """

    name = ""
    written: str | None = None
    committed: str | None = None


@contextmanager
def open_store(url: str, reach: Reach) -> Iterator[tuple[PlanStore, Transaction]]:
    """Open a store that says where its transactions are."""
    engine = create_store_engine(url, connect_timeout_s=int(PATIENCE_S))
    transaction = Transaction()

    @event.listens_for(engine, "after_cursor_execute")
    def executed(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "approve_plan" in statement:
            transaction.written = "approval"
        elif statement.startswith("INSERT INTO fairlead_raw.plan_intent"):
            transaction.written = "intent"
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
    """A plan topic that says how far its sender is.

    Parameters
    ----------
    settings
        As for `PlanTopic`.
    reach
        Is told.
    """

    def __init__(self, settings: KafkaSettings, reach: Reach) -> None:
        super().__init__(settings)
        self._reach = reach

    def open(self, partition: int) -> PlanChannel:
        """Become the one sender to a partition."""
        reach = self._reach

        class Channel(PlanChannel):
            def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
                reach("before the send")
                answers = super().send(records)
                reach("after the send")
                return answers

            def _call(self, what: str, call: Callable[..., object], *args: float) -> None:
                if what == "did not commit":
                    reach("inside the send")
                super()._call(what, call, *args)

        reach("before the fence")
        channel = Channel(self._settings, partition)
        reach("after the fence")
        return channel

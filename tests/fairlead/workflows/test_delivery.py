"""Two publishers, one of which freezes between any two of its steps and wakes too late."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import psycopg
import pytest

from fairlead.errors import FairleadError
from fairlead.followers.core.plan_cache import PlanCache, PlanRecord
from fairlead.kafka.plan_channel import Outgoing, PlanChannel
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings, Settings
from fairlead.store import PlanStore, StoredPlan, create_store_engine
from fairlead.store.outbox import Outbox
from fairlead.wire.record import NOTHING
from fairlead.workflows.reconciling import differences
from tests.fairlead.workflows.plans import run

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Approve = Callable[..., StoredPlan]

#: Where the first publisher freezes. Until its intents are committed it holds the partition, and
#: the database ends its session for it.
HOLDING = ("locked", "fenced")
POINTS = (*HOLDING, "committed", "in a transaction", "sent")


class Freezing(PlanTopic):
    """A plan topic whose sender freezes once, while something else happens."""

    def __init__(self, settings: KafkaSettings, point: str, meanwhile: Callable[[], None]) -> None:
        super().__init__(settings)
        self._point: str | None = point
        self._meanwhile = meanwhile

    def reach(self, point: str) -> None:
        """Freeze if it is the point."""
        if point == self._point:
            self._point = None
            self._meanwhile()

    def open(self, partition: int) -> PlanChannel:
        """Become the one sender to a partition."""
        reach = self.reach

        class Channel(PlanChannel):
            def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
                reach("committed")
                answers = super().send(records)
                reach("sent")
                return answers

            def _call(self, what: str, call: Callable[..., object], *args: float) -> None:
                if what == "did not commit":
                    reach("in a transaction")
                super()._call(what, call, *args)

        reach("locked")
        channel = Channel(self._settings, partition)
        reach("fenced")
        return channel


def followed_by_a_newcomer(topic: PlanTopic) -> tuple[int, int]:
    """Return epoch and version that a follower comes to which has read nothing before."""
    cache = PlanCache("orders", topic.origin, None)
    record = topic.read("orders")  # all that compaction leaves
    assert record is not None
    cache.apply(PlanRecord(0, b"orders", record.value, tuple(record.headers)))
    assert cache.state.seen > NOTHING
    return cache.state.seen[:2]


@pytest.mark.parametrize("point", POINTS)
def test_a_publisher_that_wakes_too_late_does_not_speak_last(  # noqa: PLR0917 - fixtures
    settings: Settings,
    store: PlanStore,
    store_url: str,
    topic: PlanTopic,
    approve: Approve,
    point: str,
) -> None:
    """It sends version 1 when another has long published version 2: nobody follows that."""
    approve("s1")
    other = PlanStore(create_store_engine(store_url))
    woken: list[str] = []

    def meanwhile() -> None:
        if point in HOLDING:  # the database ends the session of who holds a lock and does nothing
            with psycopg.connect(store_url, autocommit=True) as superuser:
                superuser.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND state = 'idle in transaction'"
                )
        run(other, topic, now=datetime.now(UTC))
        approve("s2")
        run(other, topic, now=datetime.now(UTC))
        woken.append(point)

    frozen = Freezing(
        settings.kafka.model_copy(update={"plan_topic": topic.name}), point, meanwhile
    )
    try:
        run(store, frozen, now=datetime.now(UTC))
    except FairleadError:
        pass
    finally:
        other.engine.dispose()
    assert woken == [point]
    assert [row["state"] for row in store.history("orders")] == ["superseded", "published"]
    assert followed_by_a_newcomer(topic)[1] == 2
    assert differences(store, None, topic=topic, verifier=None) == []
    assert Outbox(store.engine).outstanding() == []

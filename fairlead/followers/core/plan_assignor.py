"""The common base class of the plan assignors for aiokafka and kafka-python.

Belongs here: the assignor's plan follower, consumer and status. Belongs elsewhere: a client's
assignor interface (`aiokafka`, `kafka_python`).
"""

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fairlead.followers.core.follower import Follower, FollowOptions
from fairlead.followers.core.meter import Meter
from fairlead.followers.core.plan_reader import PlanSource
from fairlead.followers.core.status import FollowerStatus


class FollowingAssignor:
    """An assignor that follows plans; it reads the plan topic until `close`."""

    _follower: Follower
    _consumer: weakref.ref[Any] | None = None
    _meter: Meter | None = None

    def _follow_plans(
        self, group: str, options: FollowOptions, open_source: Callable[[], PlanSource | None]
    ) -> None:
        self._follower = Follower(group, options, open_source)
        weakref.finalize(self, self._follower.stop)  # in case `close` is never called

    def reports(self, meter: Meter) -> None:
        """Set the meter that measures processing times; `status` then includes a summary."""
        self._meter = meter

    def status(self) -> FollowerStatus:
        """Return the member's present status."""
        consumer = self._open_consumer()
        owned = consumer.assignment() if consumer is not None else ()
        status = self._follower.status(owned, outside=self._outside())
        if self._meter is None:
            return status
        paused = len(consumer.paused()) if consumer is not None else 0
        return replace(status, reported=self._meter.reported_work(paused))

    def close(self) -> None:
        """Stop reading the plan topic; blocks, usually for less than a second."""
        self._follower.close()

    def _outside(self) -> bool:
        """Whether the consumer is in no group."""
        if self._consumer is None:  # unknown: assume that the consumer is a member
            return False
        consumer = self._open_consumer()
        return consumer is None or not self._subscribes(consumer)

    def _open_consumer(self) -> Any:
        consumer = self._consumer() if self._consumer is not None else None
        return None if consumer is None or consumer._closed else consumer  # noqa: SLF001 - there is no other way

    def _subscribes(self, consumer: Any) -> bool:
        """Whether the consumer gets its partitions from the group, not from manual assignment."""
        raise NotImplementedError

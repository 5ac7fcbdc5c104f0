"""Make a kafka-python consumer rejoin its group, and finish the rebalances it begins.

Belongs here: asking for a rebalance, which the client has no public way for, and the way round two
errors of kafka-python 3.0.

A member that joins because a topic has grown, or because it subscribes to other topics, takes that
for done while the rebalance is still under way. Where a poll ends before it does, the next one
forgets it; the member sends no heartbeats, is thrown out, and never learns of it. A request to
rejoin stands until the rebalance is over, so every join makes one.

A member that is thrown out while it joins, since its process stood still, joins anew without a word
to its listener and with what it owned: a cooperative one claims that, and reads it beside whoever
has got it since; and where it gets a partition back it reads on from where it was, not from what
others have committed. So does an eager member that misses a generation in which others read. So
every join lets go of what a lost member had, or an eager one, as Kafka's own client does.
"""

import logging
import weakref
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import RebalanceProtocol

log = logging.getLogger(__name__)


def rejoin_request(consumer: KafkaConsumer) -> Callable[[], None]:
    """Return what makes a consumer rejoin its group at its next poll; for any thread.

    It does not keep the consumer alive, and does nothing once that is gone.
    """
    request = weakref.WeakMethod(consumer._coordinator.request_rejoin)  # noqa: SLF001 - as above

    def rejoin() -> None:
        if (ask := request()) is not None:
            ask()

    return rejoin


def joining(consumer: KafkaConsumer) -> Callable[[], None]:
    """Return what an assignor has to do for its consumer each time that it joins."""
    rejoin = rejoin_request(consumer)
    coordinator = weakref.ref(consumer._coordinator)  # noqa: SLF001 - as above

    def join() -> None:
        rejoin()
        if (known := coordinator()) is not None:
            _let_go(known)

    return join


def _let_go(coordinator: Any) -> None:
    """Own nothing that others may read meanwhile. Called where the client calls its listeners."""
    subscription = coordinator._subscription  # noqa: SLF001 - as above
    had, lost = set(subscription.assigned_partitions()), coordinator._generation.is_lost()  # noqa: SLF001 - as above
    eager = coordinator._rebalance_protocol == RebalanceProtocol.EAGER  # noqa: SLF001 - as above
    if not had or not (lost or eager):
        return
    subscription.assign_from_subscribed([])
    if not lost:  # the client has told its listener
        return
    log.info("Group %s: thrown out while joining; letting go of %s", coordinator.group_id, had)

    async def tell() -> None:
        try:
            await coordinator._invoke_rebalance_listener_async("on_partitions_lost", had)  # noqa: SLF001 - as above
        except Exception:
            log.exception("Group %s: on_partitions_lost failed", coordinator.group_id)

    if subscription.rebalance_listener:
        coordinator._manager.call_soon(tell)  # noqa: SLF001 - as above


def no_request() -> None:
    """Stand in for a consumer that is not known yet."""

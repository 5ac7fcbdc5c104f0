"""Make a kafka-python consumer rejoin its group, and work around bugs of the client's rebalances.

Belongs here: requesting a rebalance, for which the client has no public method, and workarounds for
three bugs of kafka-python 3.0.

1. If a member joins because a topic got more partitions, or because it subscribes to other topics,
   the client considers the rebalance complete too early. If a poll ends before the rebalance does,
   the next poll does not continue it. As a result, the member sends no heartbeats, and the group
   drops it unnoticed. A request to rejoin, however, stays set until the rebalance is over, and
   makes the next poll continue the rebalance. So the workaround requests a rejoin at every join.
2. If the group drops a joining member, for example because the member's process was stopped, the
   member joins again with its old partitions and does not call its listener. A cooperative member
   claims these partitions, and reads them although they have a new owner. If such a partition is
   assigned to the member again, reading continues at the old position instead of the committed
   offset. So the workaround removes the old partitions when the member joins.
3. An eager member that misses a generation would also continue at its old positions. So the
   workaround resets them at every join, as Kafka's own client does. Paused partitions stay paused.
   If the group drops the member later, its listener is still called.
"""

import logging
import weakref
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import TopicPartitionState
from kafka.coordinator.assignors.abstract import RebalanceProtocol

log = logging.getLogger(__name__)


def rejoin_request(consumer: KafkaConsumer) -> Callable[[], None]:
    """Return a thread-safe function that makes a consumer join again at its next poll.

    The function does not keep the consumer alive, and does nothing after the consumer was deleted.
    """
    request = weakref.WeakMethod(consumer._coordinator.request_rejoin)  # noqa: SLF001 - as above

    def rejoin() -> None:
        if (ask := request()) is not None:
            ask()

    return rejoin


def joining(consumer: KafkaConsumer) -> Callable[[], None]:
    """Return a function with the workarounds, for an assignor to call when its consumer joins."""
    rejoin = rejoin_request(consumer)
    coordinator = weakref.ref(consumer._coordinator)  # noqa: SLF001 - as above

    def join() -> None:
        rejoin()
        if (known := coordinator()) is not None:
            _drop_outdated(known)

    return join


def _drop_outdated(coordinator: Any) -> None:
    """Remove the partitions of a dropped member, or reset the positions of an eager member."""
    subscription = coordinator._subscription  # noqa: SLF001 - as above
    had = set(subscription.assigned_partitions())
    if not had:
        return
    if not coordinator._generation.is_lost():  # noqa: SLF001 - as above
        if coordinator._rebalance_protocol == RebalanceProtocol.EAGER:  # noqa: SLF001 - as above
            _forget_positions(subscription)
        return
    log.info(
        "Group %s: removed from the group while joining; lost partitions %s",
        coordinator.group_id,
        had,
    )
    subscription.assign_from_subscribed([])

    async def call_listener() -> None:
        try:
            await coordinator._invoke_rebalance_listener_async("on_partitions_lost", had)  # noqa: SLF001 - as above
        except Exception:
            log.exception("Group %s: on_partitions_lost failed", coordinator.group_id)

    if subscription.rebalance_listener:
        coordinator._manager.call_soon(call_listener)  # noqa: SLF001 - as above


def _forget_positions(subscription: Any) -> None:
    """Reset the positions of owned partitions to their committed offsets."""
    for partition, state in list(subscription.assignment.items()):
        fresh = TopicPartitionState()
        fresh.paused = state.paused
        subscription.assignment[partition] = fresh

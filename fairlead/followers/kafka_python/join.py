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
others have committed. So every join lets go of what a lost member had.

An eager member that misses a generation in which others read would read on from where it was, too.
So every join makes it forget where it was, as Kafka's own client does. It keeps all else, as ever
with kafka-python: what is paused stays so, and who is thrown out later still hears of it.
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
    """Know nothing that may be out of date. Called where the client calls its listeners."""
    subscription = coordinator._subscription  # noqa: SLF001 - as above
    had = set(subscription.assigned_partitions())
    if not had:
        return
    if not coordinator._generation.is_lost():  # noqa: SLF001 - as above
        if coordinator._rebalance_protocol == RebalanceProtocol.EAGER:  # noqa: SLF001 - as above
            _forget_positions(subscription)
        return
    log.info("Group %s: thrown out while joining; letting go of %s", coordinator.group_id, had)
    subscription.assign_from_subscribed([])

    async def tell() -> None:
        try:
            await coordinator._invoke_rebalance_listener_async("on_partitions_lost", had)  # noqa: SLF001 - as above
        except Exception:
            log.exception("Group %s: on_partitions_lost failed", coordinator.group_id)

    if subscription.rebalance_listener:
        coordinator._manager.call_soon(tell)  # noqa: SLF001 - as above


def _forget_positions(subscription: Any) -> None:
    """Own the same partitions anew: what has been committed says where to read on."""
    for partition, state in list(subscription.assignment.items()):
        anew = TopicPartitionState()
        anew.paused = state.paused
        subscription.assignment[partition] = anew


def no_request() -> None:
    """Stand in for a consumer that is not known yet."""

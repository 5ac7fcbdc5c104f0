"""Make a kafka-python consumer rejoin its group, and finish the rebalances it begins.

Belongs here: asking for a rebalance, which the client has no public way for, and the way round one
error of kafka-python 3.0: a member that joins because a topic has grown, or because it subscribes
to other topics, takes that for done while the rebalance is still under way. Where a poll ends
before it does, the next one forgets it; the member sends no heartbeats, is thrown out, and never
learns of it. A request to rejoin stands until the rebalance is over, so every join makes one.
"""

import weakref
from collections.abc import Callable

from kafka import KafkaConsumer


def rejoin_request(consumer: KafkaConsumer) -> Callable[[], None]:
    """Return what makes a consumer rejoin its group at its next poll; for any thread.

    It does not keep the consumer alive, and does nothing once that is gone.
    """
    request = weakref.WeakMethod(consumer._coordinator.request_rejoin)  # noqa: SLF001 - as above

    def rejoin() -> None:
        if (ask := request()) is not None:
            ask()

    return rejoin


def no_request() -> None:
    """Stand in for a consumer that is not known yet."""

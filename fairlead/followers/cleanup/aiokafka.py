"""The rebalance listener that KIP-54 recommends, for aiokafka.

Belongs here: aiokafka's callbacks, and recognising that the group dropped the member. Belongs
elsewhere: comparing assignments (`holdings`).
"""

import inspect

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition

from fairlead.followers.cleanup.holdings import Callback, Holdings


class CleanupListener(ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka is untyped
    """Sets up and cleans up local state, but only for partitions that really change their owner.

    Parameters
    ----------
    consumer
        The consumer that subscribes with this listener.
    set_up
        Called with partitions that are new to this consumer; a function or a coroutine function.
    clean_up
        Called with partitions that this consumer no longer owns: after the rebalance, or
        immediately if the group dropped the member.
    before_revoke
        Called before a rebalance with all partitions of the consumer, while offsets can still be
        committed. The rebalance may take away some or all of these partitions.

    Notes
    -----
    No callback is called with an empty set, or when the consumer stops. After stopping the
    consumer, clean up the partitions in `held`.
    """

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        set_up: Callback[TopicPartition],
        clean_up: Callback[TopicPartition],
        *,
        before_revoke: Callback[TopicPartition] | None = None,
    ) -> None:
        self._holdings = Holdings[TopicPartition]()
        self._consumer = consumer
        self._set_up = set_up
        self._clean_up = clean_up
        self._before_revoke = before_revoke

    @property
    def held(self) -> frozenset[TopicPartition]:
        """Partitions that were set up and not cleaned up yet."""
        return self._holdings.held

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Call `before_revoke`, or `clean_up` if the group has dropped the member."""
        # aiokafka has no callback for lost partitions, but a dropped member has no generation.
        if self._consumer._coordinator.generation < 0:  # noqa: SLF001 - there is no other way
            await _call(self._clean_up, self._holdings.drop(revoked))
        else:
            await _call(self._before_revoke, set(revoked))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Clean up removed partitions, and set up added ones."""
        removed, new = self._holdings.assigned(assigned)
        await _call(self._clean_up, removed)
        await _call(self._set_up, new)


async def _call(callback: Callback[TopicPartition] | None, partitions: set[TopicPartition]) -> None:
    if callback and partitions:
        result = callback(partitions)
        if inspect.isawaitable(result):
            await result

"""KIP-54's listener pattern for kafka-python.

Belongs here: kafka-python's callbacks. Does not: comparing assignments (`holdings`).
"""

from kafka import ConsumerRebalanceListener, TopicPartition

from fairlead.followers.cleanup.holdings import Callback, Holdings


class CleanupListener(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python is untyped
    """Cleans up only partitions that a rebalance really takes, sets up only added ones.

    Parameters
    ----------
    set_up
        Called with partitions that are new to this consumer.
    clean_up
        Called with partitions that it no longer owns: after the rebalance, or immediately if the
        group dropped the member.
    before_revoke
        Called with all partitions that may be taken, while offsets can still be committed.
    cooperative
        Whether the consumer's assignors are cooperative (KIP-429): revoked partitions do not
        return, and assigned ones are added to the others.

    Notes
    -----
    Callbacks are never called without partitions, nor when the consumer closes: clean up `held`
    then.
    """

    def __init__(
        self,
        set_up: Callback[TopicPartition],
        clean_up: Callback[TopicPartition],
        *,
        before_revoke: Callback[TopicPartition] | None = None,
        cooperative: bool = False,
    ) -> None:
        self._holdings = Holdings[TopicPartition]()
        self._set_up = set_up
        self._clean_up = clean_up
        self._before_revoke = before_revoke
        self._cooperative = cooperative

    @property
    def held(self) -> frozenset[TopicPartition]:
        """Partitions that were set up and not cleaned up."""
        return self._holdings.held

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Let the application commit; the next assignment shows the lost partitions."""
        if revoked and self._before_revoke:
            self._before_revoke(set(revoked))
        if self._cooperative:
            self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Clean up: other consumers may have read these partitions by now."""
        if removed := self._holdings.drop(lost):
            self._clean_up(removed)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Clean up removed partitions, set up added ones."""
        keep = self.held if self._cooperative else ()
        removed, new = self._holdings.assigned(assigned, keep=keep)
        if removed:
            self._clean_up(removed)
        if new:
            self._set_up(new)

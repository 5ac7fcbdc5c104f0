"""The rebalance listener that KIP-54 recommends, for kafka-python.

Belongs here: kafka-python's callbacks. Belongs elsewhere: comparing assignments (`holdings`).
"""

from kafka import ConsumerRebalanceListener, TopicPartition

from fairlead.followers.cleanup.holdings import Callback, Holdings


class CleanupListener(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python is untyped
    """Sets up and cleans up local state, but only for partitions that really change their owner.

    Parameters
    ----------
    set_up
        Called with partitions that are new to this consumer.
    clean_up
        Called with partitions that this consumer no longer owns: after the rebalance, or
        immediately if the group dropped the member.
    before_revoke
        Called with the revoked partitions, while offsets can still be committed. An eager client
        revokes all partitions and may receive most of them again.
    cooperative
        Whether the consumer's assignors are cooperative (KIP-429). Then the client revokes only
        partitions that it loses, and reports only added partitions as assigned.

    Notes
    -----
    No callback is called with an empty set, or when the consumer closes. After closing the
    consumer, clean up the partitions in `held`.
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
        """Partitions that were set up and not cleaned up yet."""
        return self._holdings.held

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Call `before_revoke`. If the client is cooperative, also clean up the partitions."""
        if revoked and self._before_revoke:
            self._before_revoke(set(revoked))
        if self._cooperative:
            self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Clean up immediately, because other consumers may have read these partitions already."""
        if removed := self._holdings.drop(lost):
            self._clean_up(removed)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Clean up removed partitions, and set up added ones."""
        keep = self.held if self._cooperative else ()
        removed, new = self._holdings.assigned(assigned, keep=keep)
        if removed:
            self._clean_up(removed)
        if new:
            self._set_up(new)

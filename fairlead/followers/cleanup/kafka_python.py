"""KIP-54's listener pattern for kafka-python.

Belongs here: kafka-python's callbacks. Does not: what a rebalance takes and brings (`holdings`).
"""

from kafka import ConsumerRebalanceListener, TopicPartition

from fairlead.followers.cleanup.holdings import Callback, Holdings


class CleanupListener(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python is untyped
    """Cleans up only what a rebalance truly takes, sets up only what it truly brings.

    Parameters
    ----------
    set_up
        Called with partitions that are new to this consumer.
    clean_up
        Called with partitions that it no longer owns, once that is certain: after the rebalance,
        or at once where the member was thrown out of its group.
    before_revoke
        Called with everything that may be taken, while it may still be committed.
    cooperative
        The consumer's assignors are cooperative (KIP-429): what is revoked does not come back, and
        what is assigned is added to the rest.

    Notes
    -----
    Callbacks are not called with no partitions at all. Closing a consumer calls none: clean up
    `held` then.
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
        """The partitions that were set up and not cleaned up."""
        return self._holdings.held

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Let the application commit; the next assignment tells what is gone."""
        if revoked and self._before_revoke:
            self._before_revoke(set(revoked))
        if self._cooperative:
            self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Clean up: others may have read these partitions by now."""
        if gone := self._holdings.drop(lost):
            self._clean_up(gone)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Clean up what is gone, set up what is new."""
        keep = self.held if self._cooperative else ()
        gone, new = self._holdings.assigned(assigned, keep=keep)
        if gone:
            self._clean_up(gone)
        if new:
            self._set_up(new)

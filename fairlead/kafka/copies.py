"""The replication factor and min.insync.replicas of Fairlead's topics.

Belongs here: which values are right. Belongs elsewhere: reading and setting them
(`compacted_topic`).
"""


def copies_wanted(brokers: int) -> int:
    """Return the best replication factor: three, or the number of brokers if that is lower."""
    return max(1, min(3, brokers))


def in_sync_wanted(copies: int) -> int:
    """Return the best min.insync.replicas: all copies but one.

    Then the loss of one broker neither loses a plan nor stops publication.

    Examples
    --------
    >>> in_sync_wanted(1), in_sync_wanted(2), in_sync_wanted(3)
    (1, 1, 2)
    """
    return max(1, copies - 1)


def too_few(copies: int, in_sync: int, brokers: int) -> str:
    """Return why a topic could lose plans although the cluster has enough brokers; else "".

    Examples
    --------
    >>> too_few(copies=1, in_sync=1, brokers=3)
    'keeps 1 copy of a plan where 3 are possible: kafka-reassign-partitions.sh adds replicas'
    >>> too_few(copies=3, in_sync=2, brokers=5)
    ''
    """
    if copies < copies_wanted(brokers):
        copies_now = "1 copy" if copies == 1 else f"{copies} copies"
        return (
            f"keeps {copies_now} of a plan where {copies_wanted(brokers)} are possible: "
            "kafka-reassign-partitions.sh adds replicas"
        )
    if in_sync < in_sync_wanted(copies):
        return (
            f"has min.insync.replicas={in_sync}: the loss of one broker can lose a plan; "
            f"{in_sync_wanted(copies)} is safe, and continues without one broker"
        )
    return ""

"""How many copies of a plan a cluster keeps, and must have written, by how many brokers it has.

Belongs here: the rule. Does not: asking brokers (`plan_topic`).
"""


def copies_wanted(brokers: int) -> int:
    """Return how many copies of a partition a cluster is to keep: three, if it has the brokers."""
    return max(1, min(3, brokers))


def in_sync_wanted(copies: int) -> int:
    """Return how many of the copies must have a record before it counts as written.

    All but one: the loss of a broker loses no plan, and stops no publication.

    Examples
    --------
    >>> in_sync_wanted(1), in_sync_wanted(2), in_sync_wanted(3)
    (1, 1, 2)
    """
    return max(1, copies - 1)


def too_few(copies: int, in_sync: int, brokers: int) -> str:
    """Say how a topic could lose plans that this cluster need not lose; empty: it could not.

    Examples
    --------
    >>> too_few(copies=1, in_sync=1, brokers=3)
    'keeps 1 copy of a plan where 3 are possible: kafka-reassign-partitions.sh adds copies'
    >>> too_few(copies=3, in_sync=2, brokers=5)
    ''
    """
    if copies < copies_wanted(brokers):
        copies_now = "1 copy" if copies == 1 else f"{copies} copies"
        return (
            f"keeps {copies_now} of a plan where {copies_wanted(brokers)} are possible: "
            "kafka-reassign-partitions.sh adds copies"
        )
    if in_sync < in_sync_wanted(copies):
        return (
            f"has min.insync.replicas={in_sync}: a broker that is lost can take a plan with it; "
            f"{in_sync_wanted(copies)} is safe and goes on without one broker"
        )
    return ""

"""The basis of a plan: the group's members, subscriptions and partition counts at its creation.

Belongs here: comparing a plan with its group as it is now. Belongs elsewhere: asking Kafka
(`fairlead.kafka`), and acting on differences (`fairlead.workflows`).
"""

from collections.abc import Collection, Iterable, Mapping

from fairlead.domain.groups import LiveGroup
from fairlead.wire.document import PlanDocument

#: A message lists at most this many differences of each kind (new members, members that left, ...).
NAMED = 5


def differences(
    plan: PlanDocument,
    subscriptions: Mapping[str, Collection[str]],
    partition_counts: Mapping[str, int],
) -> list[str]:
    """Return the differences between a plan's basis and its group, as sentences.

    Parameters
    ----------
    subscriptions
        Maps each present member's name to the topics it subscribes to.
    partition_counts
        Maps each existing topic to its number of partitions.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from fairlead.wire.document import MemberShare
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> plan = PlanDocument("g", 1, "id", "range", day, day, {"t": 3},
    ...                     {"a": MemberShare(("t",), {})})
    >>> differences(plan, {"a": ["t"], "b": ["t"]}, {"t": 4})
    ['new members: b', 'topic t has 4 partitions instead of 3']
    """
    sentences = [
        f"{what}: {_some(names)}"
        for what, names in (
            ("members that left", plan.members.keys() - subscriptions.keys()),
            ("new members", subscriptions.keys() - plan.members.keys()),
        )
        if names
    ]
    resubscribed = [
        name
        for name, share in plan.members.items()
        if name in subscriptions and set(share.topics) != set(subscriptions[name])
    ]
    if resubscribed:
        sentences.append(f"members with another subscription: {_some(resubscribed)}")
    resized = [
        f"topic {topic} has {partition_counts.get(topic, 0)} partitions instead of {count}"
        for topic, count in sorted(plan.partition_counts.items())
        if partition_counts.get(topic, 0) != count
    ]
    return [*sentences, *resized[:NAMED], *_more(resized)]


def differences_from(plan: PlanDocument, group: LiveGroup) -> list[str]:
    """Return the differences between a plan's basis and its group, as read from Kafka."""
    subscriptions = {member.name: member.topics for member in group.members}
    return differences(plan, subscriptions, group.partition_counts)


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join([*ordered[:NAMED], *_more(ordered)])


def _more(names: list[str]) -> list[str]:
    return [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []

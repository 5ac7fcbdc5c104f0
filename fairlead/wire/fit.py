"""Fit a plan to the members that are present.

Belongs here: the share of each present member. Belongs elsewhere: the list of members and their
names (`members`), and assignments without a plan (`fairlead.followers`).
"""

import heapq
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assignors.filling import in_turns
from fairlead.wire.document import PlanDocument

Shares = dict[str, dict[str, list[int]]]


def fit(
    plan: PlanDocument,
    subscriptions: Mapping[str, Collection[str]],
    partition_counts: Mapping[str, int],
) -> Shares:
    """Assign each partition of a subscribed topic to exactly one subscriber, following the plan.

    1. Members that the plan names get their share, without topics to which they do not subscribe
       any more.
    2. The shares of absent members, the heaviest first, go to new members. A share goes as a whole
       to a new member that subscribes to all topics of the share; among several, to the one with
       the fewest topics. Each new member takes over at most one share.
    3. The remaining partitions are assigned one by one. Topics with the fewest subscribers come
       first; among topics with the same subscribers, the heaviest partition comes first. Each
       partition goes to the subscriber with the fewest partitions; among equals, to the one with
       the least weight, then to the one with the lowest name.
    4. Among the partitions of equal weight in step 3, owners are exchanged so that each member gets
       a similar part of each topic. This does not change the members' counts and weights.

    Parameters
    ----------
    plan
        The plan; its members, topics and partition counts may differ from the present ones.
    subscriptions
        Maps each member name to the topics that the member subscribes to.
    partition_counts
        Maps each topic to its number of partitions. Subscribed topics that are not in it are
        ignored.

    Returns
    -------
    dict
        Partition numbers by member name and topic, ascending. Contains every member, but only
        topics of which the member owns a partition.

    Notes
    -----
    The result does not depend on the order of members and topics in the input. For P partitions,
    T topics and M members, the time is O(P log M + M T), plus one matrix product of the shapes
    (absent members, T) and (T, new members).

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from fairlead.wire.document import MemberShare
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> plan = PlanDocument(
    ...     group="g", version=1, plan_id="p", assignor="lag-aware", created_at=day,
    ...     snapshot_at=day, partition_counts={"t": 3},
    ...     members={"a": MemberShare(("t",), {"t": np.array([0], np.int32)}),
    ...              "b": MemberShare(("t",), {"t": np.array([1, 2], np.int32)})},
    ... )
    >>> fit(plan, {"a": ["t"], "c": ["t"]}, {"t": 3})  # c replaces b
    {'a': {'t': [0]}, 'c': {'t': [1, 2]}}
    """
    group = _Group.of(plan, subscriptions, partition_counts)
    owner = np.full(group.weights.size, -1, dtype=np.int32)
    planned = _Planned.of(plan, group)
    _keep(planned, group, owner)
    _take_over(planned, group, owner)
    _place(group, owner)
    return _by_member(group, owner)


@dataclass(frozen=True, eq=False)
class _Group:
    """The present group as arrays.

    Parameters
    ----------
    members
        The names of M members, sorted.
    topics
        Maps the names of T topics, sorted, to topic numbers.
    subscribed
        Which member subscribes to which topic, bool of shape (M, T).
    offsets
        Index of each topic's first partition, and the number of partitions P, int64 of shape
        (T + 1,). Partition p of topic number t has index offsets[t] + p.
    weights
        Weights from the plan, 0 for partitions without a weight, float64 of shape (P,).
    """

    members: tuple[str, ...]
    topics: Mapping[str, int]
    subscribed: npt.NDArray[np.bool_]
    offsets: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]

    @classmethod
    def of(
        cls,
        plan: PlanDocument,
        subscriptions: Mapping[str, Collection[str]],
        partition_counts: Mapping[str, int],
    ) -> "_Group":
        members = tuple(sorted(subscriptions))
        subscribed_topics = set().union(*subscriptions.values())
        existing = sorted(topic for topic in subscribed_topics if topic in partition_counts)
        topics = {topic: number for number, topic in enumerate(existing)}
        subscribed = np.zeros((len(members), len(topics)), dtype=np.bool_)
        for number, member in enumerate(members):
            columns = [topics[topic] for topic in subscriptions[member] if topic in topics]
            subscribed[number, columns] = True
        counts = [partition_counts[topic] for topic in topics]
        offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        weights = np.zeros(offsets[-1])
        for topic, number in topics.items():
            known = plan.weights.get(topic, np.empty(0))[: counts[number]]
            weights[offsets[number] : offsets[number] + known.size] = known
        return cls(members, topics, subscribed, offsets, weights)


@dataclass(frozen=True, eq=False)
class _Planned:
    """The planned partitions that still exist, as arrays of K partitions.

    Parameters
    ----------
    names
        Names of the plan's members, in the plan's order.
    member
        For each partition, the index in `names` of its planned owner, int64 of shape (K,),
        ascending.
    topic, index
        For each partition, its topic number and its index in `_Group`, int64 of shape (K,).
    """

    names: tuple[str, ...]
    member: npt.NDArray[np.int64]
    topic: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]

    @classmethod
    def of(cls, plan: PlanDocument, group: _Group) -> "_Planned":
        numbers, topics, pieces = [], [], [np.empty(0, np.int32)]
        for number, share in enumerate(plan.members.values()):
            for name in share.partitions:
                if (topic_number := group.topics.get(name)) is not None:
                    numbers.append(number)
                    topics.append(topic_number)
                    count = int(np.diff(group.offsets[topic_number : topic_number + 2])[0])
                    pieces.append(share.existing(name, count))
        sizes = [piece.size for piece in pieces[1:]]
        member = np.repeat(np.array(numbers, dtype=np.int64), sizes)
        topic = np.repeat(np.array(topics, dtype=np.int64), sizes)
        index = np.concatenate(pieces).astype(np.int64) + group.offsets[topic]
        return cls(tuple(plan.members), member, topic, index)


def _keep(planned: _Planned, group: _Group, owner: npt.NDArray[np.int32]) -> None:
    """Give each present member its planned share, without topics to which it does not subscribe."""
    numbers = {name: number for number, name in enumerate(group.members)}
    present = np.array([numbers.get(name, -1) for name in planned.names], dtype=np.int64)
    member = present[planned.member]
    stays = member >= 0
    stays[stays] = group.subscribed[member[stays], planned.topic[stays]]
    owner[planned.index[stays]] = member[stays]


def _take_over(planned: _Planned, group: _Group, owner: npt.NDArray[np.int32]) -> None:
    """Give whole shares of absent members to new members that subscribe to all their topics."""
    known, present = set(planned.names), set(group.members)
    new_members = np.array(
        [number for number, name in enumerate(group.members) if name not in known], dtype=np.intp
    )
    sizes = np.bincount(planned.member, minlength=len(planned.names))
    loads = np.bincount(
        planned.member, weights=group.weights[planned.index], minlength=len(planned.names)
    )
    absent = [n for n, name in enumerate(planned.names) if name not in present and sizes[n]]
    if not new_members.size or not absent:
        return
    heaviest_first = sorted(absent, key=lambda n: (-loads[n], -sizes[n], planned.names[n]))
    row_of = np.full(len(planned.names), -1)
    row_of[heaviest_first] = np.arange(len(absent))
    rows = row_of[planned.member]
    needed = np.zeros((len(absent), len(group.topics)), dtype=np.float32)
    needed[rows[rows >= 0], planned.topic[rows >= 0]] = 1
    narrowest_first = new_members[
        np.argsort(group.subscribed[new_members].sum(axis=1), kind="stable")
    ]
    # Some BLAS libraries warn about invalid values in padding. The result is correct nevertheless.
    with np.errstate(invalid="ignore"):
        covers = needed @ ~group.subscribed[narrowest_first].T == 0
    takers = np.full(len(absent), -1)
    for row in range(len(absent)):
        if covers[row].any():
            taker = int(covers[row].argmax())
            takers[row] = narrowest_first[taker]
            covers[:, taker] = False
    has_taker = rows >= 0
    has_taker[has_taker] = takers[rows[has_taker]] >= 0
    owner[planned.index[has_taker]] = takers[rows[has_taker]]


def _place(group: _Group, owner: npt.NDArray[np.int32]) -> None:
    """Assign the partitions without an owner, to balance first the counts, then the weights."""
    orphans = np.flatnonzero(owner < 0)
    if not orphans.size:
        return
    owned = owner >= 0
    counts = np.bincount(owner[owned], minlength=len(group.members))
    loads = np.bincount(owner[owned], weights=group.weights[owned], minlength=len(group.members))
    loads = loads.astype(np.float64)  # bincount returns integers for empty input
    topic_of = np.searchsorted(group.offsets, orphans, side="right") - 1
    for topics, members in _audiences(group, np.unique(topic_of)):
        unowned = orphans[np.isin(topic_of, topics)]
        unowned = unowned[np.argsort(-group.weights[unowned], kind="stable")]
        # N partitions go to at most N members. So only the N members with the fewest partitions
        # (among equals, with the least weight) are considered.
        least = members[np.lexsort((loads[members], counts[members]))[: unowned.size]]
        heap = [(int(counts[m]), float(loads[m]), int(m)) for m in least]
        weights, placed = group.weights[unowned], np.empty(unowned.size, dtype=np.int32)
        for number, weight in enumerate(weights.tolist()):
            count, load, member = heap[0]
            placed[number] = member
            heapq.heapreplace(heap, (count + 1, load + weight, member))
        for count, load, member in heap:
            counts[member], loads[member] = count, load
        _in_turns(placed, weights)
        owner[unowned] = placed


def _in_turns(placed: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]) -> None:
    """Spread each topic over the members, by exchanging owners of partitions of equal weight.

    This does not change how many partitions of each weight a member owns.

    Parameters
    ----------
    placed
        The member of each partition; changed in place.
    weights
        The weight of each partition, descending.
    """
    ends = np.flatnonzero(np.diff(weights, append=-1.0)) + 1
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        received = np.bincount(placed[first:last])
        if np.ptp(received[received > 0]) > 1:
            placed[first:last] = in_turns(received)


def _audiences(
    group: _Group, topics: npt.NDArray[np.intp]
) -> list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Return groups of topics with equal subscribers, and the subscribers of each group.

    Groups with the fewest subscribers come first.
    """
    same: dict[bytes, list[int]] = {}
    for topic, members in zip(
        topics, np.packbits(group.subscribed[:, topics].T, axis=1), strict=True
    ):
        same.setdefault(members.tobytes(), []).append(topic)
    audiences = [
        (np.array(read, dtype=np.intp), np.flatnonzero(group.subscribed[:, read[0]]))
        for read in same.values()
    ]
    return sorted(audiences, key=lambda audience: (audience[1].size, audience[0][0]))


def _by_member(group: _Group, owner: npt.NDArray[np.int32]) -> Shares:
    """Return partition numbers by member and topic."""
    shares: Shares = {name: {} for name in group.members}
    for topic, number in group.topics.items():
        owners = owner[group.offsets[number] : group.offsets[number + 1]]
        order = np.argsort(owners, kind="stable")
        members, starts = np.unique(owners[order], return_index=True)
        parts = np.split(order, starts[1:])  # a topic without partitions gives one empty part
        for member, partitions in zip(members.tolist(), parts, strict=False):
            shares[group.members[member]][topic] = partitions.tolist()
    return shares

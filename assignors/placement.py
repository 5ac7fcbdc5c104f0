"""Placement of orphans: partitions without an owner.

Belongs here: the member for each orphan. Belongs elsewhere: moving partitions that have an owner
(`relief`).
"""

import heapq

import numpy as np

from assignors.filling import in_turns
from assignors.ledger import Ledger
from assignors.problem import Int32, Int64
from assignors.racks import in_replica_rack
from assignors.spread import pairs


def place(ledger: Ledger, partitions: Int64) -> None:
    """Give each orphan, the heaviest first, to the member with the lowest load after the placement.

    Among equal loads, a member in the rack of a replica comes first, then the one with the fewest
    partitions, then with the fewest of the topic, then the first by name. So among members with
    equal loads, partitions of weight 0 even out the counts.

    Parameters
    ----------
    ledger
        Changed in place.
    partitions
        Indices of partitions without an owner whose topics have subscribers.

    Notes
    -----
    With equal subscriptions and capacities, and no present owners, the highest load is at most 4/3
    of the optimum (longest processing time first: Graham, 1969). For K orphans: O(K log M) with
    equal subscriptions, no limits and no racks; otherwise O(K M).
    """
    order = partitions[np.argsort(-ledger.weights[partitions], kind="stable")]
    problem = ledger.problem
    free = (ledger.limits.most > problem.partition_total).all() and (
        ledger.limits.most_of_topic > problem.partition_total
    ).all()
    if problem.equal_subscriptions and free and problem.rack_set_of is None:
        _place_anywhere(ledger, order)
        return
    for partition in order.tolist():
        ledger.give(partition, _best_member(ledger, partition))


def _place_anywhere(ledger: Ledger, order: Int64) -> None:
    """Place partitions that all readers may get. Members of equal capacity are in one heap."""
    if not order.size:
        return
    problem = ledger.problem
    capacities, loads, counts = (
        array.tolist() for array in (problem.capacities, ledger.loads, ledger.counts)
    )
    heaps: dict[float, list[tuple[float, int, int]]] = {}
    for member in problem.readers.tolist():
        heap = heaps.setdefault(capacities[member], [])
        heap.append((loads[member], counts[member], member))
    for heap in heaps.values():
        heapq.heapify(heap)
    owners = []
    for weight in ledger.weights[order].tolist():
        # Within a heap, members have equal capacity and are ordered by load. Members of different
        # heaps are compared by their load after the placement.
        load, count, member, capacity = min(
            (heap[0][0] + weight / capacity, heap[0][1], heap[0][2], capacity)
            for capacity, heap in heaps.items()
        )
        heapq.heapreplace(heaps[capacity], (load, count + 1, member))
        owners.append(member)
    ledger.receive(order, _spread_equals(ledger, order, np.array(owners, dtype=np.int32)))


def _spread_equals(ledger: Ledger, order: Int64, owners: Int32) -> Int32:
    """Exchange partitions of equal weight between their new owners, if that spreads topics.

    Loads and counts of members stay the same.
    """
    problem, size = ledger.problem, ledger.counts.size
    weights = ledger.weights[order]
    ends = np.flatnonzero(np.diff(weights, append=-1.0)) + 1
    dealt = owners.copy()
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        received = np.bincount(owners[first:last], minlength=size)
        if np.ptp(received[received > 0]) > 1:
            dealt[first:last] = in_turns(received)

    def squares(result: Int32) -> int:
        owner = ledger.owner.copy()
        owner[order] = result
        return int((pairs(problem, owner).size ** 2).sum())

    return dealt if (dealt != owners).any() and squares(dealt) < squares(owners) else owners


def _best_member(ledger: Ledger, partition: int) -> int:
    problem = ledger.problem
    topic = int(problem.topic_of[partition])
    members: Int32 = problem.subscribers_of(topic)
    room = ledger.has_room(topic, members)
    if room.any():
        members = members[room]
    loads = ledger.loads[members] + ledger.weights[partition] / problem.capacities[members]
    far = ~in_replica_rack(problem, np.array([partition]), members)
    topic_counts = np.bincount(_owners(ledger, topic), minlength=ledger.counts.size)[members]
    return int(members[np.lexsort((members, topic_counts, ledger.counts[members], far, loads))[0]])


def _owners(ledger: Ledger, topic: int) -> Int32:
    """Return the owner of each owned partition of a topic."""
    first, last = ledger.problem.topic_offsets[topic : topic + 2]
    owner = ledger.owner[first:last]
    return owner[owner >= 0]

"""The first step of range assignment with racks (KIP-881): partitions near a replica.

Belongs here: the rule by which Kafka's RangeAssignor gives members the partitions with a replica in
their rack. Belongs elsewhere: the other partitions, which are then cut into pieces (`ranges`).

A member gets no more partitions of a topic than without racks. Topics with the same subscribers and
the same number of partitions are assigned together, because an application may join their records.
For example, let all these topics have a replica of partition 0 in the same rack. Then one member in
this rack gets partition 0 of all these topics.
"""

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64, Problem, member_ring

Mask = npt.NDArray[np.bool_]


def match(problem: Problem) -> Int32 | None:
    """Return the owners of partitions that go to a member near a replica, and -1 for the others.

    int32 of shape (P,); None if racks make no difference: if they are unknown, if no member is in
    the rack of a replica, or if all partitions of each topic have replicas in the same racks. A
    member whose rack is unknown counts as near every replica.
    """
    if problem.rack_set_of is None or not any(problem.racks):
        return None
    ring = member_ring(problem)
    rank = np.argsort(ring)
    alike: dict[tuple[bytes, int], list[int]] = defaultdict(list)
    for topic, count in enumerate(problem.partition_counts.tolist()):
        subscribers = problem.subscribers_of(topic)
        if count and any(problem.racks[member] for member in subscribers.tolist()):
            alike[subscribers.tobytes(), count].append(topic)
    needing = {topic for topics in alike.values() for topic in topics if _differs(problem, topic)}
    if not needing:
        return None
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    for topics in alike.values():
        if len(topics) == 1 and topics[0] not in needing:
            continue
        subscribers = problem.subscribers_of(topics[0])
        deal = _Deal(problem, topics, ring[np.sort(rank[subscribers])])
        taken_by = deal.together() if len(topics) > 1 else deal.alone()
        for topic in topics:
            first = problem.topic_offsets[topic]
            owner[first : first + taken_by.size] = taken_by
    return owner


def _differs(problem: Problem, topic: int) -> bool:
    """Return whether racks matter for a topic.

    They do if the topic's partitions have replicas in different sets of racks, and a subscriber is
    in one of these racks.
    """
    first, last = problem.topic_offsets[topic : topic + 2]
    numbers = np.unique(_sets(problem)[first:last]).tolist()
    held = frozenset[str]().union(*(problem.rack_sets[number] for number in numbers))
    racks = {problem.racks[member] for member in problem.subscribers_of(topic).tolist()}
    return bool(held & racks) and len(numbers) > 1


def _sets(problem: Problem) -> Int32:
    """Return the number of each partition's set of racks, int32 of shape (P,)."""
    if problem.rack_set_of is None:
        raise ValueError("replicas' racks are unknown")
    return problem.rack_set_of


class _Deal:
    """Assignment of topics that have N partitions each and the same S subscribers."""

    def __init__(self, problem: Problem, topics: list[int], subscribers: Int32) -> None:
        self.share, self.larger = divmod(int(problem.partition_counts[topics[0]]), subscribers.size)
        self.subscribers = subscribers
        self.has = [0] * subscribers.size
        racks = [problem.racks[member] for member in subscribers.tolist()]
        kinds = sorted(set(racks), key=str)
        self.kind_of = [kinds.index(rack) for rack in racks]
        count = int(problem.partition_counts[topics[0]])
        sets = _sets(problem)[problem.topic_offsets[topics][:, None] + np.arange(count)]
        near = np.array(
            [[rack is None or rack in held for held in problem.rack_sets] for rack in kinds]
        )
        # bool of shape (N, K), for N partition numbers and K racks: whether the partition with this
        # number has a replica in the rack, in every topic.
        self.near: Mask = np.all(near[:, sets], axis=1).T

    def _room(self, at: int) -> int:
        return max(self.share + (self.larger > 0) - self.has[at], 0)

    def _take(self, at: int, partitions: int) -> None:
        self.has[at] += partitions
        self.larger -= self.has[at] > self.share

    def together(self) -> Int32:
        """Return the subscriber that gets each partition number of all topics, int32 of shape (N,).

        This is the first subscriber with room in a rack that has replicas of the partitions with
        this number; -1 if there is none.
        A subscriber without room never gets room again, so it is removed from its rack's queue.
        """
        queues = [
            [at for at, kind in enumerate(self.kind_of) if kind == wanted][::-1]
            for wanted in range(self.near.shape[1])
        ]
        taken_by: Int32 = np.full(self.near.shape[0], -1, dtype=np.int32)
        for number, near in enumerate(self.near.tolist()):
            for queue in queues:
                while queue and not self._room(queue[-1]):
                    queue.pop()
            first = min(
                (
                    queue[-1]
                    for queue, is_near in zip(queues, near, strict=True)
                    if is_near and queue
                ),
                default=None,
            )
            if first is not None:
                self._take(first, 1)
                taken_by[number] = self.subscribers[first]
        return taken_by

    def alone(self) -> Int32:
        """Give each subscriber, one after another, unowned partitions near it, at most its share.

        A partition is near a subscriber if it has a replica in the subscriber's rack.
        Each rack has one queue of partition numbers, and its subscribers take from the front.
        """
        taken_by: Int32 = np.full(self.near.shape[0], -1, dtype=np.int32)
        queues: list[Int64] = [np.flatnonzero(column) for column in self.near.T]
        for at, kind in enumerate(self.kind_of):
            free = queues[kind]
            free = free[taken_by[free] < 0]
            room = self._room(at)
            chosen, queues[kind] = free[:room], free[room:]
            taken_by[chosen] = self.subscribers[at]
            self._take(at, chosen.size)
        return taken_by

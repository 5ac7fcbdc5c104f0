"""One consumer for all that a follower reads beside its application: pins, and plans.

Belongs here: who polls, and handing each reader the records of its own partition. Does not: what
records mean (`pin_log`, `source`), nor when a reader begins anew (`pin_listener`, `plan_reader`).
"""

import threading
import time
from collections import deque
from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

from fairlead.followers.confluent.topics import Cluster

Place = tuple[str, int]

_ENOUGH: Final = 1000
#: How much may wait for one reader before the others wait for that one.
_MOST_RECORDS: Final = 1000
_MOST_BYTES: Final = 16_000_000
#: The client waits for whole milliseconds: for less it does not wait at all.
SHORTEST_S: Final = 0.001
#: How long plans wait at first for a tail that pins are read through.
_JOIN_S: Final = 0.5


class Tail:
    """Reads partitions for several readers, each on one thread.

    Whoever reads polls for everybody, unless somebody does already. A partition that is added while
    another one is read waits for the present fetch to end, a second at most.

    Parameters
    ----------
    cluster
        Where to read.
    group
        The group id: records under other keys are passed over.
    """

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._consumer = Consumer(
            {
                **cluster.connection,
                "group.id": group,  # required, never joined: the one that the consumer may read
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,  # the last stable offset, whatever stands before it
                "fetch.wait.max.ms": 1000,  # an empty answer costs both sides, and tells nothing
                "fetch.error.backoff.ms": 50,
                # While many members announce themselves, fetch what they said together.
                "queued.min.messages": 1,
                "fetch.queue.backoff.ms": 5,
                "reconnect.backoff.max.ms": 1000,
            }
        )
        self._key = group.encode()
        self._assigning = threading.Lock()
        self._changed = threading.Condition()
        self._queues: dict[Place, deque[Message]] = {}
        self._left: list[Place] = []
        self._poller: int | None = None
        self._spoilt = self._closed = False

    def add(self, *partitions: TopicPartition) -> bool:
        """Read these partitions, too, from their offsets; whether that is possible still."""
        with self._assigning:
            if self._spoilt or self._closed:
                return False
            self._unassign()
            with self._changed:
                self._queues |= {(one.topic, one.partition): deque() for one in partitions}
            self._consumer.incremental_assign(list(partitions))
        return True

    def read(self, place: Place, timeout_s: float) -> list[Message]:
        """Wait at most `timeout_s` for the next records and errors of a partition."""
        ends_at = time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, ends_at - time.monotonic())
            with self._changed:
                mine = self._queues[place]
                if not mine and left_s > 0 and not self._may_poll:
                    self._changed.wait(left_s)
                    continue
                polls = not mine and self._may_poll
                if polls:
                    self._poller = threading.get_ident()
                else:
                    taken = list(mine)
                    mine.clear()
                    self._changed.notify_all()
            if not polls:
                return taken
            self._poll(left_s)
            if not mine and ends_at - time.monotonic() < SHORTEST_S:
                return []

    def remove(self, place: Place, *, spoilt: bool = False) -> None:
        """Read a partition no more; after the last one the consumer is closed.

        Parameters
        ----------
        place
            The partition.
        spoilt
            Whether the consumer may remember what the topic was before: nothing can be added then.
        """
        with self._changed:
            self._spoilt = self._spoilt or spoilt
            if self._queues.pop(place, None) is not None:
                self._left.append(place)
            may_poll = self._poller in {None, threading.get_ident()}
        if may_poll:  # else whoever polls lets go
            self._let_go()

    @property
    def _may_poll(self) -> bool:
        # An exception may have kept this thread from noting that it polls no more.
        return self._poller in {None, threading.get_ident()} and not any(
            len(queue) > _MOST_RECORDS or sum(map(len, queue)) > _MOST_BYTES
            for queue in self._queues.values()
        )

    def _poll(self, timeout_s: float) -> None:
        messages: list[Message] = []
        try:
            # For one message consume() waits without looking after signals five times a second, as
            # poll() does; for more it would wait for its whole time-out, whatever is there.
            messages = self._consumer.consume(1, timeout_s)
            messages += self._consumer.consume(_ENOUGH, 0) if messages else []
        finally:
            with self._changed:
                self._poller = None
                for message in messages:
                    self._hand_out(message)
                self._changed.notify_all()
            self._let_go()

    def _hand_out(self, message: Message) -> None:
        topic, number = message.topic(), message.partition()
        if topic is None or number is None:  # an error of no partition concerns all of them
            for queue in self._queues.values():
                queue.append(message)
        elif message.error() is not None or message.key() == self._key:
            self._queues.get((topic, number), deque()).append(message)

    def _let_go(self) -> None:
        if not self._left:
            return
        with self._assigning:
            self._unassign()
            if not self._queues and not self._closed:
                self._closed = True
                self._consumer.close()

    def _unassign(self) -> None:
        with self._changed:
            left, self._left = self._left, []
        if left:
            self._consumer.incremental_unassign([TopicPartition(*place) for place in left])


class Tails:
    """Gives one follower's readers the tail that they share.

    Pins begin a tail, so that no fetch keeps them waiting; plans join it. For two threads.

    Parameters
    ----------
    cluster, group
        As for Tail.
    """

    def __init__(self, cluster: Cluster, group: str) -> None:
        self.cluster = cluster
        self.group = group
        #: The one that pins are read through.
        self.newest: Tail | None = None
        self._begun = threading.Condition()
        self._joining: TopicPartition | None = None

    def begin(self, partition: TopicPartition) -> Tail:
        """Read a partition through a consumer of its own, which others may join."""
        tail = Tail(self.cluster, self.group)
        with self._begun:
            tail.add(partition, *([self._joining] if self._joining else []))
            self.newest, self._joining = tail, None
            self._begun.notify_all()
        return tail

    def join(self, partition: TopicPartition) -> Tail:
        """Read a partition through the newest tail, if that can be, else through another one."""
        with self._begun:
            if self.newest is None:
                self._joining = partition
                self._begun.wait_for(lambda: self._joining is None, _JOIN_S)
                if self.newest is not None:
                    return self.newest
                self._joining = None
            tail = self.newest
        if tail is None or not tail.add(partition):
            tail = Tail(self.cluster, self.group)
            tail.add(partition)
        return tail

"""Plain confluent-kafka consumers under KIP-848 that record changes of their partitions.

Belongs here: running many consumers per process, enough for large groups. Belongs elsewhere:
anything about plans.
"""

import multiprocessing as mp
import queue
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Final, Self

from confluent_kafka import Consumer, TopicPartition

#: Seconds between two polls of a consumer. A change is recorded at the next poll.
TURN_S: Final = 0.01
#: Seconds after which waiting for consumers fails.
DEADLINE_S: Final = 240.0


@dataclass(frozen=True)
class Seat:
    """The configuration of one consumer.

    Parameters
    ----------
    group, name, topic
        The consumer's group, its client id, and the topic that it reads.
    """

    group: str
    name: str
    topic: str


@dataclass(frozen=True)
class Change:
    """A change of a consumer's partitions.

    Parameters
    ----------
    at
        Time on the clock `time.monotonic`, which all processes of a machine share.
    seat
        The consumer.
    gained
        True: the partitions were assigned. False: they were revoked.
    partitions
        Partition numbers.
    """

    at: float
    seat: Seat
    gained: bool
    partitions: tuple[int, ...]


class Members:
    """Consumers in separate processes. As a context manager, it kills the processes on exit.

    Parameters
    ----------
    servers
        Addresses of brokers.
    seats
        The consumers, which are distributed round-robin to the processes.
    processes
        Number of processes.
    config
        Configuration of every consumer.
    """

    def __init__(
        self, servers: str, seats: Sequence[Seat], *, processes: int, config: Mapping[str, str]
    ) -> None:
        context = mp.get_context("spawn")
        self._seats = seats
        self._changes: Queue[Change] = context.Queue()
        everything = {"bootstrap.servers": servers, "group.protocol": "consumer", **config}
        self._processes = [
            context.Process(
                target=_consume, args=(everything, seats[n::processes], self._changes), daemon=True
            )
            for n in range(processes)
        ]
        #: Partitions of each consumer at the last call of `take`.
        self.owned: dict[Seat, set[int]] = {seat: set() for seat in seats}

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def take(self, wait_s: float = 0.0) -> list[Change]:
        """Return the changes since the last call; if there is none, wait up to `wait_s` for one."""
        taken: list[Change] = []
        try:
            taken.append(self._changes.get(timeout=max(wait_s, 0.001)))
            while True:
                taken.append(self._changes.get_nowait())
        except queue.Empty:
            pass
        for change in taken:
            owned = self.owned[change.seat]
            (owned.update if change.gained else owned.difference_update)(change.partitions)
        return taken

    def until(self, wanted: Mapping[Seat, set[int]]) -> list[Change]:
        """Wait until members own the wanted partitions; return changes since the last `take`."""
        deadline, taken = time.monotonic() + DEADLINE_S, self.take()
        while self.owned != wanted:
            if time.monotonic() > deadline:
                raise TimeoutError("the consumers did not get the partitions of the plan")
            taken += self.take(0.1)
        return taken


def _consume(config: Mapping[str, str], seats: Sequence[Seat], changes: "Queue[Change]") -> None:
    """Poll consumers until the parent process has ended."""
    consumers = [_open(config, seat, changes) for seat in seats]
    wanted_by = mp.parent_process()
    while wanted_by is not None and wanted_by.is_alive():
        for consumer in consumers:
            consumer.poll(0)
        time.sleep(TURN_S)


def _open(config: Mapping[str, str], seat: Seat, changes: "Queue[Change]") -> Consumer:
    def tell(gained: bool, partitions: Sequence[TopicPartition]) -> None:  # noqa: FBT001
        numbers = tuple(partition.partition for partition in partitions)
        changes.put(Change(time.monotonic(), seat, gained, numbers))

    def assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)  # only assignments are measured, so do not read
        tell(True, partitions)  # noqa: FBT003

    def revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        tell(False, partitions)  # noqa: FBT003

    consumer = Consumer(
        {
            **config,
            "group.id": seat.group,
            "client.id": seat.name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "log_level": 2,
        }
    )
    consumer.subscribe([seat.topic], on_assign=assign, on_revoke=revoke)
    return consumer

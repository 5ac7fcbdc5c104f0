"""Consumers that log their own work, each in a separate process.

Belongs here: the ways to read records with each client, and applications that process batches or
use threads or tasks. Belongs elsewhere: running groups, comparing logs with reports
(`reported_work`).

A handler sleeps for a randomly drawn time. The application logs four numbers for each record: its
partition, the start (seconds of the monotonic clock), the seconds that the handler took, and the
drawn seconds.
"""

import asyncio
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain
from math import log, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from confluent_kafka import Message

from fairlead.followers import FollowOptions, aiokafka, kafka_python
from fairlead.followers.confluent import PlanConsumer
from fairlead.sandbox.java import BRIEF, find_java

JAVA: Final = "Java, MeteredConsumer"
COMMIT_MS: Final = 1000
WAIT_S: Final = 0.2
FLUSH: Final = 500
WORKERS: Final = 4
#: Maximum number of records in a queue; if it is full, the thread that reads records waits.
QUEUE: Final = 20
#: Seconds. Shorter times are spent in a busy loop, because a sleep would take longer.
SPIN_S: Final = 2e-4


@dataclass(frozen=True)
class Work:
    """The work of a consumer.

    Parameters
    ----------
    servers, group, topic, name
        The cluster, group and topic, and the consumer's `client.id`.
    loop
        How to read records: a key of `LOOPS` or `APPLICATIONS`, or `JAVA`.
    seconds
        Mean time per record of each partition.
    cv
        Coefficient of variation of the times, which have a lognormal distribution.
    path
        Path of the log, which is written when the process ends.
    """

    servers: str
    group: str
    topic: str
    name: str
    loop: str
    seconds: Sequence[float]
    cv: float
    path: str


def start(work: Work, classpath: str) -> "subprocess.Popen[bytes]":
    """Start a consumer process, which writes its log and ends when its standard input is closed.

    Parameters
    ----------
    classpath
        Classpath of `Working.java`.
    """
    if work.loop == JAVA:
        given = (work.servers, work.group, work.topic, work.name, work.path, work.cv)
        command = [str(find_java()), *BRIEF, "-Xmx128m", "-cp", classpath]
        command += ["fairlead.kafka.Working", *map(str, (*given, *work.seconds))]
    else:
        command = [sys.executable, "-m", "benchmarks.working", json.dumps(asdict(work))]
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def read_log(path: str) -> npt.NDArray[np.float64]:
    """Return the entries of a log, float64 of shape (records, 4)."""
    return np.fromfile(path, ">f8").reshape(-1, 4).astype(np.float64)


def work_until_input_ends() -> None:
    """Process records until standard input ends, then write the log."""
    work = Work(**json.loads(sys.argv[1]))
    application = Application(work)

    def end() -> None:
        sys.stdin.read()
        np.array(application.log, ">f8").tofile(work.path)
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    (LOOPS | APPLICATIONS)[work.loop](application)


class Application:
    """The handlers of a consumer, with its log.

    Parameters
    ----------
    work
        The consumer's work.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self.log: list[tuple[int, float, float, float]] = []
        self._random = random.Random(work.name)
        self._sigma = sqrt(log(1.0 + work.cv**2))

    def draw(self, partition: int) -> float:
        """Return a random time for a record, in seconds."""
        factor = self._random.lognormvariate(-(self._sigma**2) / 2, self._sigma)
        return self.work.seconds[partition] * factor

    def handle(self, partition: int) -> None:
        """Process one record."""
        began, drawn = time.monotonic(), self.draw(partition)
        _spend(drawn)
        self.log.append((partition, began, time.monotonic() - began, drawn))

    def handle_each(self, partitions: Sequence[int]) -> None:
        """Process records one after the other."""
        for partition in partitions:
            self.handle(partition)

    def handle_all(self, partitions: Sequence[int]) -> None:
        """Process several records together, as when they are inserted into a database.

        The log divides the time among the records in proportion to their drawn times.
        """
        began = time.monotonic()
        drawn = [self.draw(partition) for partition in partitions]
        whole = sum(drawn)
        _spend(whole)
        took = time.monotonic() - began
        for partition, its in zip(partitions, drawn, strict=True):
            self.log.append((partition, began, took * its / whole, its))
            began += took * its / whole

    async def handle_async(self, record: Any) -> None:
        """Process one record; other tasks run meanwhile."""
        began, drawn = time.monotonic(), self.draw(record.partition)
        await asyncio.sleep(drawn)
        self.log.append((record.partition, began, time.monotonic() - began, drawn))

    def kafka_python(self) -> Any:
        """Return a consumer of kafka-python."""
        return kafka_python.PlanConsumer(
            self.work.topic,
            bootstrap_servers=self.work.servers,
            group_id=self.work.group,
            client_id=self.work.name,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=COMMIT_MS,
            heartbeat_interval_ms=1000,
            bootstrap_timeout_ms=600_000,
        )

    def confluent(self) -> Any:
        """Return a consumer of confluent-kafka."""
        consumer = PlanConsumer(
            {
                "bootstrap.servers": self.work.servers,
                "group.id": self.work.group,
                "client.id": self.work.name,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": COMMIT_MS,
                "heartbeat.interval.ms": 1000,
            },
            options=FollowOptions(),
        )
        consumer.subscribe([self.work.topic])
        return consumer


def _spend(seconds: float) -> None:
    if seconds >= SPIN_S:
        time.sleep(seconds)
    else:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass


def _iterate(app: Application) -> None:
    for record in app.kafka_python():
        app.handle(record.partition)


def _poll(app: Application) -> None:
    consumer = app.kafka_python()
    while True:
        for records in consumer.poll(1e3 * WAIT_S).values():
            for record in records:
                app.handle(record.partition)


def _confluent_poll(app: Application) -> None:
    consumer = app.confluent()
    while True:
        message = consumer.poll(WAIT_S)
        if message is not None and message.error() is None:
            app.handle(message.partition())


def _confluent_consume(app: Application) -> None:
    consumer = app.confluent()
    while True:
        for message in consumer.consume(100, WAIT_S):
            if message.error() is None:
                app.handle(message.partition())


def _aiokafka(take: Callable[[Application, Any], Any]) -> Callable[[Application], None]:
    async def main(app: Application) -> None:
        consumer = aiokafka.PlanConsumer(
            app.work.topic,
            bootstrap_servers=app.work.servers,
            group_id=app.work.group,
            client_id=app.work.name,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=COMMIT_MS,
            heartbeat_interval_ms=1000,
        )
        await consumer.start()
        await take(app, consumer)

    return lambda app: asyncio.run(main(app))


async def _async_for(app: Application, consumer: Any) -> None:
    async for record in consumer:
        await app.handle_async(record)


async def _getone(app: Application, consumer: Any) -> None:
    while True:
        record = await consumer.getone()
        await app.handle_async(record)


async def _getmany(app: Application, consumer: Any) -> None:
    while True:
        for records in (await consumer.getmany(timeout_ms=int(1e3 * WAIT_S))).values():
            for record in records:
                await app.handle_async(record)


#: Functions that read and handle records until SIGTERM. Keys name the client and the kind of loop.
LOOPS: Final[dict[str, Callable[[Application], None]]] = {
    "kafka-python, iterator": _iterate,
    "kafka-python, poll": _poll,
    "confluent-kafka, poll": _confluent_poll,
    "confluent-kafka, consume(100)": _confluent_consume,
    "aiokafka, async for": _aiokafka(_async_for),
    "aiokafka, getone": _aiokafka(_getone),
    "aiokafka, getmany": _aiokafka(_getmany),
}


def _collect_and_insert(app: Application) -> None:
    consumer = app.confluent()
    while True:
        rows = [message.partition() for message in consumer.consume(500, WAIT_S)]
        if rows:
            app.handle_all(rows)


def _flush(app: Application) -> None:
    rows: list[int] = []
    for record in app.kafka_python():
        rows.append(record.partition)
        if len(rows) == FLUSH:
            app.handle_all(rows)
            rows.clear()


def _data_frames(app: Application) -> None:
    consumer = app.kafka_python()
    while True:
        for records in consumer.poll(1e3 * WAIT_S).values():
            frame = pd.DataFrame({"partition": [record.partition for record in records]})
            app.handle_all(frame["partition"].tolist())


def _executor_map(app: Application) -> None:
    consumer = app.confluent()
    with ThreadPoolExecutor(WORKERS) as pool:
        while True:
            messages = consumer.consume(100, WAIT_S)
            list(pool.map(app.handle, map(Message.partition, messages)))


def _executor_submit(app: Application) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        for record in app.kafka_python():
            pool.submit(app.handle, record.partition)


def _workers(length: int) -> Callable[[Application], None]:
    """Return an application whose threads process records from a queue.

    `length` is the maximum length of the queue; 0: unlimited.
    """

    def run_workers(app: Application) -> None:
        records: queue.Queue[Any] = queue.Queue(length)

        def work() -> None:
            while True:
                app.handle(records.get().partition())

        for _ in range(WORKERS):
            threading.Thread(target=work, daemon=True).start()
        consumer = app.confluent()
        while True:
            message = consumer.poll(WAIT_S)
            if message is not None and message.error() is None:
                records.put(message)

    return run_workers


async def _tasks(app: Application, consumer: Any) -> None:
    tasks = set()
    async for record in consumer:
        task = asyncio.create_task(app.handle_async(record))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _few_tasks(app: Application, consumer: Any) -> None:
    free = asyncio.Semaphore(WORKERS)
    tasks = set()

    def done(task: Any) -> None:
        tasks.discard(task)
        free.release()

    async for record in consumer:
        await free.acquire()
        task = asyncio.create_task(app.handle_async(record))
        tasks.add(task)
        task.add_done_callback(done)


async def _gather(app: Application, consumer: Any) -> None:
    while True:
        batch = await consumer.getmany(timeout_ms=int(1e3 * WAIT_S))
        records = chain.from_iterable(batch.values())
        await asyncio.gather(*(app.handle_async(record) for record in records))


def _pause_and_resume(app: Application) -> None:
    consumer = app.kafka_python()
    with ThreadPoolExecutor(1) as pool:
        while True:
            batch = consumer.poll(1e3 * WAIT_S)
            partitions = [record.partition for records in batch.values() for record in records]
            if not partitions:
                continue
            consumer.pause(*consumer.assignment())
            work = pool.submit(app.handle_each, partitions)
            while not work.done():
                consumer.poll(50)
            consumer.resume(*consumer.paused())


#: Applications whose client cannot fully measure the time that each record takes.
APPLICATIONS: Final[dict[str, Callable[[Application], None]]] = {
    "collect, then insert": _collect_and_insert,
    "flush every 500": _flush,
    "data frames": _data_frames,
    "executor.map": _executor_map,
    "executor.submit": _executor_submit,
    "worker threads": _workers(0),
    "worker threads, bounded queue": _workers(QUEUE),
    "asyncio tasks": _aiokafka(_tasks),
    "asyncio tasks, four at most": _aiokafka(_few_tasks),
    "asyncio.gather": _aiokafka(_gather),
    "pause and resume": _pause_and_resume,
    "10 us, kafka-python": _iterate,
    "10 us, confluent-kafka": _confluent_poll,
}

if __name__ == "__main__":
    work_until_input_ends()

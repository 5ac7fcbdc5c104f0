"""Processor time that measuring work takes per record: `python -m benchmarks.meter`.

Belongs here: each way to read records from a `PlanConsumer`, alternately with and without reports
of work. Records are in memory, because fetching would take longer than the measurement of work.
Belongs elsewhere: what clients and brokers cost (`drain`).

Figures are minima of the processor time over many short rounds, so other processes hardly matter.
"""

import argparse
import asyncio
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import islice
from types import SimpleNamespace
from typing import Any, Final

from aiokafka import ConsumerRecord
from confluent_kafka import Message
from kafka import TopicPartition

from benchmarks.harness import in_turns
from fairlead.followers import aiokafka, confluent, kafka_python
from fairlead.followers.confluent.reporting import Reporting
from fairlead.followers.core.meter import Meter

#: Number of records in a round and in a batch. If the handler takes 50 us, a round is one batch.
RECORDS: Final = 1000
BATCH: Final = 500
HANDLER_S: Final = 50e-6
MAX_S: Final = 300.0

Handler = Callable[[], None]
#: Reads a number of records with or without reports, and returns the seconds that this took.
Loop = Callable[[bool, int, Handler], float]


def main() -> None:
    """Print the added time per record, and the relative throughput with a handler of 50 us."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=200)
    rounds = options.parse_args().rounds
    print(f"{'':28}{'us per record':>14}{'throughput at 50 us':>22}")
    for name, loop in LOOPS.items():
        off, on = _least(loop, RECORDS, lambda: None, rounds)
        slow_off, slow_on = _least(loop, BATCH, _work, rounds // 5)
        print(f"{name:28}{(on - off) / RECORDS * 1e6:>14.2f}{slow_off / slow_on:>22.3f}")


def _least(loop: Loop, count: int, handler: Handler, rounds: int) -> list[float]:
    """Return the minimum seconds of a round without reports, and of a round with reports."""
    sides = [partial(_round, loop, report, count, handler) for report in (False, True)]
    return [min(seconds) for seconds in in_turns(rounds, *sides)]


def _round(loop: Loop, report: bool, count: int, handler: Handler, _: int) -> float:  # noqa: FBT001 - as in `Loop`
    return loop(report, count, handler)


def _work() -> None:
    """Use the processor for 50 us."""
    until = time.thread_time() + HANDLER_S
    while time.thread_time() < until:
        pass


def _record(offset: int) -> Any:
    return ConsumerRecord("orders", 0, offset, 0, 0, b"", b"value", None, 0, 5, ())


def _message(offset: int) -> Any:
    new: Any = Message  # Any, since its constructor is untyped
    return new(topic="orders", partition=0, offset=offset, value=b"value")


TAKEN: Final = [_record(offset) for offset in range(RECORDS)]
ORDERS: Final = TopicPartition("orders", 0)
MESSAGES: Final = [_message(offset) for offset in range(RECORDS)]


def _made(kind: Any, report: bool, **attributes: Any) -> Any:  # noqa: FBT001 - as in `Loop`
    """Return a consumer that has no connection and returns the given records."""
    consumer = kind.__new__(kind)
    meter = Meter(MAX_S) if report else None
    vars(consumer).update({"_closed": False, "_meter": meter, **attributes})
    return consumer


def _kafka_python(report: bool) -> Any:  # noqa: FBT001 - as in `Loop`
    batches = ({ORDERS: TAKEN[at : at + BATCH]} for at in range(0, RECORDS, BATCH))
    return _made(
        kafka_python.PlanConsumer,
        report,
        config={"consumer_timeout_ms": math.inf, "max_poll_records": BATCH},
        _iterator=iter(TAKEN),
        _poll_once=lambda *_, **__: next(batches),
    )


def _iterate(report: bool, count: int, handler: Handler) -> float:  # noqa: FBT001 - as in `Loop`
    records = islice(_kafka_python(report), count)
    began = time.thread_time()
    for _ in records:
        handler()
    return time.thread_time() - began


def _poll_lists(report: bool, count: int, handler: Handler) -> float:  # noqa: FBT001 - as in `Loop`
    consumer = _kafka_python(report)
    began = time.thread_time()
    for _ in range(0, count, BATCH):
        for records in consumer.poll().values():
            for _ in records:
                handler()
    return time.thread_time() - began


async def _async_for(report: bool, count: int, handler: Handler) -> float:  # noqa: FBT001 - as in `Loop`
    records = iter(TAKEN)

    async def next_record(_: object) -> Any:
        return next(records)

    consumer = _made(
        aiokafka.PlanConsumer,
        report,
        _coordinator=SimpleNamespace(check_errors=lambda: None),
        _subscription=SimpleNamespace(fetch_context=nullcontext),
        _fetcher=SimpleNamespace(next_record=next_record),
        _event_loop=asyncio.get_running_loop(),
        _taker=lambda: None,
    )
    left = count
    began = time.thread_time()
    async for _ in consumer:
        handler()
        if not (left := left - 1):
            break
    took = time.thread_time() - began
    consumer._closed = True  # noqa: SLF001 - an unclosed consumer warns
    return took


class _Consumer(confluent.PlanConsumer):
    """A consumer without a connection."""

    def memberid(self) -> str:
        """Return a member id, which reports need."""
        return "orders-1-6f9619ff"


def _confluent(report: bool, fetch: Callable[..., Any]) -> Any:  # noqa: FBT001 - as in `Loop`
    reporting = Reporting({}, report=report)
    return _made(
        _Consumer,
        report,
        _reporting=reporting,
        _meter=reporting.meter,
        _member=SimpleNamespace(fetch=fetch),
    )


def _poll_messages(report: bool, count: int, handler: Handler) -> float:  # noqa: FBT001 - as in `Loop`
    messages = iter(MESSAGES)
    consumer = _confluent(report, lambda *_, **__: next(messages))
    began = time.thread_time()
    for _ in range(count):
        consumer.poll()
        handler()
    return time.thread_time() - began


def _consume_lists(report: bool, count: int, handler: Handler) -> float:  # noqa: FBT001 - as in `Loop`
    batches = (MESSAGES[at : at + BATCH] for at in range(0, RECORDS, BATCH))
    consumer = _confluent(report, lambda *_, **__: next(batches))
    began = time.thread_time()
    for _ in range(0, count, BATCH):
        for _ in consumer.consume(BATCH):
            handler()
    return time.thread_time() - began


LOOPS: Final[dict[str, Loop]] = {
    "kafka-python, iterator": _iterate,
    "kafka-python, poll": _poll_lists,
    "aiokafka, async for": lambda *given: asyncio.run(_async_for(*given)),
    "confluent-kafka, poll": _poll_messages,
    "confluent-kafka, consume(500)": _consume_lists,
}

if __name__ == "__main__":
    main()

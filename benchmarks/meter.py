"""What measuring work costs per record: `python -m benchmarks.meter`.

Belongs here: the meter on the clients' own record types, without a broker, against the same loop
without it, in turns. Does not: what clients and brokers take (`drain`).
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, Final

from aiokafka import ConsumerRecord
from confluent_kafka import Message
from kafka import TopicPartition

from benchmarks.harness import in_turns
from fairlead.followers import aiokafka
from fairlead.followers.confluent.reporting import Reporting
from fairlead.followers.core.meter import Meter

RECORDS: Final = 50_000
BATCH: Final = 500
HANDLER_S: Final = 50e-6
MAX_S: Final = 300.0


def main() -> None:
    """Print microseconds per record, and the throughput that is left with a handler of 50 us."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    print(f"{'':34}{'us per record':>14}{'throughput at 50 us':>22}")
    for name, (plain, metered) in SIDES.items():
        without, measured = in_turns(rounds, *_rounds(plain, metered, None))
        cost = (min(measured) - min(without)) / RECORDS
        slow, measured = in_turns(rounds, *_rounds(plain, metered, _wait))
        left = min(slow) / min(measured)
        print(f"{name:34}{cost * 1e6:>14.2f}{left:>22.3f}")


def _rounds(plain: "Side", metered: "Side", handler: "Handler") -> list[Callable[[int], float]]:
    return [lambda _: plain(handler), lambda _: metered(handler)]


def _wait() -> None:
    """Work for 50 us."""
    until = time.perf_counter() + HANDLER_S
    while time.perf_counter() < until:
        pass


Handler = Callable[[], None] | None
Side = Callable[..., float]


def _iterate(records: Iterable[Any], handler: Handler) -> None:
    if handler is None:
        for _ in records:
            pass
    else:
        for _ in records:
            handler()


def _timed(run: Callable[[int, Handler], object], handler: Handler) -> float:
    """Return the seconds for `RECORDS` records; with a handler a tenth is enough."""
    count = RECORDS if handler is None else RECORDS // 10
    began = time.perf_counter()
    run(count, handler)
    return time.perf_counter() - began


def _record(offset: int) -> Any:
    return ConsumerRecord("orders", 0, offset, 0, 0, b"", b"value", None, 0, 5, ())


def _message(offset: int) -> Any:
    new: Any = Message  # its constructor is untyped
    return new(topic="orders", partition=0, offset=offset, value=b"value")


MADE: Final = [_record(offset) for offset in range(RECORDS)]
MESSAGES: Final = [_message(offset) for offset in range(RECORDS)]


class _Consumer:
    """As much of confluent-kafka's consumer as reports need."""

    @staticmethod
    def memberid() -> str:
        return "orders-1-6f9619ff"


def _reporting() -> Reporting:
    return Reporting({"enable.auto.commit": False}, report=True)


def _plain(made: list[Any]) -> Side:
    return lambda handler=None: _timed(lambda n, h: _iterate(made[:n], h), handler)


def _plain_batches(made: list[Any]) -> Side:
    def run(count: int, handler: Handler) -> None:
        for start in range(0, count, BATCH):
            _iterate(made[start : start + BATCH], handler)

    return lambda handler=None: _timed(run, handler)


def _one_by_one(handler: Handler = None) -> float:
    meter = Meter(MAX_S)

    def records(count: int) -> Iterable[Any]:
        for record in MADE[:count]:
            meter.asked()
            meter.took_one((record.topic, record.partition), record.offset)
            yield record

    return _timed(lambda n, h: _iterate(records(n), h), handler)


def _poll_messages(handler: Handler = None) -> float:
    reporting: Any = _reporting()

    def messages(count: int) -> Iterable[Any]:
        for message in MESSAGES[:count]:
            reporting.meter.asked()
            reporting.took(_Consumer, message)
            yield message

    return _timed(lambda n, h: _iterate(messages(n), h), handler)


def _poll_batches(handler: Handler = None) -> float:
    meter, partition = Meter(MAX_S), TopicPartition("orders", 0)

    def run(count: int, handler: Handler) -> None:
        for start in range(0, count, BATCH):
            meter.asked()
            _iterate(meter.took({partition: MADE[start : start + BATCH]})[partition], handler)

    return _timed(run, handler)


def _consume_lists(handler: Handler = None) -> float:
    reporting: Any = _reporting()

    def run(count: int, handler: Handler) -> None:
        for start in range(0, count, BATCH):
            reporting.meter.asked()
            _iterate(reporting.took_list(_Consumer, MESSAGES[start : start + BATCH]), handler)

    return _timed(run, handler)


async def _next(records: Any) -> Any:
    return next(records)


def _await_plain(handler: Handler = None) -> float:
    async def run(count: int, handler: Handler) -> None:
        records = iter(MADE)
        for _ in range(count):
            await _next(records)
            if handler is not None:
                handler()

    return _timed(lambda n, h: asyncio.run(run(n, h)), handler)


def _await_metered(handler: Handler = None) -> float:
    consumer: Any = SimpleNamespace(_taker=lambda: None)
    meter = Meter(MAX_S)
    await_timed = aiokafka.PlanConsumer._timed  # noqa: SLF001 - what is measured

    async def run(count: int, handler: Handler) -> None:
        records = iter(MADE)
        for _ in range(count):
            record = await await_timed(consumer, meter, _next(records))
            meter.took_one((record.topic, record.partition), record.offset)
            if handler is not None:
                handler()

    return _timed(lambda n, h: asyncio.run(run(n, h)), handler)


#: Way of taking records to the loop without and with the meter.
SIDES: Final[dict[str, tuple[Side, Side]]] = {
    "kafka-python, iterator": (_plain(MADE), _one_by_one),
    "kafka-python poll, aiokafka getmany": (_plain_batches(MADE), _poll_batches),
    "aiokafka, getone and async for": (_await_plain, _await_metered),
    "confluent-kafka, poll": (_plain(MESSAGES), _poll_messages),
    "confluent-kafka, consume(500)": (_plain_batches(MESSAGES), _consume_lists),
}

if __name__ == "__main__":
    main()

"""kafka-python, Java, aiokafka's `async for`: whose turn it is, and for how long."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.costs import Dear, TrueCosts
from benchmarks.simulation.sharing.chunks import CHUNK_BYTES

Consume = Callable[..., Any]
STEP_S = 0.25


def test_cycles_grow_until_chunks_are_full(alone: Consume) -> None:
    """Cycles grow with arrivals / capacity, until a chunk is 1 MiB; then all are as long.

    If all partitions were fetched at one moment, each cycle would take 1.5 times the last. Each is
    fetched at the end of its own turn, so that a turn takes what arrived in the cycle before it.
    """
    ran = alone(
        "kafka-python",
        zipf=0.0,
        partitions=4,
        arrive=150.0,
        per_s=100.0,
        seconds=600.0,
        behind_s=2.0,
        record_bytes=CHUNK_BYTES / 1000,
    )
    cycles = np.diff([first for p, first, *_ in ran.turns() if p == 0]) * STEP_S
    growing = cycles[(cycles > 5) & (cycles < 25)]
    # turn(k) = 1.5 / 4 * (turn(k - 4) + ... + turn(k - 7))
    growth = np.abs(np.roots([1, 0, 0, 0, *[-1.5 / 4] * 4])).max() ** 4
    assert growing.size >= 3
    assert growing[1:] / growing[:-1] == pytest.approx(growth, rel=0.05)
    assert cycles[-5:] == pytest.approx(40.0, abs=2 * STEP_S)


def test_a_turn_is_what_arrived_between_the_ends_of_the_last_two(alone: Consume) -> None:
    """A partition is fetched when its chunk is used up, and waits a cycle for its next turn."""
    ran = alone(
        "java", zipf=0.7, partitions=6, arrive=115.0, per_s=100.0, seconds=900.0, record_bytes=1.0
    )
    for partition in range(6):
        turns = [turn for turn in ran.turns() if turn[0] == partition][3:-1]
        for (_, _, end, _), (_, _, last, _), (*_, records) in zip(
            turns, turns[1:], turns[2:], strict=False
        ):
            assert records == pytest.approx(ran.arrived[end:last, partition].sum())


def test_whole_cycles_are_proportional_while_no_chunk_is_full(alone: Consume) -> None:
    """Of every partition about the same share of its arrivals is read over its last whole turns."""
    ran = alone(
        "java", zipf=0.7, partitions=6, arrive=115.0, per_s=100.0, seconds=3000.0, record_bytes=1.0
    )
    shares = []
    for partition in range(6):
        ends = [last for p, _, last, _ in ran.turns() if p == partition][-6:-1]
        read = ran.read[ends[0] : ends[-1], partition].sum()
        shares.append(read / ran.arrived[ends[0] : ends[-1], partition].sum())
    assert shares == pytest.approx([np.mean(shares)] * 6, rel=0.05)


def test_full_chunks_are_equal_turns(alone: Consume) -> None:
    """What exceeds 1 MiB a turn gets that; light partitions get all that arrives in them."""
    ran = alone(
        "kafka-python", zipf=1.0, arrive=120.0, per_s=90.0, seconds=1200.0, record_bytes=2e4
    )
    full = CHUNK_BYTES / 2e4
    read, arrived = ran.read[2400:].sum(axis=0), ran.arrived[2400:].sum(axis=0)
    heavy = read < 0.9 * arrived
    assert heavy[0]
    assert not heavy[4:].any()
    assert read[heavy] == pytest.approx(read[heavy].mean(), rel=0.05)
    assert max(records for *_, records in ran.turns()) == pytest.approx(full, rel=0.01)


def test_the_order_of_turns_stays(alone: Consume) -> None:
    """The second cycle has the order of the first; another seed has another."""
    orders = []
    for seed in range(3):
        ran = alone("aiokafka", behind_s=31.0, seconds=400.0, seed=seed)
        turns = [partition for partition, *_ in ran.turns()]
        assert turns[:12] == turns[12:24]
        assert sorted(turns[:12]) == list(range(12))
        orders.append(turns[:12])
    assert orders[0] != orders[1] != orders[2]


def test_a_dear_chunk_holds_everything_up(alone: Consume) -> None:
    """While records that take ten times as long are worked off, all others stand still."""
    dear = {"costs": TrueCosts(dear=(Dear(10.0, (3,)),)), "zipf": 0.0, "partitions": 4}
    ran = alone("java", arrive=60.0, per_s=85.0, behind_s=30.0, seconds=200.0, **dear)
    longest = max(ran.turns(), key=lambda turn: turn[2] - turn[1])
    _, first, last, records = longest
    others = np.delete(ran.read, longest[0], axis=1)[first + 1 : last - 1]
    assert (last - first) * STEP_S == pytest.approx(records * 10 / 85, rel=0.02)
    assert not others.any()

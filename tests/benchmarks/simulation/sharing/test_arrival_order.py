"""librdkafka: in the order of arrival, as long as its queue has room."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.costs import Dear, TrueCosts
from benchmarks.simulation.sharing.arrival_order import QUEUE_BYTES
from benchmarks.simulation.sharing.chunks import CHUNK_BYTES

Consume = Callable[..., Any]
CLIENT = "confluent-kafka"


@pytest.mark.long
def test_all_partitions_are_read_up_to_the_same_moment(alone: Consume) -> None:
    """What arrived first is read first: every partition gets the same share of its arrivals."""
    ran = alone(CLIENT, seconds=600.0)
    arrived, read = np.cumsum(ran.arrived, axis=0), ran.read.sum(axis=0)
    moment = int(np.searchsorted(arrived[:, 0], read[0] - 1e-3))
    assert (arrived[moment - 2] <= read + 1e-3).all()
    assert (read - 1e-3 <= arrived[moment + 1]).all()
    assert ran.shares(0.0) == pytest.approx([85 / 200] * 12, abs=0.03)


@pytest.mark.long
def test_dear_records_slow_everything_down_alike(alone: Consume) -> None:
    """Whatever the records of a partition cost, it gets its share of records; so do the others."""
    dear = TrueCosts(dear=(Dear(10.0, (3,)),))
    shares = alone(CLIENT, zipf=0.0, seconds=600.0, costs=dear).shares()
    assert shares == pytest.approx([shares.mean()] * 12, abs=0.03)


def test_a_start_is_in_chunks(alone: Consume) -> None:
    """What is there at the start is read partition by partition; then all are read at once."""
    ran = alone(CLIENT, behind_s=31.0, per_s=112.0, record_bytes=123.0)
    read_of = (ran.read > 0).sum(axis=1)
    started = round(6200 / 112 / 0.25)
    assert np.median(read_of[: started - 8]) == 1
    assert np.median(read_of[started + 8 :]) > 4


def test_a_full_queue_gives_turns_of_full_chunks(alone: Consume) -> None:
    """Once 64 MiB wait, a partition is fetched when there is room: 104 records of 10 kB a turn."""
    size = 10_080.0
    ran = alone(CLIENT, record_bytes=size, seconds=600.0)
    room = QUEUE_BYTES / size
    full = np.flatnonzero(ran.waiting.sum(axis=1) > 1.5 * room)[0]
    late = [turn for turn in ran.turns() if turn[1] > full + room / 85 / 0.25]
    turns = np.array([records for _, first, last, records in late[:-1] if last - first > 2])
    assert turns.size > 50
    assert np.median(turns) == pytest.approx(CHUNK_BYTES // size, rel=0.03)

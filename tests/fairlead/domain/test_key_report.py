"""Reports on keys, partitioners and the effect of more partitions, from logs with known keys."""

from collections import Counter
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from assignors.partitioner import partition_of
from fairlead.domain.key_report import Readers, consumers_under, key_report
from fairlead.domain.key_shares import KeyShares
from fairlead.domain.record_sample import CELLS, LogWindow, RecordSample, plan_runs

Log = list[list[bytes | None]]


def by_murmur2(key: bytes, count: int) -> int:
    return partition_of(key, count)


def by_crc32(key: bytes, count: int) -> int:
    return crc32(key) % count


def by_chance(key: bytes, count: int) -> int:
    return sum(key) % count


def logs(keys: list[bytes | None], count: int, place: object = by_murmur2) -> Log:
    """Return each partition's keys; if key number n is null, it goes to partition n % `count`."""
    partitions: Log = [[] for _ in range(count)]
    for number, key in enumerate(keys):
        partitions[number % count if key is None else place(key, count)].append(key)  # type: ignore[operator]
    return partitions


def read(log: Log, records: int, runs: int = 2_400, seed: int = 0) -> RecordSample:
    """Return a sample of the records in logs without gaps."""
    window = LogWindow("t", np.zeros(len(log), np.int64), np.array([len(each) for each in log]), 60)
    planned = plan_runs(window, records, runs, seed=seed)
    cells: Counter[tuple[int, bytes | None]] = Counter()
    spans = zip(planned.begin.ravel().tolist(), planned.stop.ravel().tolist(), strict=True)
    for run, (begin, stop) in enumerate(spans):
        cells.update((run, key) for key in log[run % len(log)][begin:stop])
    columns = zip(*((run, key, count) for (run, key), count in cells.items()), strict=True)
    table = pa.table([pa.array(each) for each in columns], names=CELLS.names).cast(CELLS)
    return RecordSample(window, planned, table, 0, 0.0)


def drawn(number: int, exponent: float, giant: float = 0.0) -> list[bytes | None]:
    """Return random keys that follow Zipf's law; `giant` is added to the first key's share."""
    random = np.random.default_rng(3)
    weights = 1 / np.arange(1, 5_001) ** exponent
    weights *= (1 - giant) / weights.sum()
    weights[0] += giant
    return [b"key-%d" % key for key in random.choice(5_000, number, p=weights / weights.sum())]


@pytest.mark.parametrize("exponent", [0.8, 1.1])
def test_intervals_contain_nine_of_ten_true_shares(exponent: float) -> None:
    """At least 85 % of the intervals for the ten heaviest keys contain the key's true share.

    The intervals are from twelve samples, each of a twentieth of the records.
    """
    keys = drawn(100_000, exponent)
    truth = {key: count / len(keys) for key, count in Counter(keys).most_common(10)}
    log = logs(keys, 6)
    contained = []
    for seed in range(12):
        shares = KeyShares(read(log, 5_000, seed=seed)).heaviest(100)
        contained += [
            key["low"] <= truth[key["key"]] <= key["high"] for key in shares if key["key"] in truth
        ]
    assert len(contained) >= 100
    assert sum(contained) >= 0.85 * len(contained)


def test_interval_is_wider_if_equal_keys_are_adjacent() -> None:
    random = np.random.default_rng(5)
    bursts = random.choice([b"a", b"b", b"c"], 400)
    keys: list[bytes | None] = [bytes(key) for key in np.repeat(bursts, 100)]
    sample = read(logs(keys, 1), 4_000, runs=40)
    (first, *_) = KeyShares(sample).heaviest(1)
    assert first["high"] - first["low"] > 0.15
    apart: list[bytes | None] = [bytes(key) for key in random.permutation(np.array(keys))]
    (first, *_) = KeyShares(read(logs(apart, 1), 4_000, runs=40)).heaviest(1)
    assert first["high"] - first["low"] < 0.05


def test_complete_sample_is_exact() -> None:
    """If all records are sampled, shares and loads are exact and intervals are points."""
    keys = drawn(2_000, 1.0)
    shares = KeyShares(read(logs(keys, 3), 5_000))
    (first, *_) = shares.heaviest(1)
    assert first["low"] == first["high"] == Counter(keys).most_common(1)[0][1] / 2_000
    real = [len(each) for each in logs(keys, 7)]
    assert shares.load_of(7, np.ones(3)).tolist() == pytest.approx(real)


@pytest.mark.parametrize(
    ("place", "count", "name"),
    [
        (by_murmur2, 6, "murmur2"),
        (by_crc32, 6, "crc32"),
        (by_chance, 6, "unknown"),
        (by_murmur2, 1, "assumed"),
    ],
)
def test_partitioner_is_recognised(place: object, count: int, name: str) -> None:
    """The partitions of keys reveal the partitioner; with one partition, murmur2 is assumed."""
    shares = KeyShares(read(logs(drawn(20_000, 0.8), count, place), 5_000))
    assert shares.placement[0] == name
    assert len(key_report(shares)["scenarios"]) == (1 if name == "unknown" else 2)


@pytest.mark.parametrize(("place", "count"), [(by_murmur2, 12), (by_crc32, 12), (by_murmur2, 9)])
def test_load_of_more_partitions(place: object, count: int) -> None:
    """From a fifth of the records, loads of more partitions are estimated within 6 %."""
    keys = drawn(100_000, 0.8) + [None] * 9_000
    shares = KeyShares(read(logs(keys, 6, place), 20_000))
    real = np.array([len(each) for each in logs(keys, count, place)])
    assert np.abs(shares.load_of(count, np.ones(6)) / real - 1).max() < 0.06


def test_verdicts() -> None:
    """The verdict names a giant key, missing keys, or a number of partitions that would help."""
    sample = read(logs(drawn(40_000, 0.0, giant=0.31), 6), 10_000)
    giant = key_report(KeyShares(sample), show_keys=True)
    assert "One key has 3" in giant["verdict"]
    assert "more partitions cannot help" in giant["verdict"]
    assert giant["keys"][0]["key"] == "key-0"
    assert giant["keys"][0]["partitions"] == [partition_of(b"key-0", 6)]
    none = key_report(KeyShares(read(logs([None] * 6_000, 6), 2_000)))
    assert none["verdict"].startswith("The records have no keys")
    skewed = key_report(KeyShares(read(logs(drawn(40_000, 0.8), 6), 10_000)))
    assert skewed["verdict"].startswith("12 partitions instead of 6: the largest gets")


def readers(
    count: int, capacity: float, partitions: int, others: tuple[float, ...] = ()
) -> Readers:
    """Return consumers without lag that read a topic with this many partitions."""
    none = np.zeros(partitions + len(others))
    return Readers(
        capacities=np.full(count, capacity),
        costs=np.ones(partitions),
        seconds=None,
        arrivals=np.append(np.zeros(partitions), others),
        backlog=none,
        behind_s=none,
        target=0.8,
        horizon_s=1800.0,
    )


def test_smallest_number_of_partitions_that_consumers_can_take() -> None:
    """The report recommends four partitions instead of two, with a forecast for either number."""
    keys = drawn(60_000, 0.3)
    shares = KeyShares(read(logs(keys, 2), 30_000))
    report = key_report(shares, readers=readers(4, 400.0, 2))
    now, then = report["scenarios"]
    assert then["partitions"] == 4
    assert now["today"]["time_lag_s"] > 300
    assert then["today"] == {
        "count": 4,
        "utilisation": pytest.approx(0.63, abs=0.05),
        "time_lag_s": 0.0,
    }
    assert then["wanted"]["count"] >= 4


def test_key_that_no_consumer_can_take() -> None:
    shares = KeyShares(read(logs(drawn(60_000, 0.0, giant=0.2), 2), 30_000))
    verdict = key_report(shares, readers=readers(9, 150.0, 2))["verdict"]
    assert "more partitions cannot help" in verdict


def test_share_of_time_is_by_reported_seconds() -> None:
    log: Log = [[b"quick"] * 900, [b"slow"] * 100]
    shares = KeyShares(read(log, 2_000), np.array([0.001, 0.009]))
    assert [(key["share"], key["time_share"]) for key in shares.heaviest(2)] == [
        (pytest.approx(0.9), pytest.approx(0.5)),
        (pytest.approx(0.1), pytest.approx(0.5)),
    ]


def test_other_topics_take_part_of_the_consumers() -> None:
    """The forecast includes the load that the group's other topics put on the consumers."""
    loads = np.array([60.0, 60.0])
    for others, utilisation in (((), 0.6), ((50.0, 50.0), 1.1)):
        busy = readers(2, 100.0, 2, others)
        forecast = consumers_under(loads, busy, busy.capacities)
        assert forecast["utilisation"] == pytest.approx(utilisation)


def test_runs_are_proportional_to_partitions() -> None:
    """More records are sampled from larger partitions, and no record is sampled twice."""
    window = LogWindow("t", np.zeros(3, np.int64), np.array([1000, 3000, 0]), 60.0)
    runs = plan_runs(window, 400, 100)
    taken = (runs.stop - runs.begin).sum(axis=0)
    assert taken == pytest.approx([100, 300, 0], abs=50)
    for partition in (0, 1):
        order = np.argsort(runs.begin[:, partition])
        begin, stop = runs.begin[order, partition], runs.stop[order, partition]
        assert (begin[1:] >= stop[:-1]).all()

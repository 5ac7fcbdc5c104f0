"""Shares of keys and loads of partitions, estimated from a sample of records.

Belongs here: shares with intervals, the producers' partitioner, and the load of N partitions. Does
not: sampling (`record_sample`), consumers (`key_report`). Pure.
"""

from functools import cached_property
from math import gcd, log
from typing import Any, Final, Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from assignors.partitioner import murmur2
from fairlead.domain.record_sample import Float64, Int64, RecordSample

Partitioner = Literal["murmur2", "crc32", "assumed", "unknown"]

#: Half the width of a 90 % interval, in standard deviations.
_Z: Final = 1.645
#: Minimum share of the sampled keys that a partitioner must place where they are.
_PLACED: Final = 0.95
#: Maximum probability that keys are where another partitioner would place them.
_CHANCE: Final = 0.01
#: Keys that occur more often are as frequent as they are in the sample.
_RARE: Final = 5
#: Minimum number of keys of a frequency that shows how many are one rarer.
_ENOUGH: Final = 20
_POSITIVE: Final = 0x7FFFFFFF


class KeyShares:
    """Estimates from a sample of a topic with P partitions, in R runs, with K different keys.

    Parameters
    ----------
    sample
        What was read.
    seconds
        Reported seconds per record in each partition, shape (P,); None: not all are known.

    Attributes
    ----------
    keys
        The different keys.
    read, records
        Records of each partition that were read, and that are in the window, shape (P,): compaction
        and transactions leave gaps between offsets.
    """

    def __init__(self, sample: RecordSample, seconds: Float64 | None = None) -> None:
        self.sample, self.seconds = sample, seconds
        spans, runs = sample.window.spans, sample.runs
        self.partitions = spans.size
        encoded = sample.cells["key"].combine_chunks().dictionary_encode()
        self.keys: list[bytes] = encoded.dictionary.to_pylist()
        # Of each cell: its key, K if it has none, its run, and how often the key occurs.
        self._key: Int64 = pc.fill_null(encoded.indices, len(self.keys)).to_numpy().astype(np.int64)
        self._run, self._count = (sample.cells[name].to_numpy() for name in ("run", "count"))
        self._in_run = _sums(self._run, self._count, runs.turn.size)
        self.read = _sums(runs.partition, self._in_run, self.partitions)
        offsets = _sums(runs.partition, runs.stop - runs.begin, self.partitions)
        self._covered: Float64 = np.minimum(offsets / np.maximum(spans, 1), 1.0)
        density = self.read.sum() / max(float(offsets.sum()), 1.0)  # of partitions without a run
        known = self._covered > 0
        self.records: Float64 = np.where(
            known, self.read / np.where(known, self._covered, 1.0), density * spans
        )
        #: Records of the window for each sampled record.
        self._scale: Float64 = self.records / np.maximum(self.read, 1.0)
        # Key, partition and number of sampled records, once for each key and partition.
        pairs, back = np.unique(
            self._key * self.partitions + runs.partition[self._run], return_inverse=True
        )
        self._pairs = divmod(pairs, self.partitions)
        self._seen = _sums(back, self._count, pairs.size)
        self._hashed: dict[str, Int64] = {}

    def _shares(self, worth: Float64) -> Float64:
        """Return each key's share of records that are worth so much in each partition, (K + 1,)."""
        key, partition = self._pairs
        total = max(float((self.records * worth).sum()), 1e-12)
        weights = self._seen * (self._scale * worth)[partition]
        shares: Float64 = _sums(key, weights, len(self.keys) + 1) / total
        return shares

    @property
    def without_key(self) -> float:
        """Share of records without a key."""
        return float(self._shares(np.ones(self.partitions))[-1])

    def heaviest(self, count: int, partition: int | None = None) -> list[dict[str, Any]]:
        """Return the keys with most records of the topic, or of one of its partitions.

        Returns
        -------
        key: its bytes; share, low, high: of the window's records, with a 90 % interval; time_share:
        of the consumers' time, None if not reported; partitions: those that have the key.
        """
        shares = self._shares(np.ones(self.partitions))[:-1]
        ranked = shares
        if partition is not None:
            ranked = self._shares((np.arange(self.partitions) == partition).astype(float))[:-1]
        times = None if self.seconds is None else self._shares(self.seconds)
        return [
            {
                "key": self.keys[key],
                "share": float(shares[key]),
                **_interval(float(shares[key]), self._variance(key)),
                "time_share": None if times is None else float(times[key]),
                "partitions": self._pairs[1][self._pairs[0] == key].tolist(),
            }
            for key in np.argsort(-ranked, kind="stable")[:count].tolist()
            if ranked[key] > 0
        ]

    def _variance(self, key: int) -> float:
        """Return the variance of a key's share: that between runs, or of single records if larger.

        Runs are the clusters of a ratio estimate: neighbouring records often have the same key.
        """
        mine, partition = self._key == key, self.sample.runs.partition
        hits = _sums(self._run[mine], self._count[mine], self._in_run.size)
        share = _sums(partition, hits, self.partitions) / np.maximum(self.read, 1.0)
        apart = (hits - share[partition] * self._in_run) ** 2
        number = np.bincount(partition, minlength=self.partitions)
        between = _sums(partition, apart, self.partitions) * number / np.maximum(number - 1, 1)
        within = self.read * share * (1 - share)
        of_each = (1 - self._covered) * np.maximum(between, within) / np.maximum(self.read, 1) ** 2
        return float(((self.records / self.records.sum()) ** 2 * of_each).sum())

    @cached_property
    def placement(self) -> tuple[Partitioner, float]:
        """The producers' partitioner, and the share of sampled keys that it places where they are.

        With one partition, or few keys, nothing can be seen: then Java's is assumed.
        """
        key, partition = self._pairs
        known = key < len(self.keys)
        key, partition = key[known], partition[known]
        least = log(1 / _CHANCE) / log(self.partitions) if self.partitions > 1 else np.inf
        found = [
            (float((self._hashes(name)[key] % self.partitions == partition).mean()), name)
            for name in ("murmur2", "crc32")
            if key.size
        ]
        share, name = max(found, default=(1.0, "murmur2"))
        if share < _PLACED:
            return "unknown", share
        return ("assumed" if key.size * share < least else name), share  # type: ignore[return-value]

    def _hashes(self, partitioner: str) -> Int64:
        if partitioner not in self._hashed:
            hashed = crc32 if partitioner == "crc32" else lambda key: murmur2(key) & _POSITIVE
            self._hashed[partitioner] = np.array([hashed(key) for key in self.keys], np.int64)
        return self._hashed[partitioner]

    def load_of(self, count: int, worth: Float64) -> Float64:
        """Return the records of the window, each worth so much, in each of N partitions.

        Sampled keys are placed by their hash. Keys that the sample missed (Good and Turing's
        estimate) are spread evenly over the partitions that can have them, and records without a
        key over all partitions.

        Parameters
        ----------
        count
            N.
        worth
            Weight of a record of each partition, shape (P,).

        Returns
        -------
        Shape (N,).
        """
        (key, partition), seen = self._pairs, self._seen
        name = "crc32" if self.placement[0] == "crc32" else "murmur2"
        keyed = key < len(self.keys)
        if name == "crc32" and b"" in self.keys:  # librdkafka spreads empty keys, too
            keyed &= key != self.keys.index(b"")
        scale = self._scale * worth
        mass = np.where(keyed, self._discounted(seen, partition), seen) * scale[partition]
        placed = _sums(self._hashes(name)[key[keyed]] % count, mass[keyed], count)
        # Missed keys of a partition can go to the partitions congruent to it modulo `common`.
        unseen = self.read * scale - _sums(partition, mass, self.partitions)
        unseen += np.where(self.read > 0, 0.0, self.records * worth)
        common = gcd(self.partitions, count)
        of_class = _sums(np.arange(self.partitions) % common, unseen, common)
        spread = float(mass[~keyed].sum())
        load: Float64 = placed + (of_class[np.arange(count) % common] * common + spread) / count
        return load

    def _discounted(self, seen: Float64, partition: Int64) -> Float64:
        """Return the expected counts of keys in a sample, from their counts in this one."""
        size = self.partitions * (_RARE + 2)
        rare = seen <= _RARE + 1
        cell = partition * (_RARE + 2) + np.where(rare, seen, 0).astype(np.int64)
        number = np.bincount(cell[rare], minlength=size).astype(np.float64)
        many = np.append(number[1:], 0.0)
        times = np.arange(size) % (_RARE + 2)
        estimate = np.minimum((times + 1) * many / np.maximum(number, 1.0), times)
        known = (times <= _RARE) & ((number >= _ENOUGH) | (times == 1))
        turing = np.where(known, estimate, times)[cell]
        missed = 1 - self._covered[partition]
        expected: Float64 = np.where(seen <= _RARE, seen - missed * (seen - turing), seen)
        return expected


def _sums(index: Int64, values: npt.NDArray[Any], size: int) -> Float64:
    return np.bincount(index, values, size).astype(np.float64)


def _interval(share: float, variance: float) -> dict[str, float]:
    """Return Wilson's 90 % interval of a share with this variance.

    Examples
    --------
    >>> {end: round(value, 3) for end, value in _interval(0.3, 0.3 * 0.7 / 1000).items()}
    {'low': 0.277, 'high': 0.324}
    """
    if variance <= 0:  # every record was read
        return {"low": share, "high": share}
    size = share * (1 - share) / variance
    middle = (share + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    half = _Z / (1 + _Z**2 / size) * float(np.sqrt(variance + _Z**2 / (4 * size**2)))
    return {"low": max(middle - half, 0.0), "high": min(middle + half, 1.0)}

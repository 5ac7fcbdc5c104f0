"""Which keys make partitions hot, and what more partitions would change, from a sample.

Belongs here: shares with intervals, the producers' partitioner, and the load of N partitions. Does
not: sampling (`record_sample`), consumers (`key_report`). Pure.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class HeavyKey:
    """A key with many records.

    Parameters
    ----------
    key
        Its bytes.
    share, low, high
        Share of the window's records, with a 90 % interval.
    time_share
        Share of the consumers' time; None: not reported.
    partitions
        Where its records are.
    """

    key: bytes
    share: float
    low: float
    high: float
    time_share: float | None
    partitions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class KeyShares:
    """Estimates from a sample of a topic with P partitions, in R runs, with K different keys.

    Parameters
    ----------
    sample
        What was read.
    seconds
        Reported seconds per record in each partition, shape (P,); None: not all are known.
    """

    sample: RecordSample
    seconds: Float64 | None = None

    @property
    def partitions(self) -> int:
        """P."""
        return len(self.sample.window.spans)

    @cached_property
    def keys(self) -> list[bytes]:
        """The different keys, K of them."""
        found: list[bytes] = self._encoded.dictionary.to_pylist()
        return found

    @cached_property
    def _encoded(self) -> Any:
        return self.sample.cells["key"].combine_chunks().dictionary_encode()

    @cached_property
    def _key(self) -> Int64:
        """Index of each cell's key; K: it has none."""
        return pc.fill_null(self._encoded.indices, len(self.keys)).to_numpy().astype(np.int64)

    @cached_property
    def _run(self) -> Int64:
        return self.sample.cells["run"].to_numpy()

    @cached_property
    def _count(self) -> Int64:
        return self.sample.cells["count"].to_numpy()

    @cached_property
    def _in_run(self) -> Float64:
        """Records read in each run, shape (R,)."""
        return np.bincount(self._run, self._count, len(self.sample.runs.partition))

    def _by_partition(self, of_runs: npt.NDArray[Any]) -> Float64:
        return np.bincount(self.sample.runs.partition, of_runs, self.partitions)

    @cached_property
    def read(self) -> Float64:
        """Records read of each partition, shape (P,)."""
        return self._by_partition(self._in_run)

    @cached_property
    def _covered(self) -> Float64:
        """Share of each partition's offsets that was read, shape (P,)."""
        offsets = self._by_partition(self.sample.runs.stop - self.sample.runs.begin)
        return np.minimum(offsets / np.maximum(self.sample.window.spans, 1), 1.0)

    @cached_property
    def records(self) -> Float64:
        """Records in the window of each partition, shape (P,): compaction leaves gaps in offsets."""
        spans = self.sample.window.spans
        overall = self.read.sum() / max(float((self._covered * spans).sum()), 1.0)
        seen = np.where(self._covered > 0, self._covered, 1.0)
        return np.where(self._covered > 0, self.read / seen, overall * spans)

    @cached_property
    def _scale(self) -> Float64:
        """How many records each sampled one stands for, shape (P,)."""
        return self.records / np.maximum(self.read, 1.0)

    @cached_property
    def _pairs(self) -> tuple[Int64, Int64, Float64]:
        """Key, partition and number of sampled records, once for each key and partition."""
        place = self._key * self.partitions + self.sample.runs.partition[self._run]
        pairs, back = np.unique(place, return_inverse=True)
        return pairs // self.partitions, pairs % self.partitions, np.bincount(back, self._count)

    def _shares(self, worth: Float64) -> Float64:
        """Return each key's share of records that are worth so much in each partition, (K + 1,)."""
        key, partition, count = self._pairs
        total = max(float((self.records * worth).sum()), 1e-12)
        weights = count * (self._scale * worth)[partition]
        return np.bincount(key, weights, len(self.keys) + 1) / total

    @property
    def without_key(self) -> float:
        """Share of records without a key."""
        return float(self._shares(np.ones(self.partitions))[-1])

    def heaviest(self, count: int, partition: int | None = None) -> list[HeavyKey]:
        """Return the keys with most records of the topic, or of one of its partitions."""
        shares = self._shares(np.ones(self.partitions))[:-1]
        ranked = shares
        if partition is not None:
            ranked = self._shares((np.arange(self.partitions) == partition).astype(float))[:-1]
        times = None if self.seconds is None else self._shares(self.seconds)
        found = np.argsort(-ranked, kind="stable")[:count]
        return [
            self._heavy(int(key), float(shares[key]), None if times is None else float(times[key]))
            for key in found
            if ranked[key] > 0
        ]

    def _heavy(self, key: int, share: float, time_share: float | None) -> HeavyKey:
        keys, partitions, _ = self._pairs
        low, high = _interval(share, self._variance(key))
        where = tuple(partitions[keys == key].tolist())
        return HeavyKey(self.keys[key], share, low, high, time_share, where)

    def _variance(self, key: int) -> float:
        """Return the variance of a key's share: that between runs, or of single records if larger.

        Records that are written together often have the same key, so that a run of them tells less
        than as many records from anywhere. Runs are drawn as clusters of a ratio estimate.
        """
        mine = self._key == key
        hits = np.bincount(self._run[mine], self._count[mine], len(self._in_run))
        share = self._by_partition(hits) / np.maximum(self.read, 1.0)
        apart = (hits - share[self.sample.runs.partition] * self._in_run) ** 2
        number = self._by_partition(np.ones_like(self._in_run))
        between = self._by_partition(apart) * number / np.maximum(number - 1, 1)
        within = self.read * share * (1 - share)
        of_each = (1 - self._covered) * np.maximum(between, within) / np.maximum(self.read, 1) ** 2
        return float(((self.records / self.records.sum()) ** 2 * of_each).sum())

    @cached_property
    def placement(self) -> tuple[Partitioner, float]:
        """The producers' partitioner, and the share of sampled keys that it places where they are.

        With one partition, or few keys, nothing can be seen: then Java's is assumed.
        """
        key, partition, _ = self._pairs
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
        hashed = crc32 if partitioner == "crc32" else lambda key: murmur2(key) & _POSITIVE
        return np.array([hashed(key) for key in self.keys], dtype=np.int64)

    def load_of(self, count: int, worth: Float64 | None = None) -> Float64:
        """Return the records of the window, each worth so much, in each of N partitions.

        Sampled keys are placed by their hash. A key that was seen once or twice stands for others
        like it, by Good and Turing's estimate of what was not seen; these are spread evenly over
        the partitions that can have them. Records without a key are spread evenly over all.

        Parameters
        ----------
        count
            N.
        worth
            Weight of a record of each partition, shape (P,); None: 1.

        Returns
        -------
        Shape (N,).
        """
        key, partition, seen = self._pairs
        name = "crc32" if self.placement[0] == "crc32" else "murmur2"
        keyed = key < len(self.keys)
        if name == "crc32" and b"" in self.keys:  # librdkafka spreads empty keys, too
            keyed &= key != self.keys.index(b"")
        worth = np.ones(self.partitions) if worth is None else worth
        scale = self._scale * worth
        mass = np.where(keyed, self._discounted(seen, partition), seen) * scale[partition]
        placed = np.bincount(self._hashes(name)[key[keyed]] % count, mass[keyed], count)
        # A partition's other keys go where its number and their hash agree.
        unseen = self.read * scale - np.bincount(partition, mass, self.partitions)
        unseen += np.where(self.read > 0, 0.0, self.records * worth)
        common = gcd(self.partitions, count)
        of_class = np.bincount(np.arange(self.partitions) % common, unseen, common)
        spread = float(mass[~keyed].sum())
        return placed + of_class[np.arange(count) % common] * common / count + spread / count

    def _discounted(self, seen: Float64, partition: Int64) -> Float64:
        """Return how often keys would be seen on average that were seen so often, shape as `seen`."""
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
        return np.where(seen <= _RARE, seen - missed * (seen - turing), seen)


def _interval(share: float, variance: float) -> tuple[float, float]:
    """Return Wilson's 90 % interval of a share with this variance.

    Examples
    --------
    >>> [round(end, 3) for end in _interval(0.3, 0.3 * 0.7 / 1000)]
    [0.277, 0.324]
    """
    if variance <= 0:  # every record was read
        return share, share
    size = share * (1 - share) / variance
    middle = (share + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    half = _Z / (1 + _Z**2 / size) * float(np.sqrt(variance + _Z**2 / (4 * size**2)))
    return max(middle - half, 0.0), min(middle + half, 1.0)

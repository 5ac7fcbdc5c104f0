"""Shares of keys and loads of partitions, estimated from a sample of records.

Belongs here: shares of keys with 90 % intervals, the producers' partitioner, and the loads if the
topic had another number of partitions. Belongs elsewhere: sampling (`record_sample`), and the
effect on consumers (`key_report`).
"""

from functools import cached_property
from math import gcd
from typing import Any, Final, Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from assignors.partitioner import murmur2
from fairlead.domain.record_sample import Float64, Int64, RecordSample

Partitioner = Literal["murmur2", "crc32", "assumed", "unknown"]

#: A 90 % interval extends this many standard deviations to either side.
_Z: Final = 1.645
#: Producers are assumed to use a partitioner if it places at least this share of the sampled keys
#: in the partitions in which they were found.
_PLACED: Final = 0.95
#: A key is rare if it occurs at most this often in the sample (see `load_of`).
_RARE: Final = 5


class KeyShares:
    """Estimates from a sample of a topic with P partitions and K different keys.

    Parameters
    ----------
    sample
        The records that were read.
    seconds
        Reported seconds per record of each partition, shape (P,); None if at least one is unknown.

    Attributes
    ----------
    keys
        The different keys in the sample.
    read, records
        `read`: number of records of each partition in the sample. `records`: estimated number in
        the sampled part of the log, which is below the number of offsets, because compaction and
        transactions leave offsets without a record. Both are of shape (P,).
    offsets_per_record
        Number of offsets for each record, at least 1, shape (P,). Needed because the rates of
        consumers count offsets.
    """

    def __init__(self, sample: RecordSample, seconds: Float64 | None = None) -> None:
        self.sample, self.seconds = sample, seconds
        spans, lengths = sample.window.spans, sample.runs.stop - sample.runs.begin
        self.partitions = spans.size
        encoded = sample.cells["key"].combine_chunks().dictionary_encode()
        self.keys: list[bytes] = encoded.dictionary.to_pylist()
        # Columns of `sample.cells`: the key as an index into `keys` (K: no key), the number of the
        # run (a range of offsets), and the number of records.
        self._key: Int64 = pc.fill_null(encoded.indices, len(self.keys)).to_numpy().astype(np.int64)
        self._run, self._count = (sample.cells[name].to_numpy() for name in ("run", "count"))
        self._in_run = _sums(self._run, self._count, lengths.size).reshape(lengths.shape)
        self.read: Float64 = self._in_run.sum(axis=0)
        offsets = lengths.sum(axis=0)
        self._covered: Float64 = offsets / np.maximum(spans, 1)
        # If nothing was read from a partition, assume as many records per offset as in the others.
        density = self.read.sum() / offsets.sum()
        known = self.read / np.where(offsets > 0, self._covered, 1.0)
        self.records: Float64 = np.where(offsets > 0, known, density * spans)
        self.offsets_per_record: Float64 = np.maximum(spans / np.maximum(self.records, 1.0), 1.0)
        #: Each sampled record represents this many records of the partition.
        self._scale: Float64 = self.records / np.maximum(self.read, 1.0)
        # All different pairs of a key and a partition, with their numbers of sampled records.
        pairs, back = np.unique(
            self._key * self.partitions + self._run % self.partitions, return_inverse=True
        )
        self._pairs = divmod(pairs, self.partitions)
        self._seen = _sums(back, self._count, pairs.size)

    def _shares(self, worth: Float64) -> Float64:
        """Return each key's share of the total weight, (K + 1,).

        The last value is the share of records without a key. `worth` is the weight of one record in
        each partition, (P,).
        """
        key, partition = self._pairs
        weights = self._seen * (self._scale * worth)[partition]
        shares: Float64 = _sums(key, weights, len(self.keys) + 1) / max(weights.sum(), 1e-12)
        return shares

    @property
    def without_key(self) -> float:
        """Share of records without a key."""
        return float(self._shares(np.ones(self.partitions))[-1])

    def heaviest(self, count: int, partition: int | None = None) -> list[dict[str, Any]]:
        """Return the keys with the most records in the topic, or in one of its partitions.

        Returns
        -------
        Rows with `key`: the key's bytes; `share`, `low`, `high`: the key's share of the topic's
        records, with a 90 % interval; `time_share`: the key's share of the consumers' processing
        time, None if unknown; `partitions`: the partitions in which the key occurs.
        """
        every = np.ones(self.partitions)
        shares = self._shares(every)
        ranked = self._shares(every if partition is None else np.eye(1, every.size, partition)[0])
        times = None if self.seconds is None else self._shares(self.seconds)
        rows = []
        for key in np.argsort(-ranked[:-1], kind="stable")[:count].tolist():
            if ranked[key] == 0:
                break
            share, half = float(shares[key]), _Z * self._variance(key) ** 0.5
            rows.append(
                {
                    "key": self.keys[key],
                    "share": share,
                    "low": max(share - half, 0.0),
                    "high": min(share + half, 1.0),
                    "time_share": None if times is None else float(times[key]),
                    "partitions": self._pairs[1][self._pairs[0] == key].tolist(),
                }
            )
        return rows

    def _variance(self, key: int) -> float:
        """Return the variance of a key's share: the larger of its estimates from runs and records.

        Neighbouring records often have the same key, so the records of a run (consecutive offsets)
        are not independent. Therefore each run is treated as a cluster, as in a ratio estimate.
        """
        mine, read = self._key == key, np.maximum(self.read, 1.0)
        hits = _sums(self._run[mine], self._count[mine], self._in_run.size)
        hits = hits.reshape(self._in_run.shape)
        share = hits.sum(axis=0) / read
        runs = np.count_nonzero(self.sample.runs.stop > self.sample.runs.begin, axis=0)
        between = ((hits - share * self._in_run) ** 2).sum(axis=0) * runs / np.maximum(runs - 1, 1)
        within = self.read * share * (1 - share)
        of_each = (1 - self._covered) * np.maximum(between, within) / read**2
        return float(((self.records / self.records.sum()) ** 2 * of_each).sum())

    @cached_property
    def placement(self) -> tuple[Partitioner, float]:
        """The producers' partitioner, and the share of sampled keys that it places correctly.

        "assumed": murmur2 and CRC32 both fit, as with a single partition; estimates use murmur2.
        "unknown": neither fits.
        """
        key, partition = self._pairs
        placed: dict[Partitioner, float] = {}
        for name, hashes in self._hashes.items():
            hashed = hashes[key]
            right = (hashed % self.partitions == partition)[hashed >= 0]
            placed[name] = float(right.mean()) if right.size else 1.0
        name = max(placed, key=placed.__getitem__)  # the first, if both are equal
        if placed[name] < _PLACED:
            return "unknown", placed[name]
        return ("assumed" if min(placed.values()) >= _PLACED else name), placed[name]

    @cached_property
    def _hashes(self) -> dict[Partitioner, Int64]:
        """Maps each partitioner to its hashes of all keys, (K + 1,); -1: no fixed partition."""
        java = [murmur2(key) & 0x7FFFFFFF for key in self.keys]
        librdkafka = [crc32(key) if key else -1 for key in self.keys]
        return {"murmur2": np.array([*java, -1]), "crc32": np.array([*librdkafka, -1])}

    def load_of(self, count: int, worth: Float64) -> Float64:
        """Estimate the load of each partition if the topic had N partitions.

        The partitioner gives each sampled key its new partition. The sample misses some keys, so
        rare keys in the sample have too large shares. By Good and Turing's estimate, a key that
        occurs r times would occur (r + 1) n(r + 1) / n(r) times in another sample, if n(r) keys
        occur r times. The surplus records of rare keys, and records without a key, are spread
        evenly over the partitions to which keys of their present partition can go.

        Parameters
        ----------
        count
            N, the number of partitions.
        worth
            Weight of one record in each present partition, shape (P,).

        Returns
        -------
        Sum of the weights of all records in each of the N partitions, shape (N,).
        """
        key, partition = self._pairs
        hashed = self._hashes["crc32" if self.placement[0] == "crc32" else "murmur2"][key]
        weights = self._seen * (self._scale * worth)[partition]
        seen = np.minimum(self._seen, _RARE + 2).astype(np.int64)
        number, times = np.bincount(seen, minlength=_RARE + 3), np.arange(1, _RARE + 1)
        expected = (times + 1) * number[2:-1] / np.maximum(number[1:-2], 1)
        rest = np.zeros(_RARE + 3)
        rest[times] = 1 - np.minimum(expected / times, 1)
        missed = rest[seen] * (1 - self._covered[partition])
        spread = weights * np.where(hashed < 0, 1.0, missed)
        common = gcd(self.partitions, count)  # a key's partition, modulo `common`, stays the same
        of_class = _sums(partition % common, spread, common) * common / count
        load = _sums(hashed % count, weights - spread, count)
        load += of_class[np.arange(count) % common]
        load *= (self.records * worth).sum() / load.sum()  # include partitions without samples
        return load


def _sums(index: Int64, values: npt.NDArray[Any], size: int) -> Float64:
    return np.bincount(index, values, size).astype(np.float64)

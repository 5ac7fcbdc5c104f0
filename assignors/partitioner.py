"""The Java producer's default partitioner: which partition a record's key lands on.

Belongs here: murmur2 as Kafka writes it, for many keys at once, and the rules around it. Does not:
consumers; this is the other end of the topic, used to predict how keys spread over N partitions.
"""

from collections.abc import Sequence

import numpy as np

from assignors.problem import Int32

_SEED = np.uint32(0x9747B28C)
_MULTIPLIER = np.uint32(0x5BD1E995)
_ROTATION = np.uint32(24)
_POSITIVE = 0x7FFFFFFF
_WORD = 4


def murmur2(keys: Sequence[bytes]) -> Int32:
    """Hash keys as `org.apache.kafka.common.utils.Utils.murmur2` does, bit for bit.

    Parameters
    ----------
    keys
        K serialised keys.

    Returns
    -------
    int32 array of shape (K,).

    Notes
    -----
    Word number w of all keys that have one is mixed in at once; with the keys sorted by length,
    those are a prefix. O(total bytes), one numpy pass a word of the longest key.

    Examples
    --------
    >>> murmur2([b"21", b"foobar", b"a-little-bit-long-string"]).tolist()
    [-973932308, -790332482, -985981536]
    """
    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    longest_first = np.argsort(-lengths, kind="stable")
    data = np.frombuffer(b"".join(keys), dtype=np.uint8).astype(np.uint32)
    starts = (np.cumsum(lengths) - lengths)[longest_first]
    lengths = lengths[longest_first]
    words = lengths // _WORD
    hashed = _SEED ^ lengths.astype(np.uint32)
    for word in range(int(words[0]) if words.size else 0):
        active = int(np.searchsorted(-words, -word, side="left"))
        at = starts[:active] + _WORD * word
        k = _little_endian(data, at, _WORD) * _MULTIPLIER
        k ^= k >> _ROTATION
        hashed[:active] = (hashed[:active] * _MULTIPLIER) ^ (k * _MULTIPLIER)
    _mix_tails(hashed, data, starts, lengths)
    hashed ^= hashed >> np.uint32(13)
    hashed *= _MULTIPLIER
    hashed ^= hashed >> np.uint32(15)
    result = np.empty(len(keys), dtype=np.int32)
    result[longest_first] = hashed.view(np.int32)
    return result


def _little_endian(
    data: np.ndarray[tuple[int], np.dtype[np.uint32]],
    at: np.ndarray[tuple[int], np.dtype[np.int64]],
    width: int,
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    value = data[at].copy()
    for byte in range(1, width):
        value |= data[at + byte] << np.uint32(8 * byte)
    return value


def _mix_tails(
    hashed: np.ndarray[tuple[int], np.dtype[np.uint32]],
    data: np.ndarray[tuple[int], np.dtype[np.uint32]],
    starts: np.ndarray[tuple[int], np.dtype[np.int64]],
    lengths: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> None:
    for left in range(1, _WORD):
        rows = np.flatnonzero(lengths % _WORD == left)
        tail = _little_endian(data, starts[rows] + lengths[rows] - left, left)
        hashed[rows] = (hashed[rows] ^ tail) * _MULTIPLIER


def partitions_of(keys: Sequence[bytes], partitions: int) -> Int32:
    """Return the partition, of `partitions`, that each key's records go to: int32, shape (K,).

    Examples
    --------
    >>> partitions_of([b"orders", b"payments"], 12).tolist()
    [0, 8]
    """
    return ((murmur2(keys) & np.int32(_POSITIVE)) % partitions).astype(np.int32)


class DefaultPartitioner:
    """The default partitioner for one topic, record by record.

    Parameters
    ----------
    counter
        Where the round robin of records without a key starts. Kafka draws it at random.

    Examples
    --------
    >>> partitioner = DefaultPartitioner()
    >>> [partitioner.partition(None, 4, available=[0, 2]) for _ in range(3)]
    [0, 2, 0]
    """

    def __init__(self, counter: int = 0) -> None:
        self._counter = counter

    def partition(
        self,
        key: bytes | None,
        partitions: int,
        *,
        explicit: int | None = None,
        available: Sequence[int] | None = None,
    ) -> int:
        """Return the partition of the next record.

        An explicit partition is used as it is; a key decides by its hash; otherwise partitions
        take turns: those with a leader (`available`), or all where none has one.
        """
        if explicit is not None:
            return explicit
        if key is not None:
            return int(partitions_of([key], partitions)[0])
        turn = self._counter & _POSITIVE
        self._counter += 1
        if available is None or not len(available):
            return turn % partitions
        return available[turn % len(available)]

"""Compute the partition of a record's key, as the Java producer does by default.

Belongs here: Kafka's murmur2, and the choice of the partition by this hash. Belongs elsewhere:
everything about consumers.
"""

from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_UNSIGNED: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF
_WORD: Final = 4


def murmur2(key: bytes) -> int:
    """Hash a serialised key as `org.apache.kafka.common.utils.Utils.murmur2` does, bit for bit.

    Returns
    -------
    int
        An unsigned 32-bit number; Java's is signed.

    Examples
    --------
    >>> murmur2(b"21")
    3321034988
    """
    hashed = _SEED ^ len(key)
    whole = len(key) - len(key) % _WORD
    for at in range(0, whole, _WORD):
        word = int.from_bytes(key[at : at + _WORD], "little") * _MULTIPLIER & _UNSIGNED
        word ^= word >> 24
        hashed = (hashed * _MULTIPLIER ^ word * _MULTIPLIER) & _UNSIGNED
    if whole < len(key):
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _UNSIGNED
    hashed ^= hashed >> 13
    hashed = hashed * _MULTIPLIER & _UNSIGNED
    return hashed ^ hashed >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key in a topic with this number of partitions.

    Examples
    --------
    >>> [partition_of(key, 12) for key in (b"orders", b"payments")]
    [0, 8]
    """
    return (murmur2(key) & _POSITIVE) % partitions

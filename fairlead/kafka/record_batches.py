"""Decode the record keys in a fetch response.

Belongs here: record batches (KIP-98), compressed or not, and which of them a `read_committed`
consumer skips. Does not: fetching (`record_sample`).

kafka-python decodes whole records, which takes 12 µs each, and needs more packages for lz4 and
snappy. Only the key takes 2 µs, and pyarrow has all codecs.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import pyarrow as pa

from fairlead.errors import TopicError

#: Offset of the first record, length, leader epoch, format, checksum, attributes, last offset
#: delta, times of the first and last record, producer's id and epoch, sequence, number of records.
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_LENGTH: Final = struct.Struct(">i")
#: Bytes of a batch that its length does not count.
_BEFORE: Final = 12
_FORMAT: Final = 2
_CODECS: Final = {0: None, 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_CODEC, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20
#: Start of the framed blocks of Java's snappy; librdkafka writes a single block without a frame.
_BLOCKS: Final = b"\x82SNAPPY\x00"
_BLOCKS_HEADER: Final = 16
_MORE, _BITS, _SHIFT = 0x80, 0x7F, 7


class Batch(NamedTuple):
    """The keys of a batch of records.

    Parameters
    ----------
    next_offset
        Offset after the batch.
    size, records
        Stored bytes and records of the whole batch.
    keys
        Keys of the records that a consumer gets; None: a record without a key.
    """

    next_offset: int
    size: int
    records: int
    keys: Sequence[bytes | None]


def batches(
    data: bytes, first: int, stop: int, aborted: Sequence[tuple[int, int]]
) -> Iterator[Batch]:
    """Yield the complete batches of a fetch response.

    Parameters
    ----------
    data
        Bytes of one partition; the last batch may be cut off.
    first, stop
        Range of offsets; records outside are left out.
    aborted
        Producer id and first offset of each aborted transaction among the bytes.

    Raises
    ------
    TopicError
        The format or compression of the records is not supported.
    """
    view, at = memoryview(data), 0
    pending = sorted(aborted, key=lambda each: each[1])
    rolled_back: set[int] = set()
    while at + _HEADER.size <= len(view):
        base, length, _, version, _, flags, delta, *_, producer, _, _, count = _HEADER.unpack_from(
            view, at
        )
        end = at + _BEFORE + length
        if version != _FORMAT:
            raise TopicError("its records have a format from before Kafka 0.11")
        if end > len(view):
            return
        while pending and pending[0][1] <= base + delta:
            rolled_back.add(pending.pop(0)[0])
        payload = view[at + _HEADER.size : end]
        at, keys = end, list[bytes | None]()
        if flags & _CONTROL:  # the end of a transaction
            rolled_back.discard(producer)
        elif not (flags & _TRANSACTIONAL and producer in rolled_back) and base + delta >= first:
            read = _decompressed(payload, flags & _CODEC)
            skipped = max(first - base, 0) if count == delta + 1 else 0  # else compacted
            found = takewhile(lambda each: each[0] < stop, _keys(read, base, count, skipped))
            keys = [key for offset, key in found if offset >= first]
        yield Batch(base + delta + 1, _BEFORE + length, count, keys)


def _keys(data: bytes, base: int, count: int, skipped: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield offset and key of each record of a batch after the first `skipped` ones."""
    at = 0
    for _ in range(skipped):
        length, at = _varint(data, at)
        at += length
    for _ in range(skipped, count):
        length, at = _varint(data, at)
        end = at + length
        _, at = _varint(data, at + 1)  # the attributes are a byte; then the time
        delta, at = _varint(data, at)
        size, at = _varint(data, at)
        yield base + delta, None if size < 0 else data[at : at + size]
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    byte = data[at]
    value, shift = byte & _BITS, _SHIFT
    at += 1
    while byte & _MORE:
        byte = data[at]
        value |= (byte & _BITS) << shift
        shift += _SHIFT
        at += 1
    return value >> 1 ^ -(value & 1), at


def _decompressed(payload: memoryview, kind: int) -> bytes:
    codec = _CODECS.get(kind, "")
    if codec is None:
        return bytes(payload)
    if codec == "snappy":
        return b"".join(map(_snappy, _blocks(bytes(payload))))
    if not codec:
        raise TopicError(f"its records are compressed with codec {kind}, which is not supported")
    return bytes(pa.CompressedInputStream(pa.BufferReader(payload), codec).read())


def _blocks(data: bytes) -> Iterator[bytes]:
    if not data.startswith(_BLOCKS):
        yield data
        return
    at = _BLOCKS_HEADER
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + size
        yield data[at - size : at]


def _snappy(block: bytes) -> bytes:
    size, shift = 0, 0
    for byte in block:  # a block begins with its uncompressed length
        size |= (byte & _BITS) << shift
        shift += _SHIFT
        if not byte & _MORE:
            break
    return bytes(pa.decompress(block, size, "snappy", asbytes=True))

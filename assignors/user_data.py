"""The user data of Kafka's StickyAssignor (KIP-54): bytes that list the partitions a member claims.

Belongs here: both versions of the format, byte for byte. Belongs elsewhere: conflicting claims
(`claims`).

::

    version 0    [topic [partition]]
    version 1    [topic [partition]] generation

An array (in brackets) is an int32 length and its elements. A topic is an int16 length and UTF-8.
Partitions and generations are int32. All integers are big-endian.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assignors.problem import InvalidProblemError

_NO_GENERATION: Final = -1  # Kafka's own clients write -1 before they have a generation


@dataclass(frozen=True)
class UserData:
    """A member's claims: partition numbers by topic, and the generation (None: version 0)."""

    owned: Mapping[str, Sequence[int]]
    generation: int | None = None


def encode(data: UserData) -> bytes:
    """Return user data as bytes: in version 1 if the generation is known, else in version 0.

    Examples
    --------
    >>> encode(UserData({"t": [0, 2]})).hex(" ", -4)
    '00000001 00017400 00000200 00000000 000002'
    """
    pieces = [struct.pack(">i", len(data.owned))]
    for topic, partitions in sorted(data.owned.items()):
        name = topic.encode()
        pieces.append(struct.pack(f">h{len(name)}si", len(name), name, len(partitions)))
        pieces.append(struct.pack(f">{len(partitions)}i", *partitions))
    if data.generation is not None:
        pieces.append(struct.pack(">i", data.generation))
    return b"".join(pieces)


def decode(data: bytes) -> UserData:
    """Parse user data of either version. Empty bytes claim no partitions.

    Raises
    ------
    InvalidProblemError
        The bytes are cut short, too long, or have a negative length or partition, an impossible
        generation, a repeated topic, or a name that is not UTF-8.

    Examples
    --------
    >>> decode(encode(UserData({"t": [0, 2]}, generation=5)))
    UserData(owned={'t': [0, 2]}, generation=5)
    """
    if not data:
        return UserData({})
    reader = _Reader(data)
    owned: dict[str, list[int]] = {}
    for _ in range(reader.length(">i")):
        topic = reader.text()
        if topic in owned:
            raise InvalidProblemError(f"user data: names topic {topic!r} twice")
        owned[topic] = reader.integers(reader.length(">i"))
        if any(partition < 0 for partition in owned[topic]):
            raise InvalidProblemError(f"user data: a partition of {topic!r} is negative")
    generation = None if reader.at_end() else reader.integers(1)[0]
    if generation is not None and generation < _NO_GENERATION:
        raise InvalidProblemError(f"user data: {generation} is not a generation")
    if not reader.at_end():
        raise InvalidProblemError("user data: has bytes after the last field")
    return UserData(owned, generation)


class _Reader:
    """Reads bytes in order; raises an error beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def at_end(self) -> bool:
        return self._at == len(self._data)

    def text(self) -> str:
        raw = self._take(self.length(">h"))
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidProblemError(f"user data: a topic's name is not UTF-8: {error}") from error

    def integers(self, count: int) -> list[int]:
        return list(struct.unpack(f">{count}i", self._take(4 * count)))

    def length(self, layout: str) -> int:
        (length,) = struct.unpack(layout, self._take(struct.calcsize(layout)))
        if length < 0:
            raise InvalidProblemError(f"user data: {length} is not a length")
        return int(length)

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise InvalidProblemError("user data: ends too early")
        self._at += size
        return self._data[self._at - size : self._at]

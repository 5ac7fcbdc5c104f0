"""A subscription that tells a member's rack, which aiokafka's own has no room for.

Belongs here: version 3 of the subscription (KIP-881), byte for byte. Does not: what is subscribed
to (`consumer`).

Others read as much of it as they know: every version begins like the first.
"""

from typing import Final

from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.protocol.types import Array, Bytes, Int16, Int32, Schema, String

RACK_VERSION: Final = 3
_NO_GENERATION: Final = -1
_TEXT: Final = String("utf-8")


class MetadataWithRack(ConsumerProtocolMemberMetadata):  # type: ignore[misc] # aiokafka is untyped
    """What a member in a rack joins with."""

    SCHEMA = Schema(
        ("version", Int16),
        ("subscription", Array(_TEXT)),
        ("user_data", Bytes),
        ("owned_partitions", Array(("topic", _TEXT), ("partitions", Array(Int32)))),
        ("generation", Int32),
        ("rack", _TEXT),
    )


def subscription(topics: list[str], user_data: bytes, rack: str) -> ConsumerProtocolMemberMetadata:
    r"""Return what a member joins with; without a rack (empty), as aiokafka has it.

    Examples
    --------
    >>> subscription(["t"], b"", "r1").encode()[-4:]
    b'\x00\x02r1'
    """
    if not rack:
        return ConsumerProtocolMemberMetadata(0, topics, user_data)
    return MetadataWithRack(RACK_VERSION, topics, user_data, [], _NO_GENERATION, rack)

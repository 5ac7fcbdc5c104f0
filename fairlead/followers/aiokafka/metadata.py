"""The subscription of a member that has a rack; aiokafka itself does not send racks.

Belongs here: the bytes of version 3 of the subscription (KIP-881). Belongs elsewhere: the values in
it (`consumer`).

Members that know only older versions can read version 3, because each version only appends fields.
"""

from typing import Final

from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.protocol.types import Array, Bytes, Int16, Int32, Schema, String

RACK_VERSION: Final = 3
_NO_GENERATION: Final = -1
_TEXT: Final = String("utf-8")


class MetadataWithRack(ConsumerProtocolMemberMetadata):  # type: ignore[misc] # aiokafka is untyped
    """The subscription of a member that has a rack."""

    SCHEMA = Schema(
        ("version", Int16),
        ("subscription", Array(_TEXT)),
        ("user_data", Bytes),
        ("owned_partitions", Array(("topic", _TEXT), ("partitions", Array(Int32)))),
        ("generation", Int32),
        ("rack", _TEXT),
    )


def subscription(topics: list[str], user_data: bytes, rack: str) -> ConsumerProtocolMemberMetadata:
    r"""Return a member's subscription: in version 3 if there is a rack, otherwise in version 0.

    Examples
    --------
    >>> subscription(["t"], b"", "r1").encode()[-4:]
    b'\x00\x02r1'
    """
    if not rack:
        return ConsumerProtocolMemberMetadata(0, topics, user_data)
    return MetadataWithRack(RACK_VERSION, topics, user_data, [], _NO_GENERATION, rack)

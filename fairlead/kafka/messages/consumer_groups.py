"""Messages for consumer groups of KIP-848. Import it on use, because it imports kafka-python."""

from typing import Final

from kafka.protocol.api_message import ApiMessage

_MESSAGES: Final = "fairlead.kafka.messages"


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Request for the descriptions of groups."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Response with the descriptions."""


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Request by which a member joins, stays or leaves."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Response with the member's epoch."""

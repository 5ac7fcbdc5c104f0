"""Messages for consumer groups of KIP-848.

Import this module only in functions that need it, because it imports kafka-python.
"""

from typing import Final

from kafka.protocol.api_message import ApiMessage

_MESSAGES: Final = "fairlead.kafka.messages"


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Request for the descriptions of groups."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Response with the descriptions of groups."""


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Request that a member sends to join a group, to stay in the group, or to leave it."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Response with the member's epoch and assignment."""

"""The message by which members of the consumer protocol join, stay and leave.

kafka-python has none. This imports it, and so is imported when somebody joins.
"""

from typing import Final

from kafka.protocol.api_message import ApiMessage

_MESSAGES: Final = "fairlead.kafka.messages"


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Tells a coordinator that a member is there, or that it goes."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Its answer."""

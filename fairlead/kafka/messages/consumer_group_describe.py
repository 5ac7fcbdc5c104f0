"""The message that describes groups of the consumer protocol: kafka-python has none.

It imports kafka-python, and so is imported when such a group is asked for.
"""

from typing import Final

from kafka.protocol.api_message import ApiMessage

_MESSAGES: Final = "fairlead.kafka.messages"


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Asks a coordinator about groups."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_MESSAGES):  # type: ignore[misc,call-arg] # no types
    """Its answer."""

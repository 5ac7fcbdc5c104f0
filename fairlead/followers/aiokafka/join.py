"""Make an aiokafka consumer with several assignors join its group only once.

Belongs here: a workaround for a bug of aiokafka. aiokafka 0.12 to 0.14 send a join request with the
first assignor, then another with the first two, and so on (aio-libs/aiokafka, pull request 1168).
That starts two rebalances instead of one, and between the two the member has no assignor in common
with members that only have `range`. If aiokafka sends only one request, this module has no effect.
"""

from types import SimpleNamespace
from typing import Any, Final

from aiokafka.protocol.group import JoinGroupRequest

_MARK: Final = "_fairlead_joins_once"
#: The response to suppressed requests. aiokafka uses only the response to the last request.
_NOT_SENT: Final = SimpleNamespace(error_code=0)


def join_once(coordinator: Any) -> None:
    """Suppress those join requests of the coordinator that do not list all assignors."""
    if hasattr(coordinator, _MARK):
        return
    send = coordinator._send_req  # noqa: SLF001 - the method that sends all requests
    wanted = len(coordinator._assignors)  # noqa: SLF001 - the number of assignors in a complete request

    async def send_complete(request: Any) -> Any:
        if isinstance(request, JoinGroupRequest) and len(request._group_protocols) < wanted:  # noqa: SLF001 - as above
            return _NOT_SENT
        return await send(request)

    coordinator._send_req = send_complete  # noqa: SLF001 - as above
    setattr(coordinator, _MARK, True)

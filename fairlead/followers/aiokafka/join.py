"""Let an aiokafka consumer with several assignors join its group once.

Belongs here: the way round one error of aiokafka. aiokafka 0.12 to 0.14 send a request to join for
the first assignor, then another for the first two, and so on (aio-libs/aiokafka, pull request
1168): two rebalances for one, and between them a member that the others, who have `range` alone,
have no assignor in common with. Where aiokafka sends one request this does nothing.
"""

from types import SimpleNamespace
from typing import Any, Final

from aiokafka.protocol.group import JoinGroupRequest

_MARK: Final = "_fairlead_joins_once"
#: An answer to the requests that are not sent; the answer to the last one counts.
_NOT_SENT: Final = SimpleNamespace(error_code=0)


def join_once(coordinator: Any) -> None:
    """Hold back this coordinator's requests to join that do not name every assignor."""
    if hasattr(coordinator, _MARK):
        return
    send = coordinator._send_req  # noqa: SLF001 - the one place all requests go through
    wanted = len(coordinator._assignors)  # noqa: SLF001 - what a complete request names

    async def send_complete(request: Any) -> Any:
        if isinstance(request, JoinGroupRequest) and len(request._group_protocols) < wanted:  # noqa: SLF001 - as above
            return _NOT_SENT
        return await send(request)

    coordinator._send_req = send_complete  # noqa: SLF001 - as above
    setattr(coordinator, _MARK, True)

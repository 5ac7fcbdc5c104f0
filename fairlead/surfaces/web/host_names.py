"""Host names that requests may use.

Belongs here: the middleware that refuses other names. Belongs elsewhere: the origin of forms
(`forms`).
"""

import contextlib
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.common.visible import visible

#: Paths that answer under any host name, for load balancers. They show no plans.
_ANY_NAME: Final = frozenset({"/health", "/ready"})


class OwnNames:
    """Middleware that refuses requests whose `Host` header names another server.

    The host name is refused if it has a dot, and is neither `own` nor an IP address. Otherwise an
    attacker could point any domain to this server's address. A page of this domain, in the browser
    of a person who can reach the server, could then read the server's answers (DNS rebinding).

    Parameters
    ----------
    own
        The host name of `web.url`; None: not set.
    headers
        Headers of each answer.
    """

    def __init__(self, app: ASGIApp, own: str | None, headers: Mapping[str, str]) -> None:
        self._app = app
        self._own = own
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with an error, or pass the request on."""
        app = self._app
        if scope["type"] == "http" and scope["path"] not in _ANY_NAME:
            refusal = _refusal(Headers(scope=scope).get("host", ""), self._own)
            if refusal is not None:
                status, why = refusal
                app = PlainTextResponse(f"{visible(why)}\n", status, self._headers)
        await app(scope, receive, send)


def _refusal(host_header: str, own: str | None) -> tuple[int, str] | None:
    """Return the status and the error for a Host header; None: the host name is accepted."""
    try:
        host = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return 400, "The Host header is not a host name"
    if "." not in host or host in {own, "localhost"} or host.endswith(".localhost"):
        return None
    with contextlib.suppress(ValueError):
        ip_address(host)
        return None
    return 421, f"Unknown host {host}: set web.url if this server has that name"

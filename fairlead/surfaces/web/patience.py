"""How long `fairlead serve` waits for whoever sends or reads slowly, which uvicorn leaves open.

Belongs here: the limits, and what ends. Does not: what is served (`app`), nor sockets (`server`).
"""

import asyncio
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

#: From the connection, or from the answer before, until a request has come whole.
REQUEST_S: Final = 10.0
#: From the request until its answer is sent: waiting for a thread, for the database, and for who
#: reads it.
ANSWER_S: Final = 120.0


class PatientProtocol(H11Protocol):
    """HTTP by uvicorn; a request that does not come in time ends its connection."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait on while what came is no whole request."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._due is None:
            self._due = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def in_time(app: ASGIApp) -> ASGIApp:
    """Return an application that gives up answers which take too long."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            async with asyncio.timeout(ANSWER_S):
                await app(scope, receive, sending)
        except TimeoutError:
            if not begun:  # else uvicorn ends the connection: the answer is not whole
                late = PlainTextResponse("The answer takes too long\n", 503)
                await late(scope, receive, send)

    return limited

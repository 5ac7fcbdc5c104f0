"""Pages made on a few threads, each once for all who ask for it at the same time.

Belongs here: how many are made at once, how many may wait, how long one stays fresh. Does not: what
is on a page.
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Final

import anyio
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException

#: Making a page is work for a processor, and for the interpreter's one lock.
THREADS: Final = 2
#: Whoever comes when so many pages are to be made is asked to come again.
WAITING: Final = 100
#: As long as a page is shown to others; somebody who has just decided looks again.
FRESH_S: Final = 3.0


class PagePool:
    """Makes pages. For one event loop."""

    def __init__(self) -> None:
        self._threads = anyio.CapacityLimiter(THREADS)
        self._pages: dict[Hashable, asyncio.Task[str]] = {}

    async def page(self, key: Hashable, make: Callable[[], str]) -> str:
        """Return the page of a key, which `make` makes on a thread unless it is there already.

        Raises
        ------
        HTTPException
            503: too many pages are being made.
        Exception
            Whatever `make` raises.
        """
        if key not in self._pages:
            if sum(not page.done() for page in self._pages.values()) >= WAITING:
                raise HTTPException(503, "Too many pages are asked for", {"Retry-After": "5"})
            task = asyncio.create_task(run_sync(make, limiter=self._threads))
            task.add_done_callback(lambda _: self._made(key))
            self._pages[key] = task
        # Somebody who goes away does not take the page from the others.
        return await asyncio.shield(self._pages[key])

    def _made(self, key: Hashable) -> None:
        task = self._pages[key]
        if task.cancelled() or task.exception() is not None:
            del self._pages[key]
        else:
            asyncio.get_running_loop().call_later(FRESH_S, self._pages.pop, key)

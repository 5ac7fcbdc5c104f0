"""Pages are made once for all who ask at a time, and only so many may be asked for."""

import asyncio
import threading

import pytest
from starlette.exceptions import HTTPException

from fairlead.surfaces.web.pool import WAITING, PagePool


def test_pages_that_are_made_keep_nobody_out() -> None:
    """Those that are to be made count, not those that are there to be shown."""

    async def ask() -> list[str]:
        pool = PagePool()
        return [await pool.page(number, lambda: "page") for number in range(WAITING + 1)]

    assert asyncio.run(ask()) == ["page"] * (WAITING + 1)


def test_who_comes_when_too_many_are_to_be_made_is_asked_to_come_again() -> None:
    """Whoever asks for one of those that are under way waits with the others."""
    made, gate = [0], threading.Event()

    def make() -> str:
        gate.wait(30)
        made[0] += 1
        return "page"

    async def ask() -> None:
        pool = PagePool()
        asked = [asyncio.create_task(pool.page(number, make)) for number in range(WAITING)]
        again = asyncio.create_task(pool.page(0, make))
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            await pool.page("one more", make)
        gate.set()
        assert await asyncio.gather(*asked, again) == ["page"] * (WAITING + 1)
        assert (refused.value.status_code, made) == (503, [WAITING])

    asyncio.run(ask())

"""The web application: its routes, and the HTTP status of each error.

Belongs here: routes. Belongs elsewhere: the content of pages (`groups_list`,
`fairlead.surfaces.review`), metrics (`metrics`), sockets and signals (`server`).
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
from anyio.to_thread import run_sync
from prometheus_client.exposition import choose_encoder
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from fairlead.common.visible import visible
from fairlead.domain.policy import Policy
from fairlead.errors import FairleadError, GroupError, PlanStateError, StoreRefusesError
from fairlead.settings import Settings, reloaded
from fairlead.surfaces.review import review_page
from fairlead.surfaces.web.acting import Acting
from fairlead.surfaces.web.forms import asked_version
from fairlead.surfaces.web.group import group_page
from fairlead.surfaces.web.groups_list import Filters, groups_page
from fairlead.surfaces.web.host_names import OwnNames
from fairlead.surfaces.web.metrics import build_registry
from fairlead.surfaces.web.readiness import readiness

_log = logging.getLogger(__name__)

#: Maximum number of pages rendered at once: rendering uses the CPU and holds the GIL.
PAGES_AT_ONCE: Final = 2
#: Headers of each answer. Pages may load no files and run no scripts, even if a name in a page
#: contains markup.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def build_app(engine: Engine, settings: Settings) -> Starlette:
    """Return the web application.

    Parameters
    ----------
    engine
        Fairlead's database. Read-only pages need `fairlead_reader`, web actions `fairlead_web`.
    settings
        The settings; policies are read again when their file changes.
    """
    threads = anyio.CapacityLimiter(PAGES_AT_ONCE)
    acting = Acting(engine, settings.web, _HEADERS, threads)
    pages = _Pages(engine, settings, acting, threads)
    own = urlsplit(settings.web.url or "").hostname
    app = Starlette(
        routes=[
            Route("/", pages.groups),
            Route("/group", pages.group),
            Route("/review", pages.review),
            Route("/act", acting.before),
            Route("/act", acting.act, methods=["POST"]),
            Route("/acted", acting.after),
            Route("/metrics", pages.metrics),
            Route("/health", _health),
            Route("/ready", pages.ready),
        ],
        middleware=[Middleware(GZipMiddleware), Middleware(OwnNames, own, _HEADERS)],
        exception_handlers={
            HTTPException: _refused,
            GroupError: _not_found,
            PlanStateError: _not_found,
            FairleadError: _unavailable,
            SQLAlchemyError: _unavailable,
        },
    )
    app.router.redirect_slashes = False  # a redirect would go to the host that the request names
    return app


class _Pages:
    """Pages, metrics and readiness, read from the database.

    Parameters
    ----------
    engine, settings
        As in `build_app`.
    acting
        Identifies the readers of pages.
    threads
        Limits the number of pages rendered at once.
    """

    def __init__(
        self, engine: Engine, settings: Settings, acting: Acting, threads: anyio.CapacityLimiter
    ) -> None:
        self._engine = engine
        self._settings = self._newest_settings = settings
        self._acting = acting
        self._threads = threads
        self._registry = build_registry(
            engine, settings.sampling.every, self._policies, settings.web
        )

    async def groups(self, request: Request) -> Response:
        """Answer with the list of groups."""
        filters = {name: request.query_params.get(name, "") for name in vars(Filters())}
        return await self._page(request, groups_page, Filters(**filters))

    async def group(self, request: Request) -> Response:
        """Answer with a group's page."""
        group = _asked_name(request, "/group?group=NAME")
        partition = request.query_params.get("partition", "").strip().replace("\0", "")
        return await self._page(request, group_page, group, partition)

    async def review(self, request: Request) -> Response:
        """Answer with the review of a plan."""
        home = "."  # relative, since a proxy may serve the pages under any path
        return await self._page(request, review_page, *_asked_plan(request), home=home)

    # Not async, so that Starlette runs it in its own thread pool, without waiting for slow pages.
    def metrics(self, request: Request) -> Response:
        """Answer with the metrics, in the format that the client accepts."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        headers = _HEADERS | {"Content-Type": content_type}
        return Response(encode(self._registry), headers=headers)

    def ready(self, _: Request) -> Response:
        """Answer whether the planner works; with status 503 if it does not."""
        report = readiness(self._engine, self._settings)
        return JSONResponse(report, 503 if report["missing"] else 200, headers=_HEADERS)

    async def _page(
        self, request: Request, make: Callable[..., str], *asked: Any, **further: Any
    ) -> Response:
        """Render a page in a thread, for the person who sent the request."""
        desk = await run_sync(self._acting.desk, request.headers.raw)

        def render() -> str:
            return make(
                self._engine,
                *asked,
                dagster_url=self._settings.web.dagster_url,
                policies=self._policies(),
                desk=desk,
                **further,
            )

        return HTMLResponse(await run_sync(render, limiter=self._threads), headers=_HEADERS)

    def _policies(self) -> Sequence[Policy]:
        self._newest_settings = reloaded(self._newest_settings)
        return self._newest_settings.policies


def _asked_plan(request: Request) -> tuple[str, int | None]:
    """Return the group and the version in the query; None: the newest version."""
    name = _asked_name(request, "/review?group=NAME&version=NUMBER")
    return name, asked_version(request.query_params.get("version"))


def _asked_name(request: Request, address: str) -> str:
    group = request.query_params.get("group")
    if not group or "\0" in group:  # Postgres refuses null characters
        raise HTTPException(400, f"The address needs the name of a group: {address}")
    return group


async def _health(_: Request) -> Response:
    """Answer that the process runs; `/ready` also checks the database."""
    return PlainTextResponse("ok\n", headers=_HEADERS)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler is registered for no other error
    headers = {**_HEADERS, **(error.headers or {})}
    return PlainTextResponse(f"{visible(error.detail)}\n", error.status_code, headers)


def _not_found(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{visible(str(error))}\n", 404, _HEADERS)


def _unavailable(request: Request, error: Exception) -> Response:
    """Log the error, and answer with status 503."""
    _log.error("%s: %s", request.url.path, error)
    what = (
        visible(str(error))
        if isinstance(error, StoreRefusesError)
        else "The database does not answer; `fairlead serve` logs why"
    )
    return PlainTextResponse(f"{what}.\n", 503, _HEADERS)

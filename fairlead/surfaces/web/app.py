"""The web application: its routes, and the HTTP status of each error.

Belongs here: routes. Does not: the content of pages (`groups_list`, `fairlead.surfaces.review`),
metrics (`metrics`), sockets and signals (`server`).
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Final
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
from fairlead.surfaces.offers import Desk
from fairlead.surfaces.review import review_page
from fairlead.surfaces.web.acting import Acting
from fairlead.surfaces.web.forms import asked_version
from fairlead.surfaces.web.group import Asked, group_page
from fairlead.surfaces.web.groups_list import Filters, groups_page
from fairlead.surfaces.web.metrics import build_registry
from fairlead.surfaces.web.readiness import readiness

_log = logging.getLogger(__name__)

#: Maximum number of pages rendered at once: rendering uses the CPU and holds the GIL.
PAGES_AT_ONCE: Final = 2
#: Pages load no other files and run no scripts, whatever names they contain.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


def build_app(engine: Engine, settings: Settings) -> Starlette:
    """Return the application.

    Parameters
    ----------
    engine
        Fairlead's database. Read-only pages need `fairlead_reader`, web actions `fairlead_web`.
    settings
        The settings; policies are read again when their file changes.
    """
    dagster_url = settings.web.dagster_url
    own = urlsplit(settings.web.url or "").hostname
    newest = [settings]

    def policies() -> Sequence[Policy]:
        newest[0] = reloaded(newest[0])
        return newest[0].policies

    registry = build_registry(engine, settings.sampling.every, policies, settings.web)
    threads = anyio.CapacityLimiter(PAGES_AT_ONCE)
    acting = Acting(engine, settings.web, _HEADERS, threads)

    async def page(request: Request, make: Callable[[Desk], str]) -> Response:
        desk = await run_sync(acting.desk, request.headers.raw)
        page_html = await run_sync(lambda: make(desk), limiter=threads)
        return HTMLResponse(page_html, headers=_HEADERS)

    # In Starlette's thread pool: slow pages have threads of their own.
    def metrics(request: Request) -> Response:
        _refuse_others_names(request, own)
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers=_HEADERS | {"Content-Type": content_type})

    async def groups(request: Request) -> Response:
        _refuse_others_names(request, own)
        asked = {name: request.query_params.get(name, "") for name in vars(Filters())}
        return await page(
            request,
            lambda desk: groups_page(
                engine,
                Filters(**asked),
                dagster_url=dagster_url,
                policies=policies(),
                desk=desk,
            ),
        )

    async def group(request: Request) -> Response:
        _refuse_others_names(request, own)
        name, asked = _asked_group(request)
        return await page(
            request,
            lambda desk: group_page(
                engine, name, asked, dagster_url=dagster_url, policies=policies(), desk=desk
            ),
        )

    async def review(request: Request) -> Response:
        _refuse_others_names(request, own)
        group, version = _asked_plan(request)
        return await page(
            request,
            lambda desk: review_page(
                engine,
                group,
                version,
                dagster_url=dagster_url,
                home=".",  # relative: a proxy may serve it under any path
                policies=policies(),
                desk=desk,
            ),
        )

    async def act(request: Request) -> Response:
        _refuse_others_names(request, own)
        return await (acting.act if request.method == "POST" else acting.before)(request)

    async def acted(request: Request) -> Response:
        _refuse_others_names(request, own)
        return await acting.after(request)

    def ready(_: Request) -> Response:
        report = readiness(engine, settings)
        return JSONResponse(report, 503 if report["missing"] else 200, headers=_HEADERS)

    app = Starlette(
        routes=[
            Route("/", groups),
            Route("/group", group),
            Route("/review", review),
            Route("/act", act, methods=["GET", "POST"]),
            Route("/acted", acted),
            Route("/metrics", metrics),
            Route("/health", _health),
            Route("/ready", ready),
        ],
        middleware=[Middleware(GZipMiddleware)],
        exception_handlers={
            HTTPException: _refused,
            GroupError: _not_found,
            PlanStateError: _not_found,
            FairleadError: _unavailable,
            SQLAlchemyError: _unavailable,
        },
    )
    app.router.redirect_slashes = False  # the redirect would go to the request's Host
    return app


def _refuse_others_names(request: Request, own: str | None) -> None:
    """Refuse a host name with a dot, except our own name and IP addresses.

    The owner of a domain can point it to this address, and then read answers from a browser that
    reaches this server (DNS rebinding).
    """
    try:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError as error:
        raise HTTPException(400, "The Host header is not a host name") from error
    if "." not in host or host in {own, "localhost"} or host.endswith(".localhost"):
        return
    with contextlib.suppress(ValueError):
        ip_address(host)
        return
    raise HTTPException(421, f"Unknown host {host}: set web.url if this server has that name")


def _asked_group(request: Request) -> tuple[str, Asked]:
    """Return the group of the query, and the parts of its page to show."""
    query = request.query_params
    return _asked_name(request, "/group?group=NAME"), Asked(
        partition=query.get("partition", "").strip().replace("\0", ""),
        before=asked_version(query.get("before")),
        after=asked_version(query.get("after")),
    )


def _asked_plan(request: Request) -> tuple[str, int | None]:
    """Return group and version of the query; no version: the newest."""
    name = _asked_name(request, "/review?group=NAME&version=NUMBER")
    return name, asked_version(request.query_params.get("version"))


def _asked_name(request: Request, address: str) -> str:
    group = request.query_params.get("group")
    if not group or "\0" in group:  # Postgres has no text with a null character
        raise HTTPException(400, f"Ask for a group: {address}")
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

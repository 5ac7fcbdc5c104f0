"""Read queries and forms, and refuse forms that come from pages of other servers.

Belongs here: size, origin and fields of a form. Belongs elsewhere: who sent the form (`identity`),
and the step that it requests (`acting`).
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request

#: Limits of a form: its size in bytes, and the seconds until it has arrived completely.
MOST_BYTES: Final = 16_384
_PATIENCE_S: Final = 10.0
_FIELDS: Final = frozenset({"do", "group", "version", "sha256", "id", "reason"})
#: Default ports, which browsers leave out of the header `Origin`.
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_FORM: Final = "application/x-www-form-urlencoded"


def require_own_page(request: Request, url: str) -> None:
    """Refuse a request that a page of another site has sent.

    Parameters
    ----------
    url
        Address of this server in browsers.

    Raises
    ------
    HTTPException
        403: another site, or a client that is no browser, has sent the request.
    """
    parts = urlsplit(url)
    host = parts.netloc.removesuffix(_DEFAULT_PORTS[parts.scheme])
    origins = request.headers.getlist("origin")
    if [origin.lower() for origin in origins] != [f"{parts.scheme}://{host}".lower()]:
        raise HTTPException(403, f"This form was not sent by a page of {url} (web.url)")
    sites = request.headers.getlist("sec-fetch-site")
    if sites and sites != ["same-origin"]:
        raise HTTPException(403, "This form was sent by a page of another site")


async def read_fields(request: Request) -> Mapping[str, str]:
    """Return the fields of a form.

    Raises
    ------
    HTTPException
        The form is too slow (408), too large (413), or not a form of our pages (400, 415).
    """
    if request.headers.getlist("content-type") != [_FORM]:
        raise HTTPException(415, f"A form must have the content type {_FORM}")
    body = b""
    try:
        with anyio.fail_after(_PATIENCE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, f"A form has at most {MOST_BYTES} bytes")
    except TimeoutError:
        raise HTTPException(408, "The form did not arrive in time") from None
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=len(_FIELDS),
        )
    except ValueError as error:
        raise HTTPException(400, "The form cannot be read") from error
    fields = dict(pairs)
    if len(fields) < len(pairs) or not fields.keys() <= _FIELDS:
        raise HTTPException(400, "The form has a field twice, or an unknown field")
    return fields


def asked_version(version: str | None) -> int | None:
    """Return a requested version as a number; None: no version is requested."""
    if version is None:
        return None
    if not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise HTTPException(400, "version must be a whole number from 1")
    return int(version)

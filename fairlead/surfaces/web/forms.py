"""What a query or a form asks for, and whether a form is one of ours.

Belongs here: reading both, and whether a request may change anything at all: forms are small, sent
by a page of this server, with each field once. Does not: who asks (`identity`), what is done
(`acting`).
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request

MOST_BYTES: Final = 16_384
_PATIENCE_S: Final = 10.0
_FIELDS: Final = frozenset({"do", "group", "version", "sha256", "id", "reason"})
#: Ports that browsers leave out.
_UNSAID: Final = {"http": ":80", "https": ":443"}
_FORM: Final = "application/x-www-form-urlencoded"


def require_own_page(request: Request, url: str) -> None:
    """Refuse a request that no page of this server has sent: a page of somebody else's may have.

    Parameters
    ----------
    url
        Where browsers reach this server.

    Raises
    ------
    HTTPException
        403.
    """
    parts = urlsplit(url)
    host = parts.netloc.removesuffix(_UNSAID[parts.scheme])
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
        400, 408, 413, 415: it is no form of ours, too slow or too large.
    """
    if request.headers.getlist("content-type") != [_FORM]:
        raise HTTPException(415, f"A form is {_FORM}")
    body = b""
    try:
        with anyio.fail_after(_PATIENCE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, f"A form has at most {MOST_BYTES} bytes")
    except TimeoutError:
        raise HTTPException(408, "The form did not come in time") from None
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
        raise HTTPException(400, "The form has a field twice, or one that is none of ours")
    return fields


def asked_version(version: str | None) -> int | None:
    """Return the number of a version; None: no version is asked for."""
    if version is None:
        return None
    if not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise HTTPException(400, "A version is a number from 1 on")
    return int(version)

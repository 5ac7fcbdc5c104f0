"""Web actions: the page before a step, the form that requests it, and the page after it.

Belongs here: these routes, and the order of the checks on a request. Belongs elsewhere: the checks
(`forms`, `identity`), the texts (`step_pages`), and whether a step is permitted (the database).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final, cast
from uuid import UUID, uuid4

import anyio
from anyio.to_thread import run_sync
from sqlalchemy import Engine
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fairlead.domain.identity import is_among
from fairlead.errors import PlanStateError
from fairlead.settings import WebSettings
from fairlead.store.acts import Act, Verb, act, find_act, objection_to_pages
from fairlead.store.models.plan import VERBS
from fairlead.surfaces.links import page_address
from fairlead.surfaces.offers import Desk
from fairlead.surfaces.web.forms import asked_version, read_fields, require_own_page
from fairlead.surfaces.web.identity import Headers, NotProvenError, Person, identity_of
from fairlead.surfaces.web.layout import TEMPLATES
from fairlead.surfaces.web.step_pages import ROWS, Sheet, outcome, sheet

_NO_PROOF: Final = "neither web.token nor web.header is set, so people cannot be identified"
_LONGEST_REASON: Final = 500
#: Two limits of the same size: the maximum number of freezes at once, and of other steps at once. A
#: step may wait a minute for the lock on its group, but must delay neither pages nor freezes.
_STEPS_AT_ONCE: Final = 4
#: Maps a step to the fields of its form, besides those that all forms have. The forms of steps that
#: are not listed have the fields `version` and `sha256`.
_NAMES: Final[Mapping[str, set[str]]] = {"freeze": set(), "unfreeze": {"version"}}


class Acting:
    """Routes of web actions.

    Parameters
    ----------
    engine
        Fairlead's database, as a member of `fairlead_web`.
    web
        How the proxy proves people's names, and who may act.
    headers
        Headers of each answer.
    threads
        Limits the number of pages rendered at once.
    """

    def __init__(
        self,
        engine: Engine,
        web: WebSettings,
        headers: Mapping[str, str],
        threads: anyio.CapacityLimiter,
    ) -> None:
        self._engine = engine
        self._web = web
        self._headers = {**headers, "Cache-Control": "no-store"}
        self._threads = threads
        self._freezing = anyio.CapacityLimiter(_STEPS_AT_ONCE)
        self._stepping = anyio.CapacityLimiter(_STEPS_AT_ONCE)
        self._identity = identity_of(web)

    def desk(self, headers: Headers) -> Desk:
        """Return the person who views a page or, if the page is read-only, the reason."""
        try:
            return Desk(self._person(headers).name)
        except NotProvenError as error:
            return Desk(reason=str(error))

    async def before(self, request: Request) -> Response:
        """Answer with a page that describes a step's effects and has a form to request the step."""
        verb, group, version = _read_step(request.query_params)
        desk = await run_sync(self.desk, request.headers.raw)
        return await run_sync(
            partial(self._before, desk, verb, group, version), limiter=self._threads
        )

    def _before(self, desk: Desk, verb: Verb, group: str | None, version: int | None) -> Response:
        now = datetime.now(UTC)
        try:
            about = sheet(self._engine, verb, group, version, now)
        except PlanStateError as error:
            return self._refused(desk, str(error), group)
        fields = {
            "do": verb,
            "id": uuid4(),
            "group": about.group,
            "version": about.version,
            "sha256": about.sha256,
        }
        known = {name: str(value) for name, value in fields.items() if value is not None}
        return self._page(desk, about, fields=known if desk.person else {})

    async def act(self, request: Request) -> Response:
        """Take the step that a form requests, in the name of the person who sent it."""
        url = self._web.url
        if self._identity is None or url is None:
            raise HTTPException(403, f"Read-only: {_NO_PROOF}")
        require_own_page(request, url)
        fields = await read_fields(request)
        try:
            person = await run_sync(self._person, request.headers.raw)
        except NotProvenError as error:
            raise HTTPException(403, f"Read-only: {error}") from error
        wanted = _wanted(fields, person)
        limiter = self._freezing if wanted.act == "freeze" else self._stepping
        return await run_sync(self._act, wanted, limiter=limiter)

    def _act(self, wanted: Act) -> Response:
        try:
            act_id = act(self._engine, wanted)
        except PlanStateError as error:
            return self._refused(Desk(wanted.actor), str(error), wanted.group)
        page = page_address("acted", id=str(act_id))
        return RedirectResponse(page, 303, headers=self._headers)

    async def after(self, request: Request) -> Response:
        """Answer with the result of a step."""
        try:
            act_id = UUID(request.query_params.get("id", ""))
        except ValueError as error:
            raise HTTPException(400, "The address needs an id: /acted?id=ID") from error
        desk = await run_sync(self.desk, request.headers.raw)
        return await run_sync(partial(self._after, desk, act_id), limiter=self._threads)

    def _after(self, desk: Desk, act_id: UUID) -> Response:
        step = find_act(self._engine, act_id)
        if step is None:
            raise HTTPException(
                404, "No step with this id is known: the form was not sent, or was refused"
            )
        words = {"done": "Done", "agreed": "Noted", "asked": "Requested", "refused": "Refused"}
        version = step.version if step.sha256 else None
        about = Sheet(words[step.outcome], "", outcome(self._engine, step), step.group, version)
        return self._page(desk, about)

    def _person(self, headers: Headers) -> Person:
        """Return the person who sent a request.

        Raises
        ------
        NotProvenError
            The request does not prove the person's name, `web.approvers` does not contain the
            name, or the server's database login lacks the right to take steps.
        """
        if self._identity is None:
            raise NotProvenError(_NO_PROOF)
        person = self._identity.person(headers)
        if not is_among(person.name, self._web.approvers):
            raise NotProvenError(f"{person.name} is not in web.approvers")
        if objection := objection_to_pages(self._engine):
            raise NotProvenError(
                f"this server cannot act for people: its database login {objection}"
            )
        return person

    def _refused(self, desk: Desk, why: str, group: str | None) -> Response:
        return self._page(desk, Sheet("Not possible", "", [f"{why}."], group), status=409)

    def _page(
        self,
        desk: Desk,
        about: Sheet,
        *,
        fields: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> Response:
        page = TEMPLATES.get_template("act.html").render(
            sheet=about, desk=desk, fields=fields or {}, rows=ROWS, now=datetime.now(UTC)
        )
        return HTMLResponse(page, status, self._headers)


def _read_step(parameters: Mapping[str, str]) -> tuple[Verb, str | None, int | None]:
    """Return the step, the group and the version that a query or a form names."""
    verb, group = parameters.get("do"), parameters.get("group")
    if verb not in VERBS or "\0" in (group or ""):
        raise HTTPException(400, f"The parameter `do` must be one of {', '.join(VERBS)}")
    if group == "":
        raise HTTPException(400, "Parameter group is empty: leave it out to mean all groups")
    return cast("Verb", verb), group, asked_version(parameters.get("version"))


def _wanted(fields: Mapping[str, str], person: Person) -> Act:
    """Return the step that a form requests."""
    verb, group, version = _read_step(fields)
    try:
        act_id = UUID(fields.get("id", ""))
    except ValueError as error:
        raise HTTPException(400, "The form has no valid id: open the page again") from error
    about = {name for name in ("version", "sha256") if name in fields}
    if about != _NAMES.get(verb, {"version", "sha256"}):
        raise HTTPException(400, "The form lacks version or hash: open the page again")
    reason = fields.get("reason", "").strip()
    if not reason or len(reason) > _LONGEST_REASON or "\0" in reason:
        raise HTTPException(400, f"Give a reason of at most {_LONGEST_REASON} characters")
    return Act(
        actor=person.name,
        proof=person.proof,
        id=act_id,
        act=verb,
        group=group,
        version=version,
        sha256=fields.get("sha256"),
        reason=reason,
    )

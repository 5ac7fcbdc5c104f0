"""Acting on pages: who looks, the page before a step, the form that takes it, the page after.

Belongs here: these routes, and the order of their checks. Does not: each check (`forms`,
`identity`), the words (`step_pages`), whether a step is allowed, which the database says.
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
from fairlead.surfaces.offers import Desk
from fairlead.surfaces.web.forms import asked_version, read_fields, require_own_page
from fairlead.surfaces.web.identity import Headers, NotProvenError, Person, identity_of
from fairlead.surfaces.web.layout import TEMPLATES, page_address
from fairlead.surfaces.web.step_pages import ROWS, Sheet, outcome, sheet

_NO_PROOF: Final = "no setting says how a proxy proves who asks (web.token or web.header)"
_LONGEST_REASON: Final = 500
#: Maximum number of steps at once, and of freezes. A step may wait a minute for the lock on its
#: group: pages do not wait for steps, nor freezes for other steps.
_STEPS_AT_ONCE: Final = 4
#: What a form names; all others version and hash.
_NAMES: Final[Mapping[str, set[str]]] = {"freeze": set(), "unfreeze": {"version"}}


class Acting:
    """What people do on pages.

    Parameters
    ----------
    engine
        Fairlead's database, as a member of `fairlead_web`.
    web
        How who asks is proven, and who may act.
    headers
        Of each answer.
    threads
        That pages are made on.
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
        """Return who looks at a page, or why nobody can act on it."""
        try:
            return Desk(self._person(headers).name)
        except NotProvenError as error:
            return Desk(reason=str(error))

    async def before(self, request: Request) -> Response:
        """Answer with what a step will do, and a form that takes it."""
        verb, group, version = _asked(request.query_params)
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
        """Take the step of a form that a page of ours has sent, in the name of who is proven."""
        url = self._web.url
        if self._identity is None or url is None:
            raise HTTPException(403, f"Nobody acts here: {_NO_PROOF}")
        require_own_page(request, url)
        fields = await read_fields(request)
        try:
            person = await run_sync(self._person, request.headers.raw)
        except NotProvenError as error:
            raise HTTPException(403, f"Nobody acts here: {error}") from error
        wanted = _wanted(fields, person)
        limiter = self._freezing if wanted.act == "freeze" else self._stepping
        return await run_sync(self._act, wanted, limiter=limiter)

    def _act(self, wanted: Act) -> Response:
        try:
            done = act(self._engine, wanted)
        except PlanStateError as error:
            return self._refused(Desk(wanted.actor), str(error), wanted.group)
        there = page_address("acted", id=str(done))
        return RedirectResponse(there, 303, headers=self._headers)

    async def after(self, request: Request) -> Response:
        """Answer with what came of a step."""
        try:
            act_id = UUID(request.query_params.get("id", ""))
        except ValueError as error:
            raise HTTPException(400, "Ask for what was done: /acted?id=ID") from error
        desk = await run_sync(self.desk, request.headers.raw)
        return await run_sync(partial(self._after, desk, act_id), limiter=self._threads)

    def _after(self, desk: Desk, act_id: UUID) -> Response:
        done = find_act(self._engine, act_id)
        if done is None:
            raise HTTPException(404, "Nothing was done by this form")
        words = {"done": "Done", "agreed": "Noted", "asked": "Asked for", "refused": "Refused"}
        version = done.version if done.sha256 else None
        about = Sheet(words[done.outcome], "", outcome(self._engine, done), done.group, version)
        return self._page(desk, about)

    def _person(self, headers: Headers) -> Person:
        """Return who asks, and may act here.

        Raises
        ------
        NotProvenError
            It is not proven, they are none of those who may, or the server's own login may not.
        """
        if self._identity is None:
            raise NotProvenError(_NO_PROOF)
        person = self._identity.person(headers)
        if not is_among(person.name, self._web.approvers):
            raise NotProvenError(f"{person.name} is none of web.approvers")
        if objection := objection_to_pages(self._engine):
            raise NotProvenError(f"the login of this server, {objection}, acts for nobody")
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


def _asked(given: Mapping[str, str]) -> tuple[Verb, str | None, int | None]:
    """Return the step, the group and the version that a query or a form names."""
    verb, group = given.get("do"), given.get("group")
    if verb not in VERBS or "\0" in (group or ""):
        raise HTTPException(400, f"What is to be done is one of {', '.join(VERBS)}")
    if group == "":
        raise HTTPException(400, "The group has no name: all groups are meant by none")
    return cast("Verb", verb), group, asked_version(given.get("version"))


def _wanted(fields: Mapping[str, str], person: Person) -> Act:
    """Return what a form asks for."""
    verb, group, version = _asked(fields)
    try:
        act_id = UUID(fields.get("id", ""))
    except ValueError as error:
        raise HTTPException(400, "The form has no id: open its page again") from error
    about = {name for name in ("version", "sha256") if name in fields}
    if about != _NAMES.get(verb, {"version", "sha256"}):
        raise HTTPException(400, "The form does not name what it is about: open its page again")
    reason = fields.get("reason", "").strip()
    if not reason or len(reason) > _LONGEST_REASON or "\0" in reason:
        raise HTTPException(400, f"Say why, in {_LONGEST_REASON} characters at most")
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

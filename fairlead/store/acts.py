"""Web actions: acts that people request on pages.

To change anything, the database user of the web server can call only the function `act_as`, which
carries out or stores an act.

Belongs here: acts, their outcomes, and the acts that wait for the planner. Belongs elsewhere: the
rules for which acts are permitted (`migrations/sql/web.sql`), the person's identity
(`fairlead.surfaces.web`).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, func, select

from fairlead.store.engine import transaction
from fairlead.store.models.plan import PageAct

Verb = Literal["approve", "reject", "rollback", "withdraw", "freeze", "unfreeze"]


@dataclass(frozen=True, kw_only=True)
class Act:
    """An act that a person requests on a page.

    Parameters
    ----------
    actor, proof
        The person's name; and how the web server established the person's identity, in a word or
        two.
    id
        Id of the form; the same form cannot be sent twice.
    act
        The kind of act.
    group, version, sha256
        The plan that the page showed. The group is None if the act freezes or unfreezes all groups.
        If the act is a freeze, the version is None. If the act ends a freeze, the version is
        the number of that freeze (`Freeze.number`).
    reason
        The person's reason.
    """

    actor: str
    proof: str
    id: UUID
    act: Verb
    group: str | None
    version: int | None
    sha256: str | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Acted(Act):
    """A stored act.

    Parameters
    ----------
    at
        Time of the act.
    outcome
        `done`; `agreed`: another person must agree; `asked`: the planner has not carried out the
        act yet; `refused`: the planner could not carry it out.
    answer
        The planner's answer; None before it has answered.
    """

    at: datetime
    outcome: str
    answer: str | None


def act(engine: Engine, wanted: Act) -> UUID:
    """Carry out or store a person's request.

    Returns
    -------
    Id of the stored act. If the person has already agreed to the same act within the last day, the
    id of the earlier agreement.

    Raises
    ------
    PlanStateError
        The act is impossible, too late, or not allowed on pages. Or the form was sent before.
    TamperedPlanError
        The version's hash differs from the hash that the person saw.
    """
    with transaction(engine) as connection:
        done = func.fairlead.act_as(*asdict(wanted).values()).table_valued("id")
        stored: UUID = connection.execute(select(done.c.id)).scalar_one()
    return stored


def objection_to_pages(engine: Engine) -> str | None:
    """Return why the login of `engine` has no right to act for people; None if it has the right."""
    with transaction(engine) as connection:
        row = connection.execute(select(func.session_user(), func.fairlead.objection_to_pages()))
        login, objection = row.one()
    return f"{login} {objection}" if objection else None


def find_act(engine: Engine, act_id: UUID) -> Acted | None:
    """Return the act with this id; None if there is none."""
    return next(iter(_read(engine, PageAct.id == act_id)), None)


def agreed(engine: Engine, verb: Verb, group: str | None, version: int | None) -> list[Acted]:
    """Return the last day's requests for an act that needs a second person, oldest first."""
    about = (
        PageAct.act == verb,
        PageAct.outcome == "agreed",
        PageAct.at > func.now() - timedelta(days=1),  # the same period as in people_for (SQL)
    )
    return _read(
        engine,
        *about,
        PageAct.group_id.is_not_distinct_from(group),
        PageAct.version.is_not_distinct_from(version),
    )


def asked(engine: Engine, groups: Iterable[str] | None = None) -> list[Acted]:
    """Return the acts of some or all groups that wait for the planner, oldest first."""
    conditions = [] if groups is None else [PageAct.group_id.in_(list(groups))]
    return _read(engine, PageAct.outcome == "asked", *conditions)


def answer(engine: Engine, act_id: UUID, outcome: Literal["done", "refused"], text: str) -> None:
    """Store the outcome and answer for a request, unless the request has an answer already."""
    with transaction(engine) as connection:
        connection.execute(select(func.fairlead_raw.answer_act(act_id, outcome, text)))


def _read(engine: Engine, *conditions: ColumnElement[bool]) -> list[Acted]:
    columns = [
        getattr(PageAct, {"group": "group_id"}.get(field.name, field.name)).label(field.name)
        for field in fields(Acted)
    ]
    with transaction(engine) as connection:
        rows = connection.execute(select(*columns).where(*conditions).order_by(PageAct.at))
        return [Acted(**row) for row in rows.mappings()]

"""What people do on pages, by the one function that the web server's login may call.

Belongs here: an act, what came of it, and what the planner has still to do. Does not: what is
allowed (`migrations/sql/web.sql`), who asks (`fairlead.surfaces.web`).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, func, select

from fairlead.store.engine import transaction
from fairlead.store.models import PageAct

Verb = Literal["approve", "reject", "rollback", "withdraw", "freeze", "unfreeze"]


@dataclass(frozen=True, kw_only=True)
class Act:
    """What a person asks for.

    Parameters
    ----------
    actor, proof
        Who, as compared; and what proves it, in a word or two.
    id
        Of the form: it counts once.
    act
        What.
    group, version, sha256
        Of what: as the person saw it. No group: all groups, to freeze or unfreeze; no version then.
    reason
        Why.
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
    """An act that is stored.

    Parameters
    ----------
    at
        When.
    outcome
        `done`; `agreed`: it takes another person; `asked`: the planner has still to do it;
        `refused`: the planner could not.
    answer
        The planner's; None: none yet.
    """

    at: datetime
    outcome: str
    answer: str | None


def act(engine: Engine, wanted: Act) -> UUID:
    """Let a person do something.

    Returns
    -------
    The id of the act that is stored: an earlier one, if the person agreed to the same within a day.

    Raises
    ------
    PlanStateError
        It is not possible, not any more, not on a page, or was done by the same form before.
    TamperedPlanError
        The version has another hash than the one that the person saw.
    """
    with transaction(engine) as connection:
        done = func.fairlead.act_as(*asdict(wanted).values()).table_valued("id")
        stored: UUID = connection.execute(select(done.c.id)).scalar_one()
    return stored


def objection_to_pages(engine: Engine) -> str | None:
    """Return why the engine's login may not act for people; None: it may."""
    with transaction(engine) as connection:
        said = connection.execute(select(func.session_user(), func.fairlead.objection_to_pages()))
        login, objection = said.one()
    return f"{login} {objection}" if objection else None


def find_act(engine: Engine, act_id: UUID) -> Acted | None:
    """Return the action of a form; None: there is none."""
    return next(iter(_read(engine, PageAct.id == act_id)), None)


def agreed(engine: Engine, verb: Verb, group: str | None, version: int | None) -> list[Acted]:
    """Return who has agreed within a day to what takes another person, the oldest first."""
    about = (
        PageAct.act == verb,
        PageAct.outcome == "agreed",
        PageAct.at > func.now() - timedelta(days=1),  # as people_for counts
    )
    return _read(
        engine,
        *about,
        PageAct.group_id.is_not_distinct_from(group),
        PageAct.version.is_not_distinct_from(version),
    )


def asked(engine: Engine, groups: Iterable[str] | None = None) -> list[Acted]:
    """Return what the planner has still to do, of groups or of all, the oldest first."""
    conditions = [] if groups is None else [PageAct.group_id.in_(list(groups))]
    return _read(engine, PageAct.outcome == "asked", *conditions)


def answer(engine: Engine, act_id: UUID, outcome: Literal["done", "refused"], said: str) -> None:
    """Say what came of what was asked; where somebody has said it before, nothing happens."""
    with transaction(engine) as connection:
        connection.execute(select(func.fairlead_raw.answer_act(act_id, outcome, said)))


def _read(engine: Engine, *conditions: ColumnElement[bool]) -> list[Acted]:
    columns = [
        getattr(PageAct, {"group": "group_id"}.get(field.name, field.name)).label(field.name)
        for field in fields(Acted)
    ]
    with transaction(engine) as connection:
        rows = connection.execute(select(*columns).where(*conditions).order_by(PageAct.at))
        return [Acted(**row) for row in rows.mappings()]

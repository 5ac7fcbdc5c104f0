"""Fixtures of the web application's tests: a week of history, and plans in several states."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from fairlead.domain.records import StoredPlan
from fairlead.settings import Settings, WebSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.surfaces.web import build_app
from tests.fairlead.surfaces.web.proxies import PUBLIC, Answer, Pairs, post, send
from tests.fairlead.surfaces.web.week import end_now
from tests.fixtures.plans import make_draft, record_publication
from tests.logins import logins
from tests.serving import serving
from tests.stored import record_plan

KIM: Final = "kim@example.com"
SECRET: Final = "s" * 40


@pytest.fixture
def week(week: str) -> str:
    """Return the URL of a database with the sample week, moved so that it ends today."""
    end_now(week)
    return week


@pytest.fixture
def served(week: str) -> Iterator[str]:
    """Serve the sample week as database role `fairlead_reader`; return the server's address."""
    as_reader = f"{week}&options=-c%20role%3Dfairlead_reader"
    engine = create_store_engine(as_reader)
    web = WebSettings(url="https://fairlead.example/", dagster_url="http://dagster.example")
    settings = Settings(web=web)
    with serving(build_app(engine, settings)) as address:
        yield address
    engine.dispose()


@dataclass(frozen=True)
class Desks:
    """A web application with plans in several states, and people who can act on its pages.

    Parameters
    ----------
    address
        Address of the pages.
    url
        URL of the database, as a superuser.
    planner
        Plan store with the planner's login.
    plans
        Group -> plan. `orders`: needs one approval. `payments`: needs the approvals of two people,
        who can use the pages. `billing`: needs the approval of a second database user, which pages
        cannot give. `stock`: version 2 is published.
    """

    address: str
    url: str
    planner: PlanStore
    plans: Mapping[str, StoredPlan]

    def state(self, group: str, version: int | None = None) -> str:
        """Return the state of a version of a group's plan; None: the version in `plans`."""
        return self.planner.get(group, version or self.plans[group].version).state

    def post(self, do: str, group: str | None = None, who: str = KIM, **given: Any) -> Answer:
        """Send a form as the browser of a person behind the proxy."""
        plan = self.plans.get(group or "")
        fields: dict[str, Any] = {"do": do, "group": group, "id": uuid4(), "reason": "agreed"}
        if plan is not None and do not in {"freeze", "unfreeze"}:
            fields |= {"version": plan.version, "sha256": plan.sha256}
        sent = {name: value for name, value in (fields | given).items() if value is not None}
        return post(self.address, sent, as_person(who))

    def get(self, path: str, who: str | None = KIM) -> Answer:
        """Get a page as the browser of a person; None: as a person without proof of identity."""
        return send(self.address, "GET", path, as_person(who) if who else ())


@pytest.fixture
def desks(migrated: str) -> Iterator[Desks]:
    """Return a web application on whose pages all people can act; the proxy sends their names."""
    with ExitStack() as stack:
        make = stack.enter_context(logins(migrated))

        def engine_as(role: str, name: str) -> Engine:
            engine = create_store_engine(make(role, name=name))
            stack.callback(engine.dispose)
            return engine

        planner = PlanStore(engine_as("fairlead_planner", "planner"))
        four_eyes = {"orders": None, "payments": "proxy", "billing": "database"}
        plans = {
            group: propose(planner, group, four_eyes=eyes) for group, eyes in four_eyes.items()
        }
        for snapshot in ("s1", "s2"):
            plan = propose(planner, "stock", snapshot)
            planner.approve("stock", plan.version, sha256=plan.sha256, reason="ok")
            record_publication(planner, planner.get("stock", plan.version))
        plans["stock"] = planner.get("stock", 2)
        web = WebSettings.model_validate({"url": PUBLIC, "header": {"secret": SECRET}})
        app = build_app(engine_as("fairlead_web", "web"), Settings(web=web))
        yield Desks(stack.enter_context(serving(app)), migrated, planner, plans)


def propose(planner: PlanStore, group: str, snapshot: str = "s1", **changes: Any) -> StoredPlan:
    """Propose a plan with the planner's login."""
    return record_plan(planner, make_draft(snapshot, group=group, **changes))


def as_person(name: str) -> Pairs:
    """Return the headers with which the proxy names a person."""
    return [("X-Forwarded-Email", name), ("X-Fairlead-Secret", SECRET)]

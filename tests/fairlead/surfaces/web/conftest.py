"""A served plan history that is of this week.

Belongs here: fixtures of the web application's tests.
"""

from collections.abc import Iterator

import pytest

from fairlead.settings import Settings, WebSettings
from fairlead.store.engine import create_store_engine
from fairlead.surfaces.web import build_app
from fairlead.surfaces.web.server import serving
from tests.fairlead.surfaces.web.week import store_recent_week


@pytest.fixture
def week(migrated: str) -> str:
    """Return the URL of a database with a week of history, which ends today."""
    store_recent_week(migrated)
    return migrated


@pytest.fixture
def served(week: str) -> Iterator[str]:
    """Return the address where that history is served, as to a reader."""
    as_reader = f"{week}&options=-c%20role%3Dfairlead_reader"
    engine = create_store_engine(as_reader)
    web = WebSettings(url="https://fairlead.example/", dagster_url="http://dagster.example")
    settings = Settings(web=web)
    with serving(build_app(engine, settings)) as address:
        yield address
    engine.dispose()

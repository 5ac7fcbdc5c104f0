"""The example sensor, which makes one report about each plan that waits for approval."""

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from fairlead.store.plans import PlanStore
from tests.fixtures.plans import make_draft
from tests.logins import Login
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

EXAMPLE = Path(__file__).parents[2] / "examples/plan_waits_sensor.py"


class Chat:
    """Replaces the example's function `send`. Sending fails while `down` is set."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.down = False

    def __call__(self, text: str) -> None:
        """Store a text, or raise ConnectionError if the chat is down."""
        if self.down:
            raise ConnectionError("the chat is down")
        self.texts.append(text)


@pytest.fixture
def chat() -> Chat:
    """Return a chat that works."""
    return Chat()


@pytest.fixture
def tick(login: Login, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Return a function that runs one tick of the sensor with a reader's login.

    The function returns the tick's skip message.
    """
    spec = spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    dg.Definitions.validate_loadable(example.defs)
    sensor = example.defs.resolve_sensor_def("plans_that_wait")
    monkeypatch.setattr(example, "send", chat)
    cursor: str | None = None

    def tick() -> str:
        nonlocal cursor
        with dg.build_sensor_context(cursor=cursor) as context:
            done = sensor.evaluate_tick(context)
        cursor = done.cursor
        return str(done.skip_message)

    monkeypatch.setenv("READER_URL", login("fairlead_reader"))
    return tick


def age_plans(url: str, by: str) -> None:
    """Make all plans older by an interval, for example `61 min`."""
    with psycopg.connect(url) as superuser:
        superuser.execute("SET session_replication_role = replica")  # triggers would refuse changes
        superuser.execute(
            "UPDATE fairlead_raw.plan SET created_at = created_at - %s::interval", [by]
        )


def test_plan_that_waits_is_reported_once(
    tick: Callable[[], str], chat: Chat, store: PlanStore, migrated: str
) -> None:
    """A proposed plan is reported once, with a link to its page; other plans are not reported."""
    drafts = [make_draft(group=group) for group in ("a b", "automatic")]
    drafts.append(make_draft(group="observed", shadow=True))
    automatic = [record_decision(store, draft).plan for draft in drafts][1]
    age_plans(migrated, "-1 hour")
    assert tick() == "Plans that wait: 0, of which new: 0."
    assert automatic is not None
    store.approve("automatic", 1, sha256=automatic.sha256, reason="fits", actor="policy")
    age_plans(migrated, "61 min")
    assert tick() == "Plans that wait: 1, of which new: 1."
    assert tick() == "Plans that wait: 1, of which new: 0."
    (text,) = chat.texts
    assert text == (
        "Version 1 of the plan of group a b waits for a decision: the most loaded member gets "
        "lighter "
        "http://localhost:9464/review?group=a+b&version=1"
    )


def test_failed_report_is_sent_again(
    tick: Callable[[], str], chat: Chat, store: PlanStore, migrated: str
) -> None:
    """If sending fails, the tick fails; the next tick sends one text about all waiting plans."""
    record_decision(store, make_draft(group="first"))
    age_plans(migrated, "1 min")
    chat.down = True
    with pytest.raises(ConnectionError):
        tick()
    record_decision(store, make_draft(group="second"))
    age_plans(migrated, "1 min")
    chat.down = False
    assert tick() == "Plans that wait: 2, of which new: 2."
    assert [text.count("waits for a decision") for text in chat.texts] == [2]

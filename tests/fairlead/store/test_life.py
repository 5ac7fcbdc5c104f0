"""The database refuses invalid changes of a plan's state, by any user."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from fairlead.domain.plan_states import STATES
from fairlead.domain.records import StoredPlan
from tests.fairlead.store.life_model import STEPS
from tests.fixtures.plans import SNAPSHOT_AT

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]

WAYS = {
    "proposed": [],
    "approved": ["approved"],
    "sending": ["approved", "sending"],
    "published": ["approved", "sending", "published"],
    "superseded": ["approved", "sending", "published", "superseded"],
    "rejected": ["rejected"],
    "expired": ["expired"],
    "stale": ["approved", "stale"],
    "refused": ["approved", "sending", "refused"],
    "withdrawn": ["approved", "sending", "published", "withdrawn"],
}


@pytest.fixture
def by_hand(migrated: str) -> Iterator[psycopg.Connection]:
    """Return a connection like that of a person in psql."""
    with psycopg.connect(migrated, autocommit=True) as connection:
        yield connection


def enter(connection: psycopg.Connection, state: str, group: str = "orders") -> None:
    position = ("plans", 0, 1) if state == "published" else (None, None, None)
    connection.execute(
        "INSERT INTO fairlead_raw.plan_event"
        " (group_id, version, state, reason, topic, partition, record_offset)"
        " VALUES (%s, 1, %s, 'by hand', %s, %s, %s)",
        [group, state, *position],
    )


def answer(connection: psycopg.Connection, state: str, group: str) -> str | None:
    """Try a transition and undo it; return the error's SQLSTATE, or None if it was accepted."""
    try:
        with connection.transaction(force_rollback=True):
            enter(connection, state, group)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def test_only_allowed_transitions_succeed(by_hand: psycopg.Connection, propose: Plans) -> None:
    """Of all pairs of states, the database accepts exactly the transitions in `STEPS`."""
    assert WAYS.keys() == set(STATES)
    answers: dict[tuple[str, str], str | None] = {}
    for state, way in WAYS.items():
        propose(group=state)
        for step in way:
            enter(by_hand, step, state)
        answers |= {(state, target): answer(by_hand, target, state) for target in STATES}
    allowed = {step for step, refusal in answers.items() if refusal is None}
    assert allowed == {(state, target) for state in STEPS for target in STEPS[state]}
    assert set(answers.values()) == {None, "FL001"}


TABLES = ("plan_event", "moved_partition", "decision", "candidate", "plan")
CHANGES = [
    *(
        f"{change} fairlead_raw.{table}{cascade}"
        for table in (*TABLES, f"decision_{SNAPSHOT_AT:%Y%m%d}")
        for change, cascade in (("DELETE FROM", ""), ("TRUNCATE", " CASCADE"))
    ),
    "UPDATE fairlead_raw.plan_event SET actor = 'nobody'",
    "UPDATE fairlead_raw.moved_partition SET member = 'orders-3'",
    "UPDATE fairlead_raw.decision SET reason = 'another'",
    "UPDATE fairlead_raw.candidate SET lag_max = 0",
    "UPDATE fairlead_raw.plan SET state = 'approved'",
    "UPDATE fairlead.plan SET state = 'approved'",  # the view is read-only, too
    "UPDATE fairlead_raw.plan SET document = 'x', sha256 = encode(sha256('x'), 'hex')",
]


def test_rows_of_a_plan_cannot_be_deleted_or_updated(
    by_hand: psycopg.Connection, propose: Plans
) -> None:
    """Plans, events, moves, decisions and candidates cannot be changed, not even by a superuser."""
    propose()
    for change in CHANGES:
        with pytest.raises(psycopg.Error, match="never changed") as error:
            by_hand.execute(change.encode())
        assert error.value.sqlstate == "FL002", change


def test_wrong_hash_of_a_document_is_refused(by_hand: psycopg.Connection, propose: Plans) -> None:
    """The database refuses a document with a wrong hash, even if triggers are disabled."""
    propose()
    by_hand.execute("SET session_replication_role = replica")
    with pytest.raises(psycopg.errors.CheckViolation, match="plan_sha256_check"):
        by_hand.execute("UPDATE fairlead_raw.plan SET document = 'x'")


def test_decision_needs_a_reason_of_limited_length(
    by_hand: psycopg.Connection, propose: Plans
) -> None:
    """Approval and rejection need a visible reason of at most 2,000 characters of any alphabet."""
    blanks = (None, "", "\t\n", "\N{NO-BREAK SPACE}", "\u200b\u2060\ufeff", "\u202e")
    refusals = {**dict.fromkeys(blanks, "without a reason"), "x" * 2001: "2,000 characters at most"}
    propose()
    for reason, refusal in refusals.items():
        for function in ("approve_plan", "reject_plan"):
            with pytest.raises(psycopg.Error, match=refusal) as error:
                by_hand.execute(f"SELECT fairlead.{function}('orders', 1, %s)".encode(), [reason])
            assert error.value.sqlstate == "FL001"
    by_hand.execute("SELECT fairlead.approve_plan('orders', 1, '好')")

"""Notices: which events there are of, that each is there once, and who sends which when."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from fairlead.domain.hindsight import Hindsight
from fairlead.domain.notices import EVENTS
from fairlead.domain.records import Findings
from fairlead.store import PlanStore, StoredPlan
from fairlead.store.brakes import put_on, release
from fairlead.store.engine import transaction
from fairlead.store.hindsight import say_made_worse
from fairlead.store.judgement_memory import record_findings
from fairlead.store.monitoring import DecisionCounts, read_all_groups
from fairlead.store.notices import answered, end_notices, next_notice, read_standing
from fairlead.store.retention import prune
from tests.fairlead.store.conftest import StoreAs, record_publication, record_retirement
from tests.logins import Login

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]
WORSE = Hindsight(
    900.0, 60.0, 30.0, 3, 1, "much later than before", np.zeros(3, np.int32), sure=True
)
HEALTHY = Findings(
    diagnosis="healthy",
    names=(),
    evidence="All is well.",
    late_s=0.0,
    utilisation=0.5,
    capacities={},
)
OVERLOADED = replace(HEALTHY, diagnosis="overloaded", evidence="120 % of what it can do arrives.")
#: Two days ago: nothing of it is given up yet.
BEGAN = datetime.now(UTC) - timedelta(days=2)


def notices(store: PlanStore, *columns: str) -> list[Any]:
    """Return columns of all notices, the oldest first."""
    names = ", ".join(columns or ("event",))
    with transaction(store.engine) as connection:
        rows = connection.execute(
            text(f"SELECT {names} FROM fairlead.notice ORDER BY at, id")
        ).all()
    return [tuple(row) if len(columns) > 1 else row[0] for row in rows]


def due(store: PlanStore, *, earlier: str = "1 hour") -> None:
    """Have happened what there is some time earlier, and be due now."""
    with transaction(store.engine) as connection:
        connection.execute(
            text(f"UPDATE fairlead_raw.notice SET next_at = now(), at = at - interval '{earlier}'")
        )


def look(store: PlanStore, minutes: int, findings: Findings, **changes: Any) -> None:
    """Find so many minutes later what is the matter with a group."""
    found = {"orders": (BEGAN + timedelta(minutes=minutes), replace(findings, **changes))}
    with transaction(store.engine) as connection:
        record_findings(connection, found, requests={})


def test_life_of_plans_and_brakes_is_told_once(
    store: PlanStore, publish: Plans, propose: Plans
) -> None:
    """What waits, what made it worse and is followed no more, brakes; nothing else of a plan."""
    publish()
    publish("s2")
    say_made_worse(store.engine, "orders", 2, WORSE, automatic=True)
    record_retirement(store, "orders")
    put_on(store.engine, "orders", reason="incident", actor="kim")
    release(store.engine, "orders", reason="over", actor="ann")
    propose("s3", observed_only=True)
    assert notices(store, "event", "version", "actor", "said") == [
        ("plan.waits", 1, None, "the heaviest member gets lighter"),
        ("plan.waits", 2, None, "the heaviest member gets lighter"),
        ("plan.made_worse", 2, None, f"{WORSE.evidence}; it is taken back"),
        ("plan.taken_back", 2, store.history("orders")[1]["decided_by"], notices(store, "said")[3]),
        ("brake.held", None, "kim", "incident"),
        ("brake.released", None, "ann", "over"),
    ]


def test_diagnoses_are_told_where_they_begin(store: PlanStore, propose: Plans) -> None:
    """Overloaded, and losing records within four hours: not at every look, nor at each flutter."""
    propose(group="orders", observed_only=True)
    look(store, 0, HEALTHY, loss_s=5 * 3600.0)
    look(store, 1, HEALTHY, loss_s=3 * 3600.0)
    look(store, 2, HEALTHY)
    look(store, 3, HEALTHY, loss_s=2 * 3600.0)
    for minute in range(4, 8):
        look(store, minute, OVERLOADED, names=(f"orders-{minute}",), loss_s=3600.0)
    look(store, 8, HEALTHY)
    look(store, 9, OVERLOADED)
    first = [("group.loses_records", HEALTHY.evidence), ("group.overloaded", OVERLOADED.evidence)]
    assert notices(store, "event", "said") == first
    look(store, 9 + 7 * 60, OVERLOADED, names=("orders-1",))
    assert len(notices(store)) == 2, "what goes on is nothing new"
    look(store, 10 + 7 * 60, HEALTHY)
    look(store, 11 + 7 * 60, OVERLOADED, loss_s=60.0)
    assert sorted(notices(store)[2:]) == ["group.loses_records", "group.overloaded"]


def test_event_has_one_notice_however_often_it_is_written(store: PlanStore, propose: Plans) -> None:
    """The id follows from the event: whatever fires the trigger again adds nothing."""
    propose()
    with transaction(store.engine) as connection:
        connection.exec_driver_sql("SET session_replication_role = replica")
        connection.exec_driver_sql(
            "CREATE TEMP TABLE kept AS SELECT * FROM fairlead_raw.plan_event;"
            "DELETE FROM fairlead_raw.plan_event"
        )
        connection.exec_driver_sql("SET session_replication_role = origin")
        connection.exec_driver_sql("ALTER TABLE fairlead_raw.plan_event DISABLE TRIGGER apply")
        connection.exec_driver_sql("INSERT INTO fairlead_raw.plan_event SELECT * FROM kept")
        connection.exec_driver_sql("ALTER TABLE fairlead_raw.plan_event ENABLE TRIGGER apply")
    (notice,) = notices(store, "id")
    assert notice.startswith("msg_")


def test_what_holds_no_more_is_not_told(store: PlanStore, approve: Plans, propose: Plans) -> None:
    """A plan that somebody decided on, an overload that is over; unwanted events; old ones."""
    approve()
    propose("s1", group="billing")
    look(store, 0, OVERLOADED, loss_s=60.0)
    look(store, 1, HEALTHY)
    put_on(store.engine, None, reason="incident")
    due(store)
    assert end_notices(store.engine, [event for event in EVENTS if event != "brake.held"]) == []
    claimed = next_notice(store.engine)
    assert claimed is not None
    assert (claimed.event, claimed.group, claimed.version) == ("plan.waits", "billing", 1)
    assert next_notice(store.engine) is None
    assert set(notices(store, "event", "group_id", "outcome")) == {
        ("plan.waits", "orders", "outdated"),
        ("plan.waits", "billing", None),
        ("group.overloaded", "orders", "outdated"),
        ("group.loses_records", "orders", "outdated"),
        ("brake.held", None, "unwanted"),
    }


def test_plan_is_told_after_its_policy_could_approve_it(store: PlanStore, propose: Plans) -> None:
    """The approval is a transaction of its own, a moment after the proposal's."""
    propose()
    assert next_notice(store.engine) is None
    assert notices(store, "next_at - at > interval '25 seconds'") == [True]


def test_who_dies_leaves_it_to_the_next_one(
    store: PlanStore, login: Login, store_as: StoreAs
) -> None:
    """What was claimed is due again later and later, an hour at most; with the same id."""
    put_on(store.engine, None, reason="incident")
    planner = store_as(login("fairlead_planner")).engine
    waits, ids = [], set()
    for _ in range(9):
        due(store, earlier="0")
        claimed = next_notice(planner)
        ids.add(claimed and claimed.id)
        waits += notices(store, "round(extract(epoch FROM next_at - now()))::int")
    assert len(ids) == 1
    expected = [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert all(abs(seen - due) <= 5 for seen, due in zip(waits, expected, strict=True)), waits
    assert claimed is not None
    answered(planner, claimed, "the receiver answered 500", sent=False)
    standing = read_standing(planner)
    assert (standing.waiting, standing.answer) == (1, "the receiver answered 500")
    answered(planner, claimed, "the receiver answered 200", sent=True)
    assert read_standing(planner).waiting == 0
    assert notices(store, "outcome") == ["sent"]


def test_newest_answer_is_told(store: PlanStore) -> None:
    """What a receiver answered before is not what is the matter now, whatever sorts last."""
    for reason in ("incident", "still"):
        put_on(store.engine, None, reason=reason)
    claimed = [next_notice(store.engine) for _ in range(2)]
    for notice, answer in zip(claimed, ("the receiver timed out", "it answered 500"), strict=True):
        assert notice is not None
        answered(store.engine, notice, answer, sent=False)
    assert read_standing(store.engine).answer == "it answered 500"


def test_two_who_send_at_once_have_different_notices(store: PlanStore) -> None:
    """Nor does one of them wait while the other has a row."""
    for number in range(6):
        put_on(store.engine, None, reason=f"{number}")
    with transaction(store.engine) as other:
        (locked,) = other.exec_driver_sql(
            "SELECT said FROM fairlead_raw.notice ORDER BY next_at LIMIT 1 FOR UPDATE"
        ).scalars()
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda _: next_notice(store.engine), range(6)))
    said = [notice.said for notice in found if notice is not None]
    assert sorted([*said, locked]) == [f"{number}" for number in range(6)]


def test_brakes_and_plans_do_not_wait_behind_a_fleet(store: PlanStore, propose: Plans) -> None:
    """What makes thousands of groups overloaded at once is what somebody brakes for."""
    for number in range(3):
        propose(group=f"group-{number}", observed_only=True)
        found = {f"group-{number}": (datetime.now(UTC), OVERLOADED)}
        with transaction(store.engine) as connection:
            record_findings(connection, found, requests={})
    propose()
    put_on(store.engine, None, reason="incident")
    due(store, earlier="0")
    claimed = [next_notice(store.engine) for _ in range(5)]
    events = [notice.event for notice in claimed if notice is not None]
    assert set(events[:2]) == {"brake.held", "plan.waits"}
    assert events[2:] == ["group.overloaded"] * 3


def test_old_notices_are_given_up_and_pruned(store: PlanStore) -> None:
    """After three days it is said; with the other history they go."""
    put_on(store.engine, None, reason="incident")
    due(store, earlier="3 days 1 second")
    assert end_notices(store.engine, EVENTS) == ["brake.held of all groups: nobody has sent it"]
    assert end_notices(store.engine, EVENTS) == []
    assert read_standing(store.engine).given_up == 1
    messages = read_all_groups(store.engine, DecisionCounts()).messages
    assert [dict(row) for row in messages] == [
        {"state": "given up", "messages": 1},
        {"state": "waiting", "messages": 0},
    ]
    put_on(store.engine, None, reason="of today")
    gone = prune(store.engine, datetime.now(UTC) + timedelta(days=1))
    assert gone.rows["notices that were told or given up"] == 1
    assert notices(store, "said") == ["of today"]


def test_rolled_back_version_is_told_as_taken_back(
    store: PlanStore, publish: Plans, approve: Plans
) -> None:
    """The version that takes its place waits for a person as any other does."""
    publish()
    publish("s2")
    say_made_worse(store.engine, "orders", 2, WORSE, automatic=False)
    record_publication(store, approve("s3", rolled_back_from=1))
    told = notices(store, "event", "version", "said")[2:]
    assert told[0][0] == "plan.made_worse"
    assert told[0][2].endswith("; whether to take it back waits for a person")
    assert [message[:2] for message in told[1:]] == [("plan.waits", 3), ("plan.taken_back", 2)]

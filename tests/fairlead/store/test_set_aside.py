"""If a group is locked or has an invalid value, only this group gets an error."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from fairlead.common.words import shortened
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.records import Decision, Findings, StoredPlan
from fairlead.store.outbox import Outbox, PublishRequest
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import LEASE_UNTIL, SNAPSHOT_AT, MakeDraft, sent
from tests.logins import Login

pytestmark = pytest.mark.postgres

Step = Callable[..., StoredPlan]
GROUPS = ("g0", "g1", "g2")
#: Random text, which Postgres cannot compress to fit into an index.
ENDLESS = secrets.token_hex(3_000)


@contextmanager
def open_approval(url: str, group: str) -> Iterator[psycopg.Connection]:
    """Approve version 1 of a group, and leave the transaction open until the block ends."""
    with psycopg.connect(url) as person:
        person.execute("SELECT fairlead.approve_plan(%s, 1, 'fine')", [group])
        yield person
        person.rollback()


def test_open_approval_delays_only_its_group(
    store: PlanStore, draft: MakeDraft, propose: Step, login: Login
) -> None:
    """While one group's approval is uncommitted, only the decision on this group fails.

    The next run stores the decision.
    """
    for group in GROUPS:
        propose("s1", group=group)
    series = [draft("s2", group=group) for group in GROUPS]
    with open_approval(login("fairlead_approver"), "g1"):
        stored = store.record_decisions(series)
        assert [plan.outcome for plan in stored] == ["plan", "failed", "plan"]
        assert stored[1].reason.startswith("group g1 is skipped: another open transaction")
        assert [plan.version for plan in store.in_state("proposed")] == [2, 1, 2]
    again = store.record_decisions(series)
    assert [plan.created for plan in again] == [False, True, False]
    assert [plan.version for plan in store.in_state("proposed")] == [2, 2, 2]


def test_open_approval_delays_no_other_approval_or_expiry(
    store: PlanStore, propose: Step, login: Login
) -> None:
    """While one approval is uncommitted, plans of other groups can be approved, and can expire."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    plans = [propose("s1", group=group, expires_at=soon) for group in GROUPS]
    with open_approval(login("fairlead_approver"), "g1"):
        refused = store.approve_all(plans, ["few moves"] * 3, "policy")
        assert list(refused) == ["g1"]
        assert [plan.group for plan in store.in_state("approved")] == ["g0", "g2"]
        ended = store.expire_due(soon)
        assert [group for group, _ in ended] == ["g0", "g2"]


def test_open_approval_delays_no_publication(
    store: PlanStore, migrated: str, approve: Step
) -> None:
    """If groups are locked, only their plans wait; the next run completes the publication."""
    outbox = Outbox(store.engine)
    wanted = [
        PublishRequest(group, approve("s1", group=group).version, lease_until=LEASE_UNTIL)
        for group in GROUPS
    ]
    with psycopg.connect(migrated) as other:
        other.execute("SELECT fairlead_raw.lock_group('g2')")
        with outbox.turn("plans", 0) as turn:
            entries = turn.add(wanted)
        assert [entry.group for entry in entries] == ["g0", "g1"]
        other.execute("SELECT fairlead_raw.lock_group('g1')")
        outbox.confirm({entry.group: (entry, sent(1)) for entry in entries})
        states = {plan.group: plan.state for plan in map(store.get, GROUPS, (1, 1, 1))}
        assert states == {"g0": "published", "g1": "sending", "g2": "approved"}
    left = outbox.outstanding()
    outbox.confirm({entry.group: (entry, sent(1)) for entry in left})
    assert store.get("g1", 1).state == "published"


def test_open_approval_ends_after_a_minute(propose: Step, login: Login, store: PlanStore) -> None:
    """Postgres ends a transaction that has been idle for a minute, if it contains an approval."""
    plan = propose("s1", group="g1")
    with open_approval(login("fairlead_approver"), "g1") as person:
        (held,) = person.execute("SHOW idle_in_transaction_session_timeout").fetchone() or ("",)
        assert held == "1min"
    with psycopg.connect(login("fairlead_approver")) as person:
        (held,) = person.execute("SHOW idle_in_transaction_session_timeout").fetchone() or ("",)
        assert held == "0"
    assert store.get("g1", plan.version).state == "proposed"


def findings(member: str) -> Findings:
    return Findings(
        diagnosis="healthy",
        names=(),
        evidence="nothing waits",
        forecast_time_lag_s=0.0,
        utilisation=0.5,
        capacities={member: Capacity(100.0, measured=True, at=SNAPSHOT_AT.timestamp())},
    )


@pytest.mark.parametrize("endless", ["group", "member"])
def test_name_of_6000_characters_is_an_error_of_its_group(store: PlanStore, endless: str) -> None:
    """Only the decision on the group with the long name fails; the error shortens the name."""

    def decision(group: str, member: str = "a") -> Decision:
        known: dict[str, Any] = {"snapshot_at": SNAPSHOT_AT, "reason": "good"}
        return Decision(group=group, snapshot_id="s1", findings=findings(member), **known)

    odd = decision(ENDLESS) if endless == "group" else decision("odd", ENDLESS)
    stored = store.record_decisions([decision("g0"), decision("g1"), odd, decision("g2")])
    assert [plan.created for plan in stored] == [True, True, False, True]
    assert stored[2].outcome == "failed"
    name = shortened(ENDLESS) if endless == "group" else "odd"
    assert stored[2].reason.startswith(
        f"group {name} is skipped: Postgres does not accept a value: "
    )
    assert store.known_groups() == list(GROUPS)


def test_samples_store_all_valid_diagnoses(store: PlanStore) -> None:
    """If one group of a sample has an invalid name, the other diagnoses are stored."""
    found = dict.fromkeys([*GROUPS, ENDLESS], (SNAPSHOT_AT, findings("a")))
    store.record_findings(found, {})
    assert store.known_groups() == list(GROUPS)

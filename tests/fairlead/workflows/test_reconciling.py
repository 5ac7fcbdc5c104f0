"""Publication and withdrawal of plans, with a real store and a real topic.

Belongs elsewhere: the choice of the next step (`tests/fairlead/domain/test_reconciliation.py`),
killed and frozen runs (`test_crashes`), and records of other producers (`test_reconciliation` in
this folder).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import numpy as np
import psycopg
import pytest

from fairlead.domain.groups import LiveGroup
from fairlead.domain.reconciliation import Action
from fairlead.domain.records import StoredPlan
from fairlead.errors import GroupError, KafkaUnavailableError, PlanStateError
from fairlead.kafka.descriptions import group_error, read_description
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.store.attempts import last_attempts
from fairlead.store.freezes import freeze_plans, unfreeze_plans
from fairlead.store.outbox import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.wire.document import MemberShare
from fairlead.wire.record import withdrawn_value
from fairlead.wire.record_reading import VerifiedRecord, read_record
from fairlead.wire.signing import Verifier
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.publication import due_groups, failures_recorded
from fairlead.workflows.reconciling import LATER, SOON, Live, withdraw
from tests.conftest import KafkaTopic
from tests.fairlead.workflows.plans import OPTIONS, Dying, as_planned, live, run, without_members
from tests.fixtures.plans import SNAPSHOT_AT
from tests.records import PUBLIC, SIGNER, newest_record
from tests.stored import plan_history

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Approve = Callable[..., StoredPlan]
#: Fields of Kafka's description of an absent group, and of a rebalancing group.
ABSENT: Final = {"group_state": "Dead", "error": "[Error 69] GroupIdNotFoundError"}
REBALANCING: Final = {"group_state": "PreparingRebalance", "error": None}
#: Time after a third of the lease, when renewal is due.
DUE: Final = SNAPSHOT_AT + OPTIONS.lease / 3


def described(
    raw: Mapping[str, str | None], groups: Iterable[str]
) -> dict[str, LiveGroup | GroupError]:
    """Return each group's error if Kafka describes the group with the fields `raw`."""
    answer: dict[str, Any] = {"protocol_type": "consumer", "protocol_data": "", "members": []}
    answer |= raw
    return {group: group_error(read_description(group, answer)) for group in groups}


absent: Final = partial(described, ABSENT)
rebalancing: Final = partial(described, REBALANCING)


@pytest.fixture
def dying(topic: PlanTopic, settings: Settings) -> PlanTopic:
    """Return a topic whose sender loses its connection after its records are committed."""
    return Dying(settings.kafka.model_copy(update={"plan_topic": topic.name}))


def newest(topic: PlanTopic, verifier: Verifier | None = None) -> VerifiedRecord:
    record = newest_record(topic)
    assert record.value is not None
    return read_record(
        record.value, record.headers, group="orders", origin=topic.origin, verifier=verifier
    )


def add_entry(store: PlanStore, topic: PlanTopic) -> None:
    """Record that a plan is about to be sent, and do not send it, as if the publisher had died."""
    with store.outbox().turn(topic.name, 0) as turn:
        turn.add([PublishRequest("orders", 1, lease_until=SNAPSHOT_AT)])


def test_approved_plan_is_signed_sent_once_and_recorded(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """An approved plan's record is signed and has a lease; the store has the record's position."""
    plan, options = approve(), PublishOptions(timedelta(hours=6), SIGNER)
    run(store, topic, options=options)
    record, stored = newest_record(topic), store.get("orders", 1)
    assert record.value == plan.document
    assert record.position == (stored.partition, stored.record_offset)
    assert (stored.state, stored.topic) == ("published", topic.name)
    read = newest(topic, Verifier.from_text(PUBLIC))
    assert read.identity[1:] == (1, False, plan.sha256)
    assert read.lease_until == SNAPSHOT_AT + timedelta(hours=6)
    assert run(store, topic, options=options) == []
    assert topic.read("orders") == record


def test_sent_plan_is_recorded_although_the_group_changed(
    store: PlanStore, topic: PlanTopic, dying: PlanTopic, approve: Approve
) -> None:
    """A plan sent before a crash is recorded, and not sent again, even if all members left."""
    approve()
    with pytest.raises(KafkaUnavailableError):
        run(store, dying)
    assert store.get("orders", 1).state == "sending"
    first = newest_record(topic)
    (finished,) = run(store, topic, without_members)
    assert finished.action is Action.FINISH
    assert finished.place.endswith(f"at offset {first.position.offset}")
    assert topic.read("orders") == first
    assert store.get("orders", 1).state == "published"


@pytest.mark.parametrize(
    ("live", "state"), [(live, "published"), (without_members, "stale"), (absent, "stale")]
)
def test_intended_plan_is_sent_or_discarded(
    store: PlanStore, topic: PlanTopic, approve: Approve, live: Live, state: str
) -> None:
    """After a crash before sending, the plan is sent if it still fits; otherwise it is stale."""
    approve()
    add_entry(store, topic)
    (done,) = run(store, topic, live)
    assert store.get("orders", 1).state == state
    assert (done.record is None) == (state == "stale")
    assert (topic.read("orders") is None) == (state == "stale")
    assert store.outbox().outstanding() == []


def test_refused_record_stops_no_other_plan(
    settings: Settings, kafka_topic: KafkaTopic, store: PlanStore, approve: Approve
) -> None:
    """Of seven plans, the one whose record is too large is refused; the others are published."""
    name = kafka_topic(config={"cleanup.policy": "compact", "max.message.bytes": "20000"})
    random = np.random.default_rng(1)
    sizes = {f"g{number}": 5_000 if number == 4 else 3 for number in range(7)}
    for group, size in sizes.items():
        owned = {"t0": np.arange(size, dtype=np.int32)}
        approve(
            group=group,
            partition_counts={"t0": size},
            members={"a": MemberShare(("t0",), owned)},
            weights={"t0": random.random(size)},
        )

    def live(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        return {
            group: replace(
                as_planned(group),
                members=(replace(as_planned(group).members[0], name="a"),),
                partition_counts={"t0": sizes[group]},
            )
            for group in groups
        }

    with PlanTopic(settings.kafka.model_copy(update={"plan_topic": name})) as topic:
        results = run(store, topic, live)
        assert {result.group for result in results if result.record is None} == {"g4"}
        states = {group: store.get(group, 1).state for group in sizes}
        assert states == {**dict.fromkeys(states, "published"), "g4": "refused"}
        assert topic.read("g4") is None
        assert topic.read("g6") is not None


@pytest.mark.parametrize(
    ("live", "now", "reason"),
    [
        (
            without_members,
            SNAPSHOT_AT,
            "members that left: orders-1, orders-2; topic t0 has 0 partitions instead of 3",
        ),
        (absent, SNAPSHOT_AT, "the group does not exist any more"),
        (live, SNAPSHOT_AT + timedelta(days=40_000), "it has expired"),
    ],
)
def test_plan_that_no_longer_fits_is_stale(  # noqa: PLR0917 - fixtures
    store: PlanStore, topic: PlanTopic, approve: Approve, live: Live, now: datetime, reason: str
) -> None:
    """A plan that does not fit the group, or has expired, becomes stale with the reason."""
    approve()
    (refused,) = run(store, topic, live, now=now)
    assert (refused.action, refused.reason) == (Action.DISCARD, reason)
    assert store.get("orders", 1).state == "stale"
    assert topic.read("orders") is None
    assert run(store, topic) == []


def test_altered_document_is_not_sent(
    store: PlanStore, migrated: str, topic: PlanTopic, approve: Approve
) -> None:
    """A plan whose bytes were changed in the database is not sent, since its hash is wrong."""
    plan = approve()
    altered = plan.document.replace(b"sticky", b"stucky")
    with psycopg.connect(migrated) as connection:
        connection.execute("SET session_replication_role = replica")  # no trigger runs
        connection.execute("ALTER TABLE fairlead_raw.plan DROP CONSTRAINT plan_sha256_check")
        connection.execute("UPDATE fairlead_raw.plan SET document = %s", [altered])
    (refused,) = run(store, topic)
    assert (refused.waits, "hash" in refused.reason) == (True, True)
    assert topic.read("orders") is None
    assert store.get("orders", 1).state == "approved"


def test_incomplete_plan_is_not_sent(store: PlanStore, topic: PlanTopic, approve: Approve) -> None:
    """A plan that leaves partitions without an owner is not sent."""
    approve(members={name: MemberShare(("t0",), {}) for name in ("orders-1", "orders-2")})
    (refused,) = run(store, topic)
    assert (refused.waits, "t0-0" in refused.reason) == (True, True)
    assert topic.read("orders") is None


@pytest.mark.parametrize("state", ["approved", "sending"])
def test_plan_of_a_rebalancing_group_waits_with_a_reason(
    store: PlanStore, topic: PlanTopic, approve: Approve, state: str
) -> None:
    """The plan of a rebalancing group waits; the reason and the next attempt's time are stored."""
    approve()
    if state == "sending":
        add_entry(store, topic)
    (result,) = run(store, topic, rebalancing)
    assert (result.waits, result.passing) == (True, True)
    (row,) = plan_history(store, "orders")
    assert (row["state"], row["not_sent"]) == (state, result.reason)
    assert "The group is rebalancing (PreparingRebalance)" in row["not_sent"]
    assert row["sent_again_at"] - row["not_sent_at"] == SOON
    assert due_groups(store, OPTIONS, row["not_sent_at"])[0] == []
    assert due_groups(store, OPTIONS, row["sent_again_at"])[0] == ["orders"]
    assert run(store, topic)[0].published
    (row,) = plan_history(store, "orders")
    assert (row["state"], row["not_sent"]) == ("published", None)


def test_frozen_plan_waits_with_the_author_of_the_freeze(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """The plan of a frozen group waits, without a request to Kafka, until the group is unfrozen."""
    approve()
    freeze_plans(store.engine, "orders", reason="incident 4711", actor="kim")

    def ask(_: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        raise AssertionError

    groups, why = due_groups(store, OPTIONS, datetime.now(UTC))
    assert (groups, "incident 4711" in why) == ([], True)
    (result,) = run(store, topic, ask)
    assert result.waits
    assert "group orders is frozen by kim since" in result.reason
    assert last_attempts(store.engine, ["orders"])["orders"].reason == result.reason
    unfreeze_plans(store.engine, "orders", reason="it is over")
    assert last_attempts(store.engine, ["orders"]) == {}
    assert run(store, topic)[0].published


def test_failed_reconciliation_has_a_reason(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """If the broker is down, an error is raised; the reason and the next attempt are stored."""
    approve()

    def away(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        raise KafkaUnavailableError(f"Kafka does not describe {list(groups)}")

    with pytest.raises(KafkaUnavailableError), failures_recorded(store, ["orders"]):
        run(store, topic, away)
    attempt = last_attempts(store.engine, ["orders"])["orders"]
    assert attempt.reason == "Kafka does not describe ['orders']"
    assert attempt.again_at - attempt.at == SOON


def test_lease_is_renewed_after_a_third_of_it(
    store: PlanStore, topic: PlanTopic, approve: Approve, propose: Approve
) -> None:
    """Renewal changes only the lease; neither a waiting plan nor a rebalance prevents renewal."""
    approve()
    run(store, topic)
    propose("s2")
    first, before = (
        newest(topic),
        (plan_history(store, "orders"), store.memories(["orders"]).changes),
    )
    early = DUE - timedelta(seconds=1)
    assert due_groups(store, OPTIONS, early)[0] == []
    assert run(store, topic, now=early) == []
    assert due_groups(store, OPTIONS, DUE)[0] == ["orders"]
    (renewed,) = run(store, topic, rebalancing, now=DUE)
    assert (renewed.action, renewed.published) == (Action.RENEW, False)
    assert due_groups(store, OPTIONS, DUE)[0] == []
    again = newest(topic)
    assert (again.identity, again.lease_until) == (first.identity, DUE + OPTIONS.lease)
    assert store.get("orders", 1).lease_until == DUE + OPTIONS.lease
    after = plan_history(store, "orders"), store.memories(["orders"]).changes
    assert after == before


def test_lease_of_an_absent_group_is_not_renewed(
    store: PlanStore, topic: PlanTopic, approve: Approve
) -> None:
    """The lease of an absent group is not renewed; when the lease ends, the plan is withdrawn."""
    approve()
    run(store, topic)
    until = store.get("orders", 1).lease_until
    assert until is not None
    (waiting,) = run(store, topic, absent, now=DUE)
    assert waiting.waits
    assert store.get("orders", 1).lease_until == until
    attempt = last_attempts(store.engine, ["orders"])["orders"]
    assert attempt.again_at - attempt.at == LATER
    assert due_groups(store, OPTIONS, max(DUE, attempt.at))[0] == []
    approve("s2")
    assert due_groups(store, OPTIONS, max(DUE, attempt.at))[0] == ["orders"]
    store.mark_stale(store.get("orders", 2), reason="enough")
    (withdrawn,) = run(store, topic, absent, now=until)
    assert withdrawn.withdrawn
    assert store.get("orders", 1).state == "withdrawn"


def test_withdrawal_also_ends_a_waiting_version(
    store: PlanStore, topic: PlanTopic, publish: Approve, approve: Approve
) -> None:
    """A withdrawal sends a record that ends the published plan. A waiting plan becomes stale."""
    publish("s1")
    approve("s2")
    done = withdraw(store, "orders", topic=topic, options=OPTIONS, reason="too few", actor="kim")
    record = newest_record(topic)
    assert record.value == withdrawn_value("orders", 1)
    assert done.place.endswith(f"at offset {record.position.offset}")
    assert [row["state"] for row in plan_history(store, "orders")] == ["withdrawn", "stale"]
    with pytest.raises(PlanStateError, match="group orders has no published plan to withdraw"):
        withdraw(store, "orders", topic=topic, options=OPTIONS, reason="again")
    assert run(store, topic, now=SNAPSHOT_AT + 2 * OPTIONS.lease) == []

"""Real consumers set up and clean up each partition's state in rebalances, as in KIP-54."""

from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from fairlead.followers.cleanup import aiokafka as aiokafka_cleanup
from fairlead.followers.cleanup import kafka_python as kafka_python_cleanup
from fairlead.sandbox import Services
from tests.fairlead.followers.helpers import Fleet, Member
from tests.waiting import eventually

pytestmark = pytest.mark.kafka


class Journal:
    """Records the callbacks of the application, in order."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, list[int]]] = []

    def note(self, what: str) -> Any:
        """Return a callback that records the partitions it is called with, labelled with `what`."""
        return lambda partitions: self.notes.append((what, sorted(p for _, p in partitions)))

    def changes(self) -> list[tuple[str, list[int]]]:
        """Return, in order, the partitions that were set up ("new") and cleaned up ("lost")."""
        return [note for note in self.notes if note[0] != "revoked"]


def join(fleet: Fleet, name: str, journal: Journal, **options: Any) -> Member:
    """Start a plan follower with a CleanupListener that writes to the journal."""
    callbacks = journal.note("new"), journal.note("lost")
    before_revoke = journal.note("revoked")
    if fleet.client == "aiokafka":
        return fleet.join(
            name,
            listener=lambda consumer: aiokafka_cleanup.CleanupListener(
                consumer, *callbacks, before_revoke=before_revoke
            ),
            **options,
        )
    listener = kafka_python_cleanup.CleanupListener(
        *callbacks, before_revoke=before_revoke, cooperative=options.get("cooperative", False)
    )
    return fleet.join(name, listener=listener, **options)


@pytest.mark.parametrize(
    ("fleet", "options"),
    [("kafka-python", {}), ("aiokafka", {}), ("kafka-python", {"cooperative": True})],
    indirect=["fleet"],
)
def test_only_lost_partitions_are_cleaned_up(fleet: Fleet, options: dict[str, Any]) -> None:
    """Partitions that an eager rebalance revokes and assigns again are not cleaned up."""
    fleet.publish(fleet.plan(1, a=[0], b=[1, 2, 3]))
    journals = {"a": Journal(), "b": Journal()}
    first = join(fleet, "a", journals["a"], **options)
    eventually(lambda: first.status().plan_version == 1, "a leads by the plan")
    eventually(lambda: journals["a"].changes() == [("new", [0, 1, 2, 3])], "a has all")
    join(fleet, "b", journals["b"], **options)
    eventually(lambda: journals["b"].changes() == [("new", [1, 2, 3])], "b has its share")
    eventually(lambda: journals["a"].changes()[1:] == [("lost", [1, 2, 3])], "a has given them up")
    fleet.publish(fleet.plan(2, a=[0, 1], b=[2, 3]))
    eventually(lambda: journals["b"].changes()[1:] == [("lost", [1])], "b has given up one")
    eventually(lambda: len(journals["a"].changes()) == 3, "a has got it")
    assert journals["a"].changes() == [("new", [0, 1, 2, 3]), ("lost", [1, 2, 3]), ("new", [1])]
    assert journals["b"].changes() == [("new", [1, 2, 3]), ("lost", [1])]
    if not options:  # an eager client first revokes all partitions of `a`
        assert ("revoked", [0, 1, 2, 3]) in journals["a"].notes


def test_member_thrown_out_cleans_up_everything(fleet: Fleet, services: Services) -> None:
    """A removed member cleans up all its partitions, because other members may have read them."""
    journal = Journal()
    join(fleet, "a", journal, group_instance_id="a")
    eventually(lambda: journal.changes() == [("new", [0, 1, 2, 3])], "a has all")
    admin = KafkaAdminClient(bootstrap_servers=services.bootstrap_servers)
    try:
        admin.remove_group_members(fleet.group, [MemberToRemove(group_instance_id="a")])
    finally:
        admin.close()
    everything = [0, 1, 2, 3]
    eventually(lambda: len(journal.changes()) == 3, "a is back")
    assert journal.changes() == [("new", everything), ("lost", everything), ("new", everything)]

"""Real consumers set up and clean up each partition's state in rebalances, as in KIP-54."""

from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from fairlead.followers.cleanup import aiokafka as aiokafka_cleanup
from fairlead.followers.cleanup import kafka_python as kafka_python_cleanup
from fairlead.sandbox import Services
from tests.fairlead.followers.helpers import Fleet, Member, make_plan
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


def publish(fleet: Fleet, version: int, **shares: list[int]) -> None:
    topic = fleet.topics[0]
    members = {name: {topic: share} for name, share in shares.items()}
    fleet.publish(
        make_plan(members, partition_counts={topic: 4}, group=fleet.group, version=version)
    )


def test_only_lost_partitions_are_cleaned_up(fleet: Fleet) -> None:
    """Partitions that an eager rebalance revokes and assigns again are not cleaned up."""
    publish(fleet, 1, a=[0], b=[1, 2, 3])
    journals = {"a": Journal(), "b": Journal()}
    first = join(fleet, "a", journals["a"])
    eventually(lambda: first.status().plan_version == 1, "a leads by the plan")
    eventually(lambda: journals["a"].changes() == [("new", [0, 1, 2, 3])], "a has all")
    join(fleet, "b", journals["b"])
    eventually(lambda: journals["b"].changes() == [("new", [1, 2, 3])], "b has its share")
    eventually(lambda: journals["a"].changes()[1:] == [("lost", [1, 2, 3])], "a has given them up")
    publish(fleet, 2, a=[0, 1], b=[2, 3])
    eventually(lambda: journals["b"].changes()[1:] == [("lost", [1])], "b has given up one")
    eventually(lambda: len(journals["a"].changes()) == 3, "a has got it")
    assert journals["a"].changes() == [("new", [0, 1, 2, 3]), ("lost", [1, 2, 3]), ("new", [1])]
    assert ("revoked", [0, 1, 2, 3]) in journals["a"].notes  # `a` could commit all its partitions


@pytest.mark.parametrize("fleet", ["kafka-python"], indirect=True)
def test_cooperative_changes_add_up(fleet: Fleet) -> None:
    """With a cooperative client, the same partitions are cleaned up as with an eager client."""
    publish(fleet, 1, a=[0], b=[1, 2, 3])
    journals = {"a": Journal(), "b": Journal()}
    first = join(fleet, "a", journals["a"], cooperative=True)
    eventually(lambda: first.status().plan_version == 1, "a leads by the plan")
    eventually(lambda: journals["a"].changes() == [("new", [0, 1, 2, 3])], "a has all")
    join(fleet, "b", journals["b"], cooperative=True)
    eventually(lambda: journals["b"].changes() == [("new", [1, 2, 3])], "b has its share")
    eventually(lambda: journals["a"].changes()[1:] == [("lost", [1, 2, 3])], "a has given them up")
    publish(fleet, 2, a=[0, 1], b=[2, 3])
    eventually(lambda: len(journals["a"].changes()) == 3, "a has got one back")
    assert journals["a"].changes() == [("new", [0, 1, 2, 3]), ("lost", [1, 2, 3]), ("new", [1])]
    assert journals["b"].changes() == [("new", [1, 2, 3]), ("lost", [1])]


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

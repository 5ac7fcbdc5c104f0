"""A broker with the assignor `fairlead` follows published plans while members change."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kafka.errors import KafkaError

from fairlead.domain.records import StoredPlan
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.members_topic import MembersTopic
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.kafka.rebalance_trigger import TriggerConnection
from fairlead.settings import KafkaSettings, Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.adoption import observe
from fairlead.workflows.following import follow
from fairlead.workflows.rebalancing import BrokerAdoption
from tests.fairlead.kafka.members import BrokerAssigned
from tests.fairlead.workflows.test_following import draft_of, publish
from tests.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def cluster(settings: Settings) -> KafkaSettings:
    """Return the settings of the test run's broker, whose assignor reads plans and members."""
    return settings.kafka


def test_plans_are_followed_through_changes_of_members(
    cluster: KafkaSettings,
    store: PlanStore,
    approve: Callable[..., StoredPlan],
    kafka_topic: Any,
    unique_name: str,
) -> None:
    """A new plan revokes only partitions that move. A member that returns gets its share back."""
    group, topic = unique_name, kafka_topic(partitions=4)
    with (
        PlanTopic(cluster) as plans,
        KafkaGateway(cluster) as gateway,
        BrokerAssigned(cluster, **{"group.remote.assignor": "fairlead"}) as members,
    ):
        plans.ensure()
        MembersTopic(cluster).ensure()
        for name in "abc":
            members.join(group, name, [topic])
        eventually(lambda: sorted(map(len, members.owned().values())) == [1, 1, 1], "they share")
        in_force: list[StoredPlan] = []

        def is_followed() -> BrokerAdoption:
            (done,) = follow(gateway, cluster, [group], lambda _: in_force)
            return done

        for version, shares in enumerate(
            ({"a": [0, 1, 2, 3], "b": [], "c": []}, {"a": [0, 1, 2], "b": [3], "c": []}), 1
        ):
            eventually(
                lambda: gateway.broker_groups([group])[group].state == "Stable", "it settles"
            )
            before = members.owned()
            members.revoked.clear()
            ids = gateway.broker_groups([group])[group].topic_ids
            approve(f"s{version}", **draft_of(group, topic, shares, topic_ids=ids))
            assert publish(store, group, gateway, plans).record is not None
            in_force[:] = store.in_state("published", groups=[group])
            rounds: list[BrokerAdoption] = []

            def reached(rounds: list[BrokerAdoption] = rounds) -> bool:
                rounds.append(is_followed())
                return rounds[-1].reached

            eventually(reached, "the broker's target is the plan")
            assert (rounds[-1].version, rounds[-1].reason) == (version, "")
            assert any(
                done.triggers for done in rounds
            )  # without a rebalance trigger, the broker does not compute an assignment
            wanted = {name: {topic: ns} if ns else {} for name, ns in shares.items()}
            eventually(lambda wanted=wanted: members.owned() == wanted, "it is adopted")  # type: ignore[misc]
            moved = {
                (name, number)
                for name, share in before.items()
                for number in set(share.get(topic, ())) - set(shares[name])
            }
            revoked = [(name, number) for name, ones in members.revoked for _, number in ones]
            assert sorted(revoked) == sorted(moved)
        eventually(lambda: gateway.broker_groups([group])[group].state == "Stable", "it settles")
        assert is_followed().triggers == 0  # the assignment is already as planned
        (observed,) = observe(in_force, gateway.live_groups, patiently=(), until=0.0)
        assert observed.adoption is not None
        assert observed.adoption.adherence == 1.0
        members.leave("a")
        members.settle(4)
        eventually(lambda: is_followed().reached, "the others have its share")
        members.join(group, "a", [topic])
        eventually(lambda: is_followed().reached, "it is told who has come")
        eventually(lambda: members.owned()["a"] == {topic: [0, 1, 2]}, "a has its share again")


def test_member_that_keeps_its_partitions_is_named(
    cluster: KafkaSettings, kafka_topic: Any, unique_name: str
) -> None:
    """If a member does not give up revoked partitions, the group's error names the member.

    Consumers on librdkafka sometimes behave like this.
    """
    group, topic = unique_name, kafka_topic(partitions=4)
    with (
        PlanTopic(cluster) as plans,
        KafkaGateway(cluster) as gateway,
        TriggerConnection(cluster) as connection,
    ):
        plans.ensure()
        MembersTopic(cluster).ensure()
        joins = {
            "member_epoch": 0,
            "rebalance_timeout_ms": 900_000,
            "subscribed_topic_names": [topic],
            "server_assignor": "fairlead",
            "topic_partitions": [],
        }

        def beat(member: str, **more: Any) -> Any:
            answer = connection.send(group, {"member_id": member, **more})
            assert not answer.error_code, answer
            return answer

        def broker_view() -> Any:
            return gateway.broker_groups([group])[group]

        def joined() -> bool:
            # The first group on a broker waits until the offsets topic exists.
            with suppress(KafkaError, AssertionError):
                answers["keeps"] = beat("keeps", **joins)
            if not answers:
                connection.close()
            return bool(answers)

        answers: dict[str, Any] = {}
        eventually(joined, "the first one joins")
        keeps = answers["keeps"]
        waits = beat("waits", **joins)

        def both_beat() -> bool:
            beat("keeps", member_epoch=keeps.member_epoch)
            beat("waits", member_epoch=waits.member_epoch)
            return bool([behind.member_id for behind in broker_view().behind] == ["keeps"])

        eventually(both_beat, "one waits for the other")
        assert "it waits for keeps to give up partitions" in str(
            gateway.live_groups([group])[group]
        )

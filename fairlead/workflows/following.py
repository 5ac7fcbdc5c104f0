"""Following by the broker: who is who is told to it, and it is made to assign when plans arrive.

Belongs here: groups of the consumer protocol (KIP-848) that have a published plan: the record of
their members, whether the broker's target is what the plan gives them, and nudges where it is not.
Does not: publishing plans (`publication`), nor how far consumers have followed (`adoption`).

Nothing here may fail a publication or a look: what cannot be done is said, and done at the next
pass.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fairlead.domain.records import StoredPlan
from fairlead.errors import FairleadError
from fairlead.kafka.consumer_protocol import ASSIGNOR, BrokerGroup
from fairlead.kafka.descriptions import broker_names, holds_up
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.members_topic import MembersTopic
from fairlead.settings import KafkaSettings
from fairlead.wire.members_record import Membership
from fairlead.workflows.nudging import STAYS_S, BrokerAdoption, BrokerPlan, nudge_all, out_of_reach

log = logging.getLogger(__name__)

#: Two heartbeats of brokers' own setting, `group.consumer.heartbeat.interval.ms`.
HELD_UP_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.5
#: Groups that are nudged side by side: each takes a consumer.
AT_ONCE: Final = 50

Published = Callable[[Sequence[str]], Sequence[StoredPlan]]


def follow(
    gateway: KafkaGateway,
    settings: KafkaSettings,
    groups: Collection[str],
    published: Published,
    *,
    stays_s: Sequence[float] = STAYS_S,
) -> list[BrokerAdoption]:
    """Have brokers follow published plans, of the groups that they assign.

    The record of members goes first; then groups whose target is another one are nudged. Raises
    nothing that Kafka or a plan may be the reason of.

    Parameters
    ----------
    gateway
        To the cluster.
    settings
        How to reach it.
    groups
        Those of them that brokers do not assign are left alone.
    published
        Tells the published plans of groups.
    stays_s
        How long one nudge after the other stays at most.

    Returns
    -------
    One for each group that a broker assigns and that has a published plan.
    """
    try:
        topic = MembersTopic(settings)
        assigned = gateway.assigned_by_brokers(groups)
        if not assigned:
            return []
        _make(topic)  # also where there is no plan yet
        wanted = {plan.group: plan for plan in published(assigned)}
        found = gateway.broker_groups(sorted(wanted))
        topics = gateway.topics_of(
            {topic for described in found.values() for topic in read_by(described)}
        )
    except FairleadError as error:
        log.warning("Groups that brokers assign are left alone for now: %s", error)
        return []
    said = tell_members(topic, found, topics)
    counts = {topic: count for topic, (_, count) in topics.items()}
    done: list[BrokerAdoption] = []
    goals: dict[str, BrokerPlan] = {}
    for group in sorted(wanted):
        version = wanted[group].version
        if reason := said or out_of_reach(found[group]):
            done.append(BrokerAdoption(group, version, reached=False, reason=reason))
            continue
        try:
            goals[group] = BrokerPlan(wanted[group].verify(), counts)
        except FairleadError as error:
            done.append(BrokerAdoption(group, version, reached=False, reason=str(error)))
    names = list(goals)
    for first in range(0, len(names), AT_ONCE):
        portion = {name: goals[name] for name in names[first : first + AT_ONCE]}
        done += nudge_all(portion, gateway.broker_groups, settings, stays_s=stays_s)
    return _held_up(done, gateway)


def _held_up(done: Sequence[BrokerAdoption], gateway: KafkaGateway) -> list[BrokerAdoption]:
    """Name who holds a group up whose target was as wanted before: it has had time to follow.

    A member that has missed what it was told, as librdkafka's do at times, never gives it up.
    """
    waiting = [adoption.group for adoption in done if adoption.reached and not adoption.nudges]
    until = time.monotonic() + HELD_UP_S
    since: dict[str, set[tuple[str, int]]] = {}
    said: dict[str, str] = {}
    while waiting:
        try:
            found = gateway.broker_groups(waiting)
        except FairleadError as error:
            log.info("Nobody knows who holds groups up: %s", error)
            return [*done]
        for group, described in found.items():
            behind = {(member.member_id, member.epoch) for member in described.behind}
            since[group] = since.get(group, behind) & behind
            names = broker_names(described)
            said[group] = holds_up(sorted(names[member] for member, _ in since[group]))
        waiting = [group for group in waiting if since.get(group)]
        if time.monotonic() >= until:
            break
        if waiting:
            time.sleep(_LOOK_AGAIN_S)
    return [
        replace(adoption, reached=False, reason=said[adoption.group])
        if adoption.group in waiting
        else adoption
        for adoption in done
    ]


def _make(topic: MembersTopic) -> None:
    """Make the members topic, for which brokers wait: before, they move nothing."""
    try:
        topic.ensure()
    except FairleadError as error:
        log.info("Brokers cannot be told who the members of groups are: %s", error)


def tell_members(
    topic: MembersTopic,
    found: Mapping[str, BrokerGroup],
    topics: Mapping[str, tuple[str, int]],
) -> str:
    """Tell brokers who is in groups, where it is not what was said last; returns why it cannot be.

    Parameters
    ----------
    topic
        Where they are told.
    found
        Groups that brokers assign, as they are now; those whose assignor follows no plans, and
        those without members, are left out.
    topics
        Topic to its id and number of partitions.
    """
    at = datetime.now(UTC)
    now = {
        group: Membership(
            group,
            at,
            broker_names(described),
            {t: topics[t][0] for t in read_by(described) if t in topics},
        )
        for group, described in found.items()
        if described.error is None and described.consumers and described.assignor == ASSIGNOR
    }
    if not now:
        return ""
    try:
        known = topic.newest(now)
        topic.send(
            [
                described
                for group, described in now.items()
                if group not in known or known[group][0].says() != described.says()
            ],
            known,
        )
    except FairleadError as error:
        log.warning("Brokers are not told who the members of groups are: %s", error)
        return f"the broker is not told who its members are: {error}"
    return ""


def read_by(found: BrokerGroup) -> set[str]:
    """Return the topics that some consumer of a group subscribes to."""
    return {topic for consumer in found.consumers for topic in consumer.topics}

"""Make brokers follow plans, for groups whose partitions a broker assigns (KIP-848).

Belongs here: sending brokers the names of a group's members, and triggering rebalances while the
broker's target assignment differs from the plan. Belongs elsewhere: publishing plans
(`publication`), and the adherence of consumers (`adoption`).

If an error occurs here, it is logged, and the next pass tries again. The publication or the sample
that called this module still succeeds.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fairlead.domain.records import StoredPlan
from fairlead.errors import FairleadError
from fairlead.kafka.consumer_protocol import ASSIGNOR, BrokerGroup
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.members_topic import MembersTopic
from fairlead.settings import KafkaSettings
from fairlead.wire.members import member_names
from fairlead.wire.members_record import Membership
from fairlead.workflows.rebalancing import (
    STAYS_S,
    BrokerAdoption,
    BrokerPlan,
    out_of_reach,
    trigger_rebalances,
)

log = logging.getLogger(__name__)

#: Maximum number of groups whose rebalance is triggered at the same time.
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
    """Make brokers follow the published plans of groups whose partitions they assign.

    First sends brokers the names of the groups' members. Then triggers a rebalance of each group
    whose target assignment differs from its plan. If Kafka does not answer or a plan is invalid,
    raises nothing: the error is in the result or the log.

    Parameters
    ----------
    gateway, settings
        The cluster.
    groups
        Names of groups; groups whose partitions no broker assigns are skipped.
    published
        Returns the published plans of groups.
    stays_s
        Maximum seconds that the first, second, ... rebalance trigger stays in a group.

    Returns
    -------
    One result per group that has a published plan, and whose partitions a broker assigns.
    """
    try:
        topic = MembersTopic(settings)
        assigned = gateway.assigned_by_brokers(groups)
        if not assigned:
            return []
        unusable = _ensure(topic)  # needed even if there is no plan: brokers read it to assign
        wanted = {plan.group: plan for plan in published(assigned)}
        described_groups = gateway.broker_groups(sorted(wanted))
        topics = gateway.topics_of(
            {topic for described in described_groups.values() for topic in read_by(described)}
        )
    except FairleadError as error:
        log.warning("Groups of the consumer protocol (KIP-848) are skipped this time: %s", error)
        return []
    failure = unusable or send_members(topic, described_groups, topics)
    counts = {topic: count for topic, (_, count) in topics.items()}
    results: list[BrokerAdoption] = []
    goals: dict[str, BrokerPlan] = {}
    for group in sorted(wanted):
        version = wanted[group].version
        if reason := out_of_reach(described_groups[group]) or failure:
            results.append(BrokerAdoption(group, version, reached=False, reason=reason))
            continue
        try:
            goals[group] = BrokerPlan(wanted[group].verify(), counts)
        except FairleadError as error:
            results.append(BrokerAdoption(group, version, reached=False, reason=str(error)))
    names = list(goals)
    for first in range(0, len(names), AT_ONCE):
        portion = {name: goals[name] for name in names[first : first + AT_ONCE]}
        results += trigger_rebalances(portion, gateway.broker_groups, settings, stays_s=stays_s)
    return results


def _ensure(topic: MembersTopic) -> str:
    """Create the members topic if it is missing; return the error as text, or ""."""
    try:
        topic.ensure()
    except FairleadError as error:
        log.warning("The topic %s cannot be created: %s", topic.name, error)
        return f"the list of its members cannot be sent to the broker: {error}"
    return ""


def send_members(
    topic: MembersTopic,
    groups: Mapping[str, BrokerGroup],
    topics: Mapping[str, tuple[str, int]],
) -> str:
    """Send brokers the members of each group whose members changed; return the error, or "".

    Parameters
    ----------
    topic
        The members topic.
    groups
        Present descriptions of groups in which brokers assign partitions. Groups without members,
        and groups whose assignor follows no plans, are skipped.
    topics
        Maps each topic to its id and number of partitions.
    """
    at = datetime.now(UTC)
    now = {
        group: Membership(
            group,
            at,
            member_names(described.consumers),
            {t: topics[t][0] for t in read_by(described) if t in topics},
        )
        for group, described in groups.items()
        if described.error is None and described.consumers and described.assignor == ASSIGNOR
    }
    if not now:
        return ""
    try:
        known = topic.memberships(now)
        topic.send(
            [
                described
                for group, described in now.items()
                if group not in known or replace(known[group][0], at=at) != described
            ],
            known,
        )
    except FairleadError as error:
        log.warning("The lists of groups' members cannot be sent to brokers: %s", error)
        return f"the list of its members cannot be sent to the broker: {error}"
    return ""


def read_by(group: BrokerGroup) -> set[str]:
    """Return the topics that at least one consumer of a group subscribes to."""
    return {topic for consumer in group.consumers for topic in consumer.topics}

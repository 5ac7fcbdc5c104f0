"""The gateway to a Kafka cluster: its groups, their members and offsets.

Belongs here: opening both clients, the order of requests, and retries. Belongs elsewhere: decoding
responses (`descriptions`, `offsets`), the table of samples (`fairlead.domain.samples`), plans
(`plan_topic`).
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Self, TypeVar

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from kafka.errors import BrokerResponseError, KafkaError, RequestTimedOutError
from tenacity import Retrying, retry_if_exception

from fairlead.common.librdkafka import kafka_error
from fairlead.common.progress import ReportProgress, phase
from fairlead.domain.groups import (
    FetchSources,
    GroupDescription,
    GroupProblem,
    ListedGroups,
    LiveGroup,
    LogOffsets,
)
from fairlead.domain.samples import GroupSnapshot, new_snapshot_id, samples_of
from fairlead.errors import ConfigurationError, GroupError, KafkaUnavailableError
from fairlead.kafka.agreed_shares import with_agreed_shares
from fairlead.kafka.commits import fetch_commits
from fairlead.kafka.consumer_protocol import CONSUMER, BrokerGroup, describe_broker_groups
from fairlead.kafka.descriptions import (
    CONSUMER_PROTOCOL_TYPE,
    MOVING,
    NUL,
    REBALANCING,
    group_error,
    problem_in,
    read_broker_group,
    read_description,
    undescribed,
)
from fairlead.kafka.fetch_sources import read_sources, topics_of_racks
from fairlead.kafka.kafka_python_settings import kafka_python_settings, open_admin
from fairlead.kafka.offsets import (
    UNLISTED_TOPICS_PER_GROUP,
    TopicSizes,
    described_topics,
    log_offsets,
    topic_sizes,
)
from fairlead.kafka.reachability import require_broker
from fairlead.kafka.refusals import raise_if_refused, refusal
from fairlead.kafka.requests import backoff, reader
from fairlead.kafka.stable_ends import with_stable_ends
from fairlead.settings import KafkaSettings
from fairlead.wire.partitions import kafka_uuid

log = logging.getLogger(__name__)

Result = TypeVar("Result")

GROUPS_PER_DESCRIPTION: Final = 200
#: Maximum length of a group id in bytes, because indexes of Postgres limit the length.
LONGEST_GROUP_BYTES: Final = 1_000

#: Seconds to wait for the end of a rebalance before a group is left out of a sample.
SETTLING_S: Final = 10.0


class KafkaGateway:
    """Reads the consumer groups of a cluster. Use it as a context manager, in one thread.

    Parameters
    ----------
    settings
        How to reach the cluster.

    Raises
    ------
    ConfigurationError
        librdkafka does not know a setting, or kafka-python has no equivalent of a security setting.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._timeout_s = settings.request_timeout_s
        kafka_python_settings(settings.librdkafka())  # raises for a setting without equivalent
        self._admin = self._new_admin()
        self._reader: Consumer | None = None
        self._kafka_python: KafkaAdminClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._close_kafka_python()
        raise_if_refused(error, self.settings)

    def list_groups(self) -> list[str]:
        """Return the ids of the cluster's consumer groups, including empty groups, ascending.

        Leaves out groups of other protocols (Connect, share groups), ids under which offsets were
        committed without a group, and ids that Postgres cannot store: ids with a NUL character, or
        ids that are too long. Logs a warning for each id that is too long.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        names = []
        for name in self.listed_groups().consumer:
            if (size := len(name.encode())) <= LONGEST_GROUP_BYTES:
                names.append(name)
            else:
                log.warning(
                    "Group %s... is left out: its id has %s bytes; Fairlead supports at most %s",
                    name[:80],
                    f"{size:,}",
                    f"{LONGEST_GROUP_BYTES:,}",
                )
        return names

    def listed_groups(self) -> ListedGroups:
        """Return the cluster's groups by kind; leave out ids with a NUL character.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        kinds: dict[str, list[str]] = {}
        for group in self._listed():
            if NUL not in group["group_id"]:
                kinds.setdefault(_kind(group), []).append(group["group_id"])
        consumer, memberless = (
            sorted(kinds.pop(kind, [])) for kind in (CONSUMER_PROTOCOL_TYPE, "")
        )
        return ListedGroups(
            consumer, memberless, {kind: len(ids) for kind, ids in sorted(kinds.items())}
        )

    def snapshot(
        self,
        groups: Sequence[str],
        *,
        snapshot_id: str | None = None,
        patience_s: float = SETTLING_S,
        before: pa.Table | None = None,
        progress: ReportProgress = lambda _: None,
    ) -> GroupSnapshot:
        """Take a snapshot of groups: read members, then committed, begin and end offsets.

        If a group has an error, its row has the error; other groups are not affected. Topics and
        partitions that are deleted meanwhile are left out. Partitions that are added meanwhile
        appear in the next snapshot.

        Parameters
        ----------
        groups
            Group ids.
        snapshot_id
            Id of the snapshot (ids sort by time); None: make a new id.
        patience_s
            Total seconds to wait for groups that are rebalancing.
        before
            The previous sample, at most one row per group. If a partition's commit has not changed
            since this sample, the partition's last stable offset is read as well. None: no last
            stable offsets are read.
        progress
            Called with a line for the user every few seconds, and at the end of each phase.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        descriptions = self._describe(sorted(set(groups)), patience_s, progress)
        started = time.monotonic()
        # Also read the commits of groups that cannot be planned, since pages show their lag.
        commits = self._ask_kafka_python(
            lambda admin: fetch_commits(admin, sorted(descriptions), self._timeout_s, progress)
        )
        for name, error in commits.errors.items():
            why = descriptions[name].error or f"Its commits cannot be read: {error.str()}"
            descriptions[name] = replace(descriptions[name], error=why)
        committed = commits.values
        with self._asking() as admin:
            topics_of = {
                name: _subscribed(description) | committed.get(name, {}).keys()
                for name, description in descriptions.items()
            }
            sizes = topic_sizes(admin, topics_of, self._timeout_s, progress)
            for name, count in sizes.unlisted.items():
                why = descriptions[name].error or _unlisted(count)
                descriptions[name] = replace(descriptions[name], error=why, members=())
            ends, ends_at = log_offsets(
                admin,
                self._open_reader(),
                sizes.counts,
                sizes.hidden,
                self._timeout_s,
                progress=progress,
            )
        spread_s = time.monotonic() - started
        snapshot_id = snapshot_id or new_snapshot_id(ends_at)
        samples = samples_of(
            sample_id=snapshot_id,
            at=ends_at,
            descriptions=descriptions,
            committed=committed,
            log=ends,
            sources=self._sources(ends, descriptions),
        )
        if before is not None:
            with self._asking() as admin:
                samples = with_stable_ends(admin, samples, before, self._timeout_s)
        return GroupSnapshot(snapshot_id, ends_at, spread_s, samples)

    def _sources(
        self, ends: LogOffsets, descriptions: Mapping[str, GroupDescription]
    ) -> FetchSources | None:
        """Read the racks from which partitions are fetched; None: unknown, or no member has a rack.

        A failure is only logged, because a snapshot is useful without racks.
        """
        topics = topics_of_racks(descriptions.values())
        if not topics:
            return None
        try:
            return self._ask_kafka_python(lambda admin: read_sources(admin, ends, topics))
        except (BrokerResponseError, KafkaUnavailableError) as error:
            log.warning("Racks of partitions are unknown: %s", error)
            return None

    def live_group(self, group: str) -> LiveGroup:
        """Read the present members of a group and their partitions.

        Raises
        ------
        GroupError
            The group does not exist, keeps rebalancing, or cannot be planned.
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        live = self.live_groups([group])[group]
        if isinstance(live, GroupError):
            raise live
        return live

    def live_groups(self, groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        """Read groups as `live_group` does; if a group has an error, return the error instead.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        observed_at = datetime.now(UTC)
        descriptions = self._describe(sorted(set(groups)))
        topics_of = {group: _subscribed(described) for group, described in descriptions.items()}
        with self._asking() as admin:
            sizes = topic_sizes(admin, topics_of, self._timeout_s)
        return {
            group: _live(group, described, sizes, observed_at)
            for group, described in descriptions.items()
        }

    def _describe(
        self,
        groups: Sequence[str],
        patience_s: float = SETTLING_S,
        progress: ReportProgress = lambda _: None,
    ) -> dict[str, GroupDescription]:
        """Describe groups; wait some seconds for rebalancing groups to become stable."""
        described: dict[str, GroupDescription] = {}
        pending = list(groups)
        report = phase(progress, "Described {:,} of {:,} groups")
        deadline = time.monotonic() + min(patience_s, self._timeout_s)
        while True:
            for start in range(0, len(pending), GROUPS_PER_DESCRIPTION):
                described |= self._describe_each(pending[start : start + GROUPS_PER_DESCRIPTION])
                report(len(described), len(groups))
            pending = [group for group in pending if _unsettled(described[group])]
            if not pending or time.monotonic() > deadline:  # `described` has their errors
                break
            time.sleep(0.2)
        return with_agreed_shares(described, self.settings)

    def _describe_each(self, groups: Sequence[str]) -> dict[str, GroupDescription]:
        """Describe groups: first as classic groups, then the others as KIP-848 consumer groups."""
        raw, errors = self._halving(
            groups, lambda admin, portion: admin.describe_groups(list(portion))
        )
        descriptions = {
            group: undescribed(group, errors[group])
            if group in errors
            else read_description(group, raw[group])
            for group in groups
        }
        problems = {group: described.problem for group, described in descriptions.items()}
        if GroupProblem.NOT_COORDINATOR in problems.values():
            self._close_kafka_python()  # a new client looks up the coordinators again
        broker_assigns = [group for group in groups if problems[group] is GroupProblem.OTHER_TYPE]
        return descriptions | {
            group: read_broker_group(described)
            for group, described in self.broker_groups(broker_assigns).items()
        }

    def _listed(self) -> list[dict[str, Any]]:
        try:
            return self._ask_kafka_python(_list_groups)
        except BrokerResponseError as error:
            raise KafkaUnavailableError(f"Kafka cannot list groups: {error}") from error

    def assigned_by_brokers(self, groups: Iterable[str]) -> list[str]:
        """Return those of the groups that use the consumer protocol (KIP-848), ascending.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        wanted = set(groups)
        listed = self._listed() if wanted else []
        return sorted(
            group["group_id"]
            for group in listed
            if group["group_id"] in wanted and str(group.get("group_type")).lower() == CONSUMER
        )

    def topics_of(self, topics: Collection[str]) -> dict[str, tuple[str, int]]:
        """Return the id and the number of partitions of each topic, by name.

        Leaves out topics that do not exist, and topics that the user has no right to describe.

        Raises
        ------
        KafkaUnavailableError
            No broker answers in time.
        """
        with self._asking() as admin:
            descriptions = described_topics(admin, sorted(topics), self._timeout_s).values
        return {
            topic: (kafka_uuid(str(described.topic_id)), len(described.partitions))
            for topic, described in descriptions.items()
        }

    def broker_groups(self, groups: Sequence[str]) -> dict[str, BrokerGroup]:
        """Describe groups of the consumer protocol (KIP-848).

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time.
        """
        described, errors = self._halving(groups, describe_broker_groups)
        described |= {
            group: BrokerGroup(group, "", "", error=str(error)) for group, error in errors.items()
        }
        problems = {problem_in(group.error) for group in described.values() if group.error}
        if GroupProblem.NOT_COORDINATOR in problems:
            self._close_kafka_python()  # a new client looks up the coordinators again
        return described

    def _halving(
        self,
        groups: Sequence[str],
        question: Callable[[KafkaAdminClient, Sequence[str]], Mapping[str, Result]],
    ) -> tuple[dict[str, Result], dict[str, Exception]]:
        """Send a request about groups; if it fails, send it for each half of the groups.

        Returns
        -------
        Two mappings: from groups to their answers, and from groups to their errors. A group has an
        error if a request about only this group fails.
        """
        if not groups:
            return {}, {}
        try:
            return dict(self._ask_kafka_python(lambda admin: question(admin, groups))), {}
        except (BrokerResponseError, ValueError) as error:
            if not (half := len(groups) // 2):
                return {}, {groups[0]: error}
        answers, errors = self._halving(groups[:half], question)
        more_answers, more_errors = self._halving(groups[half:], question)
        return answers | more_answers, errors | more_errors

    def _ask_kafka_python(self, question: Callable[[KafkaAdminClient], Result]) -> Result:
        """Call a function with kafka-python's client; after a transient error, use a new client.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time.
        kafka.errors.BrokerResponseError
            A broker answers the request with an error.
        """
        retries = Retrying(
            retry=retry_if_exception(
                lambda error: isinstance(error, KafkaError) and error.retriable
            ),
            before_sleep=lambda _: self._close_kafka_python(),
            reraise=True,
            **backoff(self._timeout_s),
        )
        try:
            return retries(lambda: question(self._open_kafka_python()))
        except KafkaUnavailableError:
            self._close_kafka_python()
            raise
        except KafkaError as error:
            if isinstance(error, BrokerResponseError) and not isinstance(
                error, RequestTimedOutError
            ):
                # A broker sent this error. RequestTimedOutError, however, comes from kafka-python.
                raise
            self._close_kafka_python()
            raise KafkaUnavailableError(f"Kafka does not answer: {error}") from error

    @contextmanager
    def _asking(self) -> Iterator[AdminClient]:
        """Yield librdkafka's client; if brokers do not answer, replace it for the next call.

        Otherwise librdkafka would send requests to a dead controller for five minutes.
        """
        try:
            yield self._admin
        except KafkaUnavailableError:
            self._admin = self._new_admin()
            raise

    def _new_admin(self) -> AdminClient:
        try:
            return AdminClient(self.settings.librdkafka())
        except KafkaException as error:  # the message has the setting's name without its value
            raise ConfigurationError(f"kafka.properties: {kafka_error(error).str()}") from error

    def _open_reader(self) -> Consumer:
        """Return the consumer that reads offsets; it joins no group."""
        if self._reader is None:
            self._reader = reader(self.settings, **{"isolation.level": "read_uncommitted"})
        return self._reader

    def _open_kafka_python(self) -> KafkaAdminClient:
        if self._kafka_python is None:
            require_broker(self.settings)
            # Check the login first, because kafka-python leaks the sockets of failed logins.
            if why := refusal(self.settings):
                raise KafkaUnavailableError(f"Kafka does not answer: {why}")
            try:
                self._kafka_python = open_admin(self.settings)
            except KafkaError as error:
                raise KafkaUnavailableError(f"Kafka does not answer: {error}") from error
        return self._kafka_python

    def _close_kafka_python(self) -> None:
        if self._kafka_python is not None:
            self._kafka_python.close()
            self._kafka_python = None


def _list_groups(admin: KafkaAdminClient) -> list[dict[str, Any]]:
    """List the groups of all brokers, including brokers that started after the client."""
    manager = admin._manager  # noqa: SLF001 - no public way to refresh kafka-python's list of brokers
    manager.run(manager.cluster.refresh_metadata)
    listed: list[dict[str, Any]] = admin.list_groups()
    return listed


def _kind(group: Mapping[str, Any]) -> str:
    """Return the kind of a group, such as `consumer` or `connect`; "" if it has only commits."""
    kind = str(group.get("group_type") or "").lower()
    return kind if kind in {"share", "streams"} else group["protocol_type"]


def _unsettled(described: GroupDescription) -> bool:
    """Whether the group is rebalancing or its coordinator is moving, which usually ends soon."""
    return described.problem in MOVING or described.state in REBALANCING


def _subscribed(described: GroupDescription) -> set[str]:
    return {topic for member in described.members for topic in member.topics}


def _unlisted(count: int) -> str:
    return (
        f"It reads {count:,} topics that the cluster does not list: at most "
        f"{UNLISTED_TOPICS_PER_GROUP:,} are looked up. Correct the subscription of its members"
    )


def _live(
    group: str, described: GroupDescription, sizes: TopicSizes, observed_at: datetime
) -> LiveGroup | GroupError:
    """Return a group with the partition counts of its topics, or the group's error."""
    if described.error:
        return group_error(described)
    if group in sizes.unlisted:
        return GroupError(f"Group {group}: {_unlisted(sizes.unlisted[group])}")
    topics = _subscribed(described)
    if unreadable := sorted(topics & sizes.hidden.keys()):
        topic = unreadable[0]
        return GroupError(f"Group {group}: topic {topic} cannot be read: {sizes.hidden[topic]}")
    own = {topic: sizes.counts[topic] for topic in sorted(topics & sizes.counts.keys())}
    return LiveGroup(
        group,
        described.state,
        described.protocol,
        described.members,
        own,
        observed_at,
        described.group_type,
    )

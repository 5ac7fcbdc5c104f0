"""A survey of a cluster's groups: take samples, describe each group, and find missing rights.

Belongs here: sampling and wording. Belongs elsewhere: analysing (`fairlead.domain.candidate_rows`),
and requests to Kafka (`fairlead.kafka.gateway`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.common.tables import slices
from fairlead.common.words import catch_up_time, length
from fairlead.domain.advice import AGREED, not_followed
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.candidate_rows import analyse_group
from fairlead.domain.groups import ListedGroups
from fairlead.domain.policy import Policy, policy_for, ranked
from fairlead.domain.samples import ownership
from fairlead.domain.samples.questions import Group, PlanningOptions
from fairlead.domain.worst_first import worst_first
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.rights import CLUSTER, CLUSTER_NAME, Rights, remedy
from fairlead.surfaces.survey.lag import group_lag

Row = dict[str, Any]

#: Minimum number of samples for a diagnosis.
ENOUGH: Final = 6
#: Maximum number of groups per request. With more, too much time would pass between reading a
#: group's committed offsets and its end offsets.
_AT_ONCE: Final = 500
#: Maps a kind of resource to the effect if the right to DESCRIBE it is missing.
_EFFECTS: Final = {
    CLUSTER: "only groups that may be described are listed",
    "group": "the group is unknown",
    "topic": "its lag is unknown",
}
_FOLLOWING: Final = "fairlead"
_STREAMS: Final = "stream"
_MEMBERLESS: Final = (
    "it commits offsets without members, as Flink, Spark and consumers that assign partitions to "
    "themselves do: it has no consumers to plan for"
)


class Survey:
    """Samples of every group of a cluster, held in memory. Not thread-safe.

    Parameters
    ----------
    gateway
        The cluster; rights to DESCRIBE are enough.
    policies
        The policies of the groups; groups without a policy have the default policy.
    """

    def __init__(self, gateway: KafkaGateway, policies: Sequence[Policy] = ()) -> None:
        self._gateway, self._policies = gateway, policies
        self._samples: list[pa.Table] = []
        self._lists_all = True
        self._listed = ListedGroups(())

    @property
    def samples(self) -> int:
        """The number of samples so far."""
        return len(self._samples)

    @property
    def others(self) -> Mapping[str, int]:
        """Maps kinds of groups that are not surveyed (share, streams, ...) to their numbers."""
        return self._listed.others

    def sample(self) -> None:
        """Sample every group.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time. Earlier samples are kept.
        """
        self._listed = self._gateway.listed_groups()
        names = sorted({*self._listed.consumer, *self._listed.memberless})
        self._lists_all = "DESCRIBE" in Rights(self._gateway.settings).on_cluster()
        portions = [names[first : first + _AT_ONCE] for first in range(0, len(names), _AT_ONCE)]
        before = self._samples[-1] if self._samples else None
        tables = [
            self._gateway.snapshot(portion, patience_s=0.0, before=before).samples
            for portion in portions or [[]]
        ]
        self._samples.append(pa.concat_tables(tables))

    def rows(self) -> list[Row]:
        """Return one row per group of the newest sample, worst first; see `_row` for the keys.

        If a group was rebalancing in the newest sample, most values are from an earlier sample.
        Groups that have committed offsets, but no members, come last.
        """
        newest = {row["group"]: row for row in self._newest()}
        samples = slices(pa.concat_tables(self._samples), "group")  # slices are ordered by time
        rows = []
        for name, now in newest.items():
            group = Group(_until_whole(samples[name]))
            row = _row(group, self._analysed(group))
            rows.append(
                {
                    **row,
                    **group_lag(group.samples, latest=_options(name, self._policies).latest),
                    "state": now["state"],
                    "error": now["error"] or row["error"],
                    "not_planned": _MEMBERLESS if name in self._listed.memberless else None,
                }
            )
        return sorted(worst_first(rows), key=lambda row: row["not_planned"] is not None)

    def _newest(self) -> list[Row]:
        columns = ["group", "state", "error", "topics", "subscriptions"]
        rows: list[Row] = self._samples[-1].select(columns).to_pylist() if self._samples else []
        return rows

    def _analysed(self, group: Group) -> list[Row]:
        name = group.name
        if self.samples < ENOUGH or name in self._listed.memberless:
            return []
        return analyse_group(group, analysed_by(name, self._policies))

    def missing(self) -> list[Row]:
        """Return the rights that were missing in the newest sample.

        Keys: kind (cluster, group or topic), name, effect, remedy.
        """
        newest = self._newest()
        refused = [row for row in newest if _refused(row["error"])]
        hidden = [row for row in refused if "topic" in row["error"].casefold()]
        wanted = {("group", row["group"]) for row in refused if row not in hidden}
        known = {topic for row in newest for topic in row["topics"]}
        topics = {
            topic
            for row in hidden
            for read in row["subscriptions"]
            for topic in read
            if topic not in known
        }
        if hidden and not topics:  # the topics' names are unknown if a broker assigns partitions
            topics = {f"read by {min(row['group'] for row in hidden)}"}
        wanted |= {("topic", topic) for topic in topics}
        if not self._lists_all:
            wanted.add((CLUSTER, CLUSTER_NAME))
        return [
            {
                "kind": kind,
                "name": name,
                "effect": _EFFECTS[kind],
                "remedy": remedy(kind, name, ["DESCRIBE"]),
            }
            for kind, name in sorted(wanted)
        ]


def _until_whole(samples: pa.Table) -> pa.Table:
    """Return samples up to the last one without an error; return all if each has an error."""
    whole = pc.indices_nonzero(pc.is_null(samples["error"]))
    return samples.slice(0, whole[-1].as_py() + 1) if len(whole) else samples


def _options(group: str, policies: Sequence[Policy]) -> PlanningOptions:
    return PlanningOptions.of(policy_for(group, policies), compare=False)


def analysed_by(group: str, policies: Sequence[Policy]) -> PlanningOptions:
    """Return the options with which a survey analyses a group.

    If no policy covers the group, its `auto.offset.reset` is unknown, and "latest" is assumed: the
    lag of a partition without a commit is only the records since the first sample.
    """
    options = _options(group, policies)
    return options if ranked(group, policies) else replace(options, latest=True)


def _refused(error: str | None) -> bool:
    return "authorization" in (error or "").casefold()


def _row(group: Group, analysed: Sequence[Row]) -> Row:
    """Return the facts about a group, without its lag.

    Keys: group; sampled_at (a time); state, protocol and group_type (from Kafka); members (a
    number); owners (number of partitions by member); clients (ids); error; follow (how the clients
    can follow plans, in a sentence); diagnosis, evidence, forecast_time_lag_s, catch_up_s, loss_s,
    gain and consumers (null if the group was not analysed); reported (the work that consumers
    report). `Survey.rows` adds not_planned (why the group cannot be planned) and the figures of
    `fairlead.surfaces.survey.lag.group_lag`.
    """
    now, sampled_at = group.now, group.now["at"]
    by_assignor = {row["assignor"]: row for row in analysed}
    observed = by_assignor.get(OBSERVED, {})
    known = observed.get("diagnosis")
    return {
        "group": now["group"],
        "sampled_at": sampled_at,
        "state": now["state"],
        "protocol": now["protocol"],
        "group_type": now["group_type"],
        "members": len(now["members"]),
        "owners": {name: sum(map(len, owned.values())) for name, owned in ownership(now).items()},
        "clients": sorted(set(now["client_ids"])),
        "error": now["error"] or observed.get("error"),
        "follow": follows(now, members=len(now["members"])),
        "diagnosis": known,
        "evidence": observed.get("evidence") or observed.get("outcome"),
        "forecast_time_lag_s": None
        if known in {None, "unknown"}
        else observed["forecast_time_lag_s"],
        "catch_up_s": observed.get("catch_up_s"),
        "loss_s": observed.get("loss_s"),
        "gain": _gain(observed, by_assignor.get(observed.get("chosen")), sampled_at),
        "consumers": observed.get("consumers_why"),
        "reported": json.loads(observed.get("reported") or "{}"),
    }


def _gain(observed: Row, chosen: Row | None, at: datetime) -> str | None:
    """Describe the effect of a plan; None: the group was not analysed."""
    if chosen is None:
        return observed.get("decision_reason")
    planned, now = (length(row["forecast_time_lag_s"]) for row in (chosen, observed))
    return (
        f"forecast time lag {planned} instead of {now}, "
        f"caught up {catch_up_time(chosen['catch_up_s'], at)}"
    )


def follows(described: Mapping[str, Any], *, members: int) -> str:
    """Describe how the clients of a group can follow plans.

    Examples
    --------
    >>> follows({"group_type": "classic", "protocol": "fairlead"}, members=1)
    'its clients follow plans already'
    >>> follows({"group_type": "classic", "protocol": "range+fairlead"}, members=1)
    'its clients follow plans already'
    >>> follows({"group_type": "consumer", "protocol": "uniform"}, members=1)[:39]
    "the broker's assignor uniform follows n"
    """
    kind, protocol = described["group_type"], described["protocol"]
    if advice := not_followed(kind, protocol):
        return f"{advice}; a managed cluster takes no plug-ins"
    if not members:
        return "it has no members"
    if protocol in {_FOLLOWING, AGREED}:
        return "its clients follow plans already"
    if protocol == _STREAMS:
        return "Kafka Streams has its own assignor and follows no plans"
    return (
        "Java: PlanAssignor in partition.assignment.strategy; kafka-python, aiokafka, "
        "confluent-kafka: PlanConsumer instead of the consumer's class"
    )

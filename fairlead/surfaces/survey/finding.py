"""What a survey finds: looks in, a row a group out, worst first, and the rights that are missing.

Belongs here: looking again and again, and putting answers into words. Does not: analysing
(`fairlead.domain.candidate_rows`), nor what Kafka is asked (`fairlead.kafka.gateway`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.common.tables import slices
from fairlead.common.words import caught_up, length
from fairlead.domain.advice import CLASSIC, PINNED, not_followed
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.candidate_rows import analyse_group
from fairlead.domain.groups import ListedGroups
from fairlead.domain.policy import Policy, policy_for, ranked
from fairlead.domain.samples import ownership
from fairlead.domain.samples.questions import Group, PlanningOptions
from fairlead.domain.worst_first import worst_first
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.rights import CLUSTER, CLUSTER_NAME, Rights, remedy
from fairlead.surfaces.survey.lag import group_lags

Row = dict[str, Any]

#: Looks until the analysis says more than "unknown".
ENOUGH: Final = 6
#: Commits are read before ends; with few groups at a time, seconds lie between the two at most.
_AT_ONCE: Final = 500
#: What is not known without DESCRIBE.
_THEN: Final = {
    CLUSTER: "only groups that may be described are listed",
    "group": "nothing is known of it",
    "topic": "no lag is known of it",
}
_FOLLOWING: Final = "fairlead"
_STREAMS: Final = "stream"
_MEMBERLESS: Final = (
    "it commits offsets without members, as Flink, Spark and consumers that assign partitions to "
    "themselves do: there is nobody to give partitions to"
)


class Survey:
    """Looks at every group of a cluster, held in memory. Not for several threads.

    Parameters
    ----------
    gateway
        Of the cluster; rights to DESCRIBE are enough.
    policies
        By which groups are analysed; without one for a group, the default.
    """

    def __init__(self, gateway: KafkaGateway, policies: Sequence[Policy] = ()) -> None:
        self._gateway, self._policies = gateway, policies
        self._looks: list[pa.Table] = []
        self._lists_all = True
        self._listed = ListedGroups(())

    @property
    def looks(self) -> int:
        """How many looks were taken."""
        return len(self._looks)

    @property
    def others(self) -> Mapping[str, int]:
        """How many groups of other kinds the newest look left out: share, streams, connect, ..."""
        return self._listed.others

    def look(self) -> None:
        """Take a look at every group.

        Raises
        ------
        KafkaUnavailableError
            Brokers do not answer in time. The looks before it stay.
        """
        self._listed = self._gateway.listed_groups()
        names = sorted({*self._listed.consumer, *self._listed.memberless})
        self._lists_all = "DESCRIBE" in Rights(self._gateway.settings).on_cluster()
        portions = [names[first : first + _AT_ONCE] for first in range(0, len(names), _AT_ONCE)]
        before = self._looks[-1] if self._looks else None
        seen = [
            self._gateway.snapshot(portion, patience_s=0.0, before=before).samples
            for portion in portions or [[]]
        ]
        self._looks.append(pa.concat_tables(seen))

    def found(self) -> list[Row]:
        """Return a row a group of the newest look, worst first; see `_row` for its keys.

        A group that could not be seen then, since it rebalances, is as it was seen last. Groups
        that only commit come after all others.
        """
        newest = {row["group"]: row for row in self._newest()}
        samples = slices(pa.concat_tables(self._looks), "group")  # in order of time
        groups = {name: Group(_until_whole(samples[name])) for name in newest}
        lags = group_lags(
            {name: group.samples for name, group in groups.items()},
            {name for name in groups if _options(name, self._policies).latest},
        )
        rows = []
        for name, group in groups.items():
            row = _row(group, self._analysed(group))
            rows.append(
                {
                    **row,
                    **lags[name],
                    "state": newest[name]["state"],
                    "error": newest[name]["error"] or row["error"],
                    "not_planned": _MEMBERLESS if name in self._listed.memberless else None,
                }
            )
        return sorted(worst_first(rows), key=lambda row: row["not_planned"] is not None)

    def _newest(self) -> list[Row]:
        columns = ["group", "state", "error", "topics", "subscriptions"]
        rows: list[Row] = self._looks[-1].select(columns).to_pylist() if self._looks else []
        return rows

    def _analysed(self, group: Group) -> list[Row]:
        name = group.name
        if self.looks < ENOUGH or name in self._listed.memberless:
            return []
        return analyse_group(group, analysed_by(name, self._policies))

    def missing(self) -> list[Row]:
        """Return the rights that were missing in the newest look.

        Keys: kind (cluster, group or topic), name, then (what is not known without it), remedy.
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
        if hidden and not topics:  # brokers that assign do not tell what a group reads then
            topics = {f"read by {min(row['group'] for row in hidden)}"}
        wanted |= {("topic", topic) for topic in topics}
        if not self._lists_all:
            wanted.add((CLUSTER, CLUSTER_NAME))
        return [
            {
                "kind": kind,
                "name": name,
                "then": _THEN[kind],
                "remedy": remedy(kind, name, ["DESCRIBE"]),
            }
            for kind, name in sorted(wanted)
        ]


def _until_whole(samples: pa.Table) -> pa.Table:
    """Return a group's samples up to the last one without an error; without such a one, all."""
    whole = pc.indices_nonzero(pc.is_null(samples["error"]))
    return samples.slice(0, whole[-1].as_py() + 1) if len(whole) else samples


def _options(group: str, policies: Sequence[Policy]) -> PlanningOptions:
    return PlanningOptions.of(policy_for(group, policies), compare=False)


def analysed_by(group: str, policies: Sequence[Policy]) -> PlanningOptions:
    """Return the options that a survey analyses a group by.

    Without a policy nobody has said where consumers without a commit begin. Then only what arrived
    since the first look is certain to wait for them, as with `auto_offset_reset = "latest"`.
    """
    options = _options(group, policies)
    return options if ranked(group, policies) else replace(options, latest=True)


def _refused(error: str | None) -> bool:
    return "authorization" in (error or "").casefold()


def _row(group: Group, analysed: Sequence[Row]) -> Row:
    """Return what is known of a group, without its lag.

    Keys: group; looked_at, a time; state, protocol and group_type as Kafka tells; members, a count;
    owners, member to number of partitions; clients, ids; error; follow and kafka_5_6, sentences;
    diagnosis, evidence, late_s, caught_up_s, loss_s, gain, consumers: of the analysis, null
    without one; reported, the reported work. `Survey.found` adds not_planned, why the group cannot
    be planned for, and the figures of `fairlead.surfaces.survey.lag.group_lags`.
    """
    now, looked_at = group.now, group.now["at"]
    by_assignor = {row["assignor"]: row for row in analysed}
    observed = by_assignor.get(OBSERVED, {})
    known = observed.get("diagnosis")
    return {
        "group": now["group"],
        "looked_at": looked_at,
        "state": now["state"],
        "protocol": now["protocol"],
        "group_type": now["group_type"],
        "members": len(now["members"]),
        "owners": {name: sum(map(len, owned.values())) for name, owned in ownership(now).items()},
        "clients": sorted(set(now["client_ids"])),
        "error": now["error"] or observed.get("error"),
        "follow": follows(now, members=len(now["members"])),
        "kafka_5_6": changes(now),
        "diagnosis": known,
        "evidence": observed.get("evidence") or observed.get("outcome"),
        "late_s": None if known in {None, "unknown"} else observed["late_s"],
        "caught_up_s": observed.get("caught_up_s"),
        "loss_s": observed.get("loss_s"),
        "gain": _gain(observed, by_assignor.get(observed.get("chosen")), looked_at),
        "consumers": observed.get("consumers_why"),
        "reported": json.loads(observed.get("reported") or "{}"),
    }


def _gain(observed: Row, chosen: Row | None, at: datetime) -> str | None:
    """Say what a plan would do; None: nothing was analysed."""
    if chosen is None:
        return observed.get("decision_reason")
    return (
        f"forecast {length(chosen['late_s'])} late instead of {length(observed['late_s'])}, "
        f"caught up {caught_up(chosen['caught_up_s'], at)}"
    )


def follows(described: Mapping[str, Any], *, members: int) -> str:
    """Say how the clients of a group could follow plans.

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
    if protocol in {_FOLLOWING, PINNED}:
        return "its clients follow plans already"
    if protocol == _STREAMS:
        return "Kafka Streams assigns by itself, and follows no plans"
    return (
        "Java: PlanAssignor in partition.assignment.strategy; kafka-python, aiokafka, "
        "confluent-kafka: PlanConsumer instead of the consumer's class"
    )


def changes(described: Mapping[str, Any]) -> str:
    """Say what Kafka 5.0 and 6.0 change for the clients of a group, as KIP-1274 has it.

    Examples
    --------
    >>> changes({"group_type": "consumer", "protocol": "uniform"})
    'nothing: it is on the consumer protocol'
    """
    if described["group_type"] not in {None, "", CLASSIC}:
        return "nothing: it is on the consumer protocol"
    if described["protocol"] == _STREAMS:
        return "nothing by KIP-1274, which is not about Kafka Streams"
    return (
        "Java consumers: from 5.0 on group.protocol=consumer is the default, and classic has to "
        "be set; 6.0 takes classic out, and plans are followed by brokers (KIP-1274). Other "
        "clients: nothing"
    )

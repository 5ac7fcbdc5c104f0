"""The doctor's checks of Kafka: rights, Fairlead's topics, groups and their members.

Belongs here: what the planner needs from a cluster, as listed in docs/trust.md. Belongs elsewhere:
reading rights (`fairlead.kafka.rights`).
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from fairlead.common.commands import alter_topic
from fairlead.common.words import plural
from fairlead.domain.advice import CLASSIC
from fairlead.kafka.compacted_topic import foreign_codecs
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.requests import MISSING
from fairlead.kafka.rights import CLUSTER, Rights, remedy
from fairlead.settings import KafkaSettings, Settings
from fairlead.surfaces.doctor.finding import Finding

#: Rights that the planner needs: `WRITES` on topics that it writes; `READS` on the coordination
#: topic, through which consumers agree on assignments. docs/trust.md has the same list.
WRITES: Final = ("DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE")
READS: Final = ("DESCRIBE", "READ")
#: Maximum number of groups, and of topics, on which rights are checked.
_ASKED: Final = 500
_READ: Final = {"READ", "ALL"}
_ASSIGNOR: Final = "PlanGroupAssignor"


def examine_kafka(settings: Settings) -> Iterator[Finding]:
    """Check Kafka.

    Raises
    ------
    ConfigurationError
        The cluster refuses the login, or librdkafka refuses a setting.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    kafka = settings.kafka
    with KafkaGateway(kafka) as gateway:
        listed = gateway.list_groups()
        names = [name for name in listed if settings.discovery.covers(name)]
        rights = Rights(kafka)
        cluster = rights.cluster()
        detail = f"cluster {cluster.cluster_id}, {plural(len(cluster.nodes), 'broker')}"
        yield Finding("kafka", "ok", detail)
        yield _listing(rights)
        yield _topic(rights, kafka.plan_topic, WRITES, compacted=True)
        yield _sending(rights, kafka)
        yield _topic(rights, kafka.members_topic, WRITES, compacted=True)
        yield _topic(rights, kafka.coordination_topic, READS, compacted=False)
        yield _keys(kafka)
        if not names:
            detail = f"discovery covers none of the {plural(len(listed), 'group')} that Kafka lists"
            yield (
                Finding("groups", "warning", detail, "discovery.include of fairlead.toml")
                if listed
                else Finding("groups", "ok", "Kafka lists no groups yet")
            )
            return
        samples = gateway.snapshot(names[:_ASKED]).samples
        columns = ["group", "group_type", "topics", "members", "member_ids", "subscriptions"]
        rows = samples.select(columns).to_pylist()
        by_broker = {row["group"] for row in rows if row["group_type"] != CLASSIC}
        yield from _groups(rights, names[:_ASKED], by_broker)
        # A topic that Fairlead has no right to describe is only in `subscriptions`.
        topics = set[str]()
        for row in rows:
            topics.update(row["topics"], *row["subscriptions"])
        yield _topics(rights, sorted(topics)[:_ASKED])
        yield _names(rows)
        if by_broker:
            yield _plug_in(rights, by_broker)


def _listing(rights: Rights) -> Finding:
    if "DESCRIBE" in rights.on_cluster():
        return Finding("listing", "ok", "Describe is allowed on the cluster: all groups are listed")
    detail = "Describe is missing on the cluster: Kafka lists only groups that may be described"
    return Finding("listing", "warning", detail, remedy(CLUSTER, "", ["DESCRIBE"]))


def _topic(rights: Rights, name: str, wanted: tuple[str, ...], *, compacted: bool) -> Finding:
    """Check one of Fairlead's topics: rights, compaction and compression."""
    allowed, error = rights.on_topics([name])[name]
    if error is not None and error.code() in MISSING:
        return _absent(rights, name, made_here=compacted)
    if error is not None:
        detail = f"{error.name()}: {error.str()}"
        return Finding(name, "failed", detail, remedy("topic", name, wanted))
    lacking = [right for right in wanted if right not in allowed]
    if lacking:
        detail = f"rights are missing: {', '.join(lacking)}"
        return Finding(name, "failed", detail, remedy("topic", name, lacking))
    if "DESCRIBE_CONFIGS" in allowed:
        config = _config(rights, ResourceType.TOPIC, name)
        policy = config.get("cleanup.policy", "")
        if ("compact" in policy) is not compacted:
            should = "compact" if compacted else "delete"
            return Finding(
                name,
                "failed",
                f"cleanup.policy is {policy}: records that are still needed would be lost",
                alter_topic(name, f"cleanup.policy={should}"),
            )
        if why := foreign_codecs(config.get("compression.type", "gzip")):
            should = "uncompressed" if compacted else "gzip"
            return Finding(name, "warning", why, alter_topic(name, f"compression.type={should}"))
    return Finding(name, "ok", "it exists, with all necessary rights")


def _absent(rights: Rights, name: str, *, made_here: bool) -> Finding:
    """Check whether the planner has the right to create a missing topic."""
    if not made_here:
        return Finding(name, "ok", "it does not exist yet: consumers create it on demand")
    may = "CREATE" in rights.on_cluster() or rights.by_rule("topic", name, "CREATE")
    if may:
        return Finding(name, "ok", "it does not exist yet: it is created on demand")
    how = remedy("topic", name, ["CREATE", *WRITES])
    if may is None:
        detail = "it does not exist, and the right to create it is unknown"
        return Finding(name, "warning", detail, how)
    return Finding(name, "failed", "it does not exist, and CREATE is missing", how)


def _sending(rights: Rights, kafka: KafkaSettings) -> Finding:
    """Check the rights on the transactional ids with which plans are sent.

    Reads only ACLs, because using a transactional id would create Kafka's topic of transactions.
    """
    name, what = f"{kafka.plan_topic}-", "transactional ids"
    how = remedy("transactional-id", name, ["DESCRIBE", "WRITE"], prefixed=True)
    may = rights.by_rule("transactional-id", f"{name}0", "WRITE")
    if may is None:
        detail = f"it is unknown whether WRITE is allowed on {name}*"
        return Finding(what, "warning", detail, how)
    if not may:
        return Finding(what, "failed", f"rights are missing on {name}*: WRITE", how)
    return Finding(what, "ok", f"WRITE is allowed on {name}*")


def _keys(kafka: KafkaSettings) -> Finding:
    if kafka.private_key is None:
        detail = "plans are not signed: everyone with WRITE on the plan topic can change them"
        how = "make a key pair with `fairlead signing-key ID`; set kafka.private_key"
        return Finding("keys", "warning", detail, how)
    return Finding("keys", "ok", "plans are signed")


def _groups(rights: Rights, names: list[str], by_broker: Collection[str]) -> Iterator[Finding]:
    """Check the right to DESCRIBE groups, and to READ groups whose partitions a broker assigns."""
    allowed = rights.on_groups(names)
    errors = {name: error for name, (_, error) in allowed.items() if error is not None}
    hidden = [
        name
        for name, error in errors.items()
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    ]
    refused = [name for name in errors if name not in hidden]
    silent = [name for name in by_broker if name not in errors and not allowed[name][0] & _READ]
    groups = f"{len(names)} groups of discovery"
    yield _rights("group", "DESCRIBE", refused, groups, "these groups are not sampled")
    if hidden:
        detail = (
            f"{min(hidden)} cannot be described: it reads topics that Fairlead may not describe"
        )
        yield Finding("topics", "failed", detail, remedy("topic", "NAME", ["DESCRIBE"]))
    if silent:
        then = "their brokers do not learn of new plans"
        yield _rights("group", "READ", silent, groups, then)


def _topics(rights: Rights, names: list[str]) -> Finding:
    """Check the right to DESCRIBE the topics that groups read."""
    allowed = rights.on_topics(names) if names else {}
    refused = [
        name
        for name, (_, error) in allowed.items()
        if error is not None and error.code() not in MISSING
    ]
    return _rights("topic", "DESCRIBE", refused, f"{len(allowed)} topics", "their lag is unknown")


def _rights(kind: str, operation: str, refused: list[str], of: str, then: str) -> Finding:
    """Return a finding: `failed` if the operation is refused on a group or topic, else `ok`."""
    if not refused:
        return Finding(f"{kind}s", "ok", f"{operation} is allowed on {of}")
    first = min(refused)
    return Finding(
        f"{kind}s",
        "failed",
        f"{operation} is refused on {len(refused)} of {of}, such as {first}: {then}",
        remedy(kind, first, [operation]),
    )


def _names(samples: list[dict[str, Any]]) -> Finding:
    """Check whether consumers still have the same names in plans after they restart."""
    nameless = Counter(
        row["group"]
        for row in samples
        for name, member_id in zip(row["members"], row["member_ids"], strict=True)
        if name == member_id
    )
    if not nameless:
        return Finding("client names", "ok", "every member keeps its name across restarts")
    group, count = nameless.most_common(1)[0]
    return Finding(
        "client names",
        "warning",
        f"{plural(sum(nameless.values()), 'member')} of {plural(len(nameless), 'group')} have no "
        f"permanent name, {count} of them in {group}: no plan fits them after a restart",
        "give each consumer its own client.id or group.instance.id",
    )


def _plug_in(rights: Rights, by_broker: Collection[str]) -> Finding:
    """Check whether brokers have the assignor that follows plans."""
    without = [
        str(node.id)
        for node in rights.cluster().nodes
        if _ASSIGNOR
        not in (
            _config(rights, ResourceType.BROKER, str(node.id)).get("group.consumer.assignors")
            or _ASSIGNOR  # the configuration cannot be read: assume the assignor is there
        )
    ]
    count = f"{plural(len(by_broker), 'group')} of the consumer protocol"
    if without:
        detail = f"brokers {', '.join(without)} lack the assignor that {count} need to follow plans"
        return Finding("plug-in", "warning", detail, "see docs/consumers/kip-848.md")
    if "DESCRIBE_CONFIGS" not in rights.on_cluster():
        detail = f"without DESCRIBE_CONFIGS, it is unknown whether {count} can follow plans"
        return Finding("plug-in", "warning", detail, remedy(CLUSTER, "", ["DESCRIBE_CONFIGS"]))
    return Finding(
        "plug-in", "ok", f"brokers have the assignor with which {count} can follow plans"
    )


def _config(rights: Rights, kind: ResourceType, name: str) -> dict[str, str]:
    """Return the configuration of a topic or broker; empty without the right to read it."""
    resource = ConfigResource(kind, name)
    try:
        entries: Any = rights.admin.describe_configs([resource])[resource].result()
    except KafkaException:
        return {}
    return {key: str(entry.value or "") for key, entry in entries.items()}

"""What the doctor finds of Kafka: features, rights, Fairlead's topics, groups and their members.

Belongs here: what the planner needs of a cluster, as docs/trust.md has it. Does not: asking for
rights (`fairlead.kafka.rights`).
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from fairlead.common.commands import alter_topic
from fairlead.common.words import plural
from fairlead.domain.advice import CLASSIC
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import foreign_codecs
from fairlead.kafka.rights import CLUSTER, Rights, remedy
from fairlead.settings import KafkaSettings, Settings
from fairlead.surfaces.doctor.finding import Finding

#: The planner's rights on topics that it writes, and on the pin topic, as docs/trust.md has them.
WRITES: Final = ("DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE")
READS: Final = ("DESCRIBE", "READ")
#: Of so many groups and topics the rights are asked: a cluster may have ten thousand.
_ASKED: Final = 500
_READ: Final = {"READ", "ALL"}
_FEATURES: Final = ("metadata.version", "group.version", "transaction.version")
_ASSIGNOR: Final = "PlanGroupAssignor"


def examine_kafka(settings: Settings) -> Iterator[Finding]:
    """Look at Kafka.

    Raises
    ------
    ConfigurationError
        The cluster refuses the login, or the settings are not the client's.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    kafka = settings.kafka
    with KafkaGateway(kafka) as gateway:
        listed = gateway.list_groups()
        names = [name for name in listed if settings.discovery.covers(name)]
        rights = Rights(kafka)
        cluster = rights.cluster()
        said = f"cluster {cluster.cluster_id}, {plural(len(cluster.nodes), 'broker')}"
        yield Finding("kafka", "ok", said)
        yield _features(gateway.features())
        yield _listing(rights)
        yield _topic(rights, kafka.plan_topic, WRITES, compacted=True)
        yield _sending(rights, kafka)
        yield _topic(rights, kafka.members_topic, WRITES, compacted=True)
        yield _topic(rights, kafka.pin_topic, READS, compacted=False)
        yield _keys(kafka)
        if not names:
            said = f"discovery covers none of the {plural(len(listed), 'group')} that Kafka lists"
            yield Finding("groups", "warning", said, "discovery.include of fairlead.toml")
            return
        samples = gateway.snapshot(names[:_ASKED]).samples
        columns = ["group", "group_type", "topics", "members", "member_ids", "subscriptions"]
        seen = samples.select(columns).to_pylist()
        by_broker = {row["group"] for row in seen if row["group_type"] != CLASSIC}
        yield from _groups(rights, names[:_ASKED], by_broker)
        # A topic that we may not describe is only in subscriptions.
        topics = set[str]()
        for row in seen:
            topics.update(row["topics"], *row["subscriptions"])
        yield _topics(rights, sorted(topics)[:_ASKED])
        yield _names(seen)
        if by_broker:
            yield _plug_in(rights, by_broker)


def _features(levels: dict[str, int]) -> Finding:
    """Look at what the cluster's features are set to, whatever its brokers' version is."""
    told = ", ".join(f"{name} {levels[name]}" for name in _FEATURES if name in levels)
    if not levels.get("group.version"):
        return Finding(
            "features",
            "warning",
            f"{told or 'none is told'}: groups of the consumer protocol (KIP-848) cannot be",
            "kafka-features.sh --bootstrap-server BROKER upgrade --feature group.version=1",
        )
    return Finding("features", "ok", told)


def _listing(rights: Rights) -> Finding:
    if "DESCRIBE" in rights.on_cluster():
        return Finding("listing", "ok", "Describe is allowed on the cluster: all groups are listed")
    said = "Describe is missing on the cluster: Kafka lists only groups that may be described"
    return Finding("listing", "warning", said, remedy(CLUSTER, "", ["DESCRIBE"]))


def _topic(rights: Rights, name: str, wanted: tuple[str, ...], *, compacted: bool) -> Finding:
    """Look at one topic of Fairlead's own: rights, and whether it is compacted as it must be."""
    allowed, error = rights.on_topics([name])[name]
    if error is not None and "UNKNOWN_TOPIC" in error:
        return _absent(rights, name, made_here=compacted)
    if error is not None:
        return Finding(name, "failed", error, remedy("topic", name, wanted))
    lacking = [right for right in wanted if right not in allowed]
    if lacking:
        said = f"rights are missing: {', '.join(lacking)}"
        return Finding(name, "failed", said, remedy("topic", name, lacking))
    if "DESCRIBE_CONFIGS" in allowed:
        config = _config(rights, ResourceType.TOPIC, name)
        policy = config.get("cleanup.policy", "")
        if ("compact" in policy) is not compacted:
            should = "compact" if compacted else "delete"
            return Finding(
                name,
                "failed",
                f"cleanup.policy is {policy}: records that count would be lost",
                alter_topic(name, f"cleanup.policy={should}"),
            )
        if why := foreign_codecs(config.get("compression.type", "gzip")):
            should = "uncompressed" if compacted else "gzip"
            return Finding(name, "warning", why, alter_topic(name, f"compression.type={should}"))
    return Finding(name, "ok", "it is there, with all rights that are needed")


def _absent(rights: Rights, name: str, *, made_here: bool) -> Finding:
    """Look at whether a topic could be made that is not there."""
    if not made_here:
        return Finding(name, "ok", "it is not there: consumers make it when they first need it")
    may = "CREATE" in rights.on_cluster() or rights.by_rule("topic", name, "CREATE")
    if may:
        return Finding(name, "ok", "it is not there: it is made when it is first needed")
    how = remedy("topic", name, ["CREATE", *WRITES])
    if may is None:
        said = "it is not there, and Kafka does not tell whether it may be made"
        return Finding(name, "warning", said, how)
    return Finding(name, "failed", "it is not there, and CREATE is missing", how)


def _sending(rights: Rights, kafka: KafkaSettings) -> Finding:
    """Look at the transactional ids by which plans are sent: Kafka tells no operations of them.

    Asking for one of them would make the topic of transactions, where there is none.
    """
    name, what = f"{kafka.plan_topic}-", "transactional ids"
    how = remedy("transactional-id", name, ["DESCRIBE", "WRITE"], prefixed=True)
    may = rights.by_rule("transactional-id", f"{name}0", "WRITE")
    if may is None:
        said = f"Kafka does not tell whether WRITE is allowed on {name}*"
        return Finding(what, "warning", said, how)
    if not may:
        return Finding(what, "failed", f"rights are missing on {name}*: WRITE", how)
    return Finding(what, "ok", f"WRITE is allowed on {name}*")


def _keys(kafka: KafkaSettings) -> Finding:
    if kafka.private_key is None:
        said = "plans are not signed: whoever may WRITE to the plan topic decides"
        how = "make a key pair with `fairlead signing-key ID`; set kafka.private_key"
        return Finding("keys", "warning", said, how)
    return Finding("keys", "ok", "plans are signed")


def _groups(rights: Rights, names: list[str], by_broker: Collection[str]) -> Iterator[Finding]:
    """Look at the rights on groups: DESCRIBE, and READ where brokers assign."""
    allowed = rights.on_groups(names)
    errors = {name: error for name, (_, error) in allowed.items() if error is not None}
    hidden = [name for name, error in errors.items() if "TOPIC_AUTH" in error]
    refused = [name for name in errors if name not in hidden]
    silent = [name for name in by_broker if name not in errors and not allowed[name][0] & _READ]
    of = f"{len(names)} of discovery's"
    yield _rights("group", "DESCRIBE", refused, of, "they are not seen")
    if hidden:
        said = f"{min(hidden)} is not shown by its broker: it reads topics that are hidden"
        yield Finding("topics", "failed", said, remedy("topic", "NAME", ["DESCRIBE"]))
    if silent:
        then = "their brokers are not told of new plans"
        yield _rights("group", "READ", silent, of, then)


def _topics(rights: Rights, names: list[str]) -> Finding:
    """Look at the right to DESCRIBE the topics that groups read."""
    found = rights.on_topics(names) if names else {}
    refused = [
        name
        for name, (_, error) in found.items()
        if error is not None and "UNKNOWN_TOPIC" not in error
    ]
    return _rights("topic", "DESCRIBE", refused, f"{len(found)}", "no lag is known of them")


def _rights(kind: str, operation: str, refused: list[str], of: str, then: str) -> Finding:
    """Return whether an operation is allowed on all groups or topics that were asked about."""
    if not refused:
        return Finding(f"{kind}s", "ok", f"{operation} is allowed on {of}")
    first = min(refused)
    return Finding(
        f"{kind}s",
        "failed",
        f"{operation} is refused on {len(refused)} of {of}, {first} among them: {then}",
        remedy(kind, first, [operation]),
    )


def _names(samples: list[dict[str, Any]]) -> Finding:
    """Look at whether members have names that a restart keeps."""
    nameless = Counter(
        row["group"]
        for row in samples
        for name, member_id in zip(row["members"], row["member_ids"], strict=True)
        if name == member_id
    )
    if not nameless:
        return Finding("client names", "ok", "every member has a name that a restart keeps")
    group, count = nameless.most_common(1)[0]
    return Finding(
        "client names",
        "warning",
        f"{plural(sum(nameless.values()), 'member')} of {plural(len(nameless), 'group')} have none "
        f"of their own, {count} of {group} among them: after a restart no plan names them",
        "give each consumer a client.id, or group.instance.id, of its own",
    )


def _plug_in(rights: Rights, by_broker: Collection[str]) -> Finding:
    """Look at whether brokers have the assignor that follows plans."""
    without = [
        str(node.id)
        for node in rights.cluster().nodes
        if _ASSIGNOR
        not in (
            _config(rights, ResourceType.BROKER, str(node.id)).get("group.consumer.assignors")
            or _ASSIGNOR  # it may not be seen
        )
    ]
    of = f"{plural(len(by_broker), 'group')} of the consumer protocol"
    if without:
        said = f"brokers {', '.join(without)} lack the assignor, which {of} would need for plans"
        return Finding("plug-in", "warning", said, "docs/consumers/kip-848.md has the steps")
    if "DESCRIBE_CONFIGS" not in rights.on_cluster():
        said = f"which assignors brokers have for {of} may not be seen"
        return Finding("plug-in", "warning", said, remedy(CLUSTER, "", ["DESCRIBE_CONFIGS"]))
    return Finding("plug-in", "ok", f"brokers have the assignor that {of} can follow plans by")


def _config(rights: Rights, kind: ResourceType, name: str) -> dict[str, str]:
    """Return the configuration of a topic or a broker; empty: it may not be seen."""
    resource = ConfigResource(kind, name)
    try:
        found: Any = rights.admin.describe_configs([resource])[resource].result()
    except KafkaException:
        return {}
    return {key: str(entry.value or "") for key, entry in found.items()}

"""`fairlead doctor`: whether all that Fairlead needs is there, a finding a thing, with what to do.

Belongs here: what is looked at, and in which order. Does not: how findings are shown
(`fairlead.surfaces.cli.doctor`). Nothing is changed, and no right is tried out: Kafka tells which
operations it allows (KIP-430), Postgres which roles somebody has.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Any, Final

from confluent_kafka import (  # type: ignore[attr-defined] # not in the stubs
    ConsumerGroupType,
    KafkaException,
    TopicCollection,
)
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType
from sqlalchemy import Engine, text

from fairlead.errors import FairleadError
from fairlead.kafka.requests import kafka_error
from fairlead.settings import KafkaSettings, Settings

#: The planner's rights on topics that it writes, and on the pin topic, as docs/trust.md has them.
WRITES: Final = ("DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE")
READS: Final = ("DESCRIBE", "READ")
#: Of so many groups and topics the rights are asked: a cluster may have ten thousand.
_ASKED: Final = 500
_OLD: Final = timedelta(minutes=15)
_CLOCKS: Final = timedelta(seconds=5)
_LEAST_DISK: Final = 2**30
_ACL: Final = "kafka-acls.sh --bootstrap-server BROKER --add --allow-principal User:NAME"
_PLANS_BY_ITSELF: Final = ("planning_sensor", "planning_schedule")


@dataclass(frozen=True)
class Finding:
    """What was found of one thing.

    Parameters
    ----------
    name
        The thing.
    state
        `ok`; `warning`: it works, but for something; `failed`: it does not work.
    said
        What was found.
    remedy
        What to do; "": nothing.
    """

    name: str
    state: str
    said: str
    remedy: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything, in the order in which things need each other.

    Parameters
    ----------
    settings
        As loaded: whoever cannot load them has their error.
    """
    covered = f"{len(settings.policies)} policies"
    yield Finding("settings", "ok", f"{covered}; state in {settings.state_dir.absolute()}")
    yield from _tools(settings)
    parts = {"database": _database, "kafka": examine_kafka, "dagster": _dagster}
    for name, part in parts.items():
        try:
            yield from part(settings)
        except FairleadError as error:
            yield Finding(name, "failed", str(error))


def _tools(settings: Settings) -> Iterator[Finding]:
    """Look at Java, Spark's package, the disk."""
    from fairlead.sandbox.java import find_java  # noqa: PLC0415 - asks only here

    try:
        yield Finding("java", "ok", str(find_java()))
    except FairleadError as error:
        yield Finding("java", "failed", str(error))
    for package, what in (("pyspark", "planning runs"), ("dagster", "schedules, sensors, the UI")):
        if importlib.util.find_spec(package) is None:
            yield Finding(package, "warning", f"it is missing: {what} need it", "install fairlead")
    place = Path(settings.state_dir).absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    said = f"{free / 2**30:.1f} GiB free at {place}"
    if free < _LEAST_DISK:
        yield Finding("disk", "failed", said, "free some, or set state_dir to another place")
    else:
        yield Finding("disk", "ok", said)


def _database(settings: Settings) -> Iterator[Finding]:
    """Look at Postgres: schema, rights, clock, brakes, the last look."""
    from fairlead.store import migrate  # noqa: PLC0415 - Alembic takes half a second
    from fairlead.store.brakes import read_brakes  # noqa: PLC0415
    from fairlead.store.engine import create_store_engine, transaction  # noqa: PLC0415

    engine = create_store_engine(settings.postgres)
    try:
        with transaction(engine) as connection:
            row = connection.execute(text(_ASK_DATABASE)).one()
        yield Finding("database", "ok", f"Postgres {row.version}, as {row.login}")
        yield from _clock(datetime.now(UTC), row.now)
        url = settings.postgres.url.get_secret_value()
        revision, head = migrate.current(url), migrate.head()
        if revision != head:
            said = f"it is at {revision or 'no revision'}, and the newest is {head}"
            yield Finding("schema", "failed", said, "fairlead db upgrade")
            return
        yield Finding("schema", "ok", f"{revision}")
        yield _role(row.login, row.roles)
        for brake in read_brakes(engine):
            scope = brake.group or "--all"
            yield Finding("brake", "warning", str(brake), f"fairlead release {scope} --reason ...")
        yield _last_look(engine)
    finally:
        engine.dispose()


_ASK_DATABASE: Final = """
SELECT current_setting('server_version') AS version, session_user AS login,
       clock_timestamp() AS now,
       ARRAY(
           SELECT rolname::text FROM pg_roles
           WHERE rolname LIKE 'fairlead\\_%' AND pg_has_role(session_user, oid, 'MEMBER')
           ORDER BY rolname
       ) AS roles
"""


def _clock(here: datetime, there: datetime) -> Iterator[Finding]:
    apart = abs(here - there)
    if apart > _CLOCKS:
        said = f"this machine and the database are {apart.total_seconds():.0f} s apart"
        yield Finding("clocks", "warning", said, "set both by NTP")


def _role(login: str, roles: Collection[str]) -> Finding:
    if not roles:
        return Finding(
            "role",
            "failed",
            f"{login} is a member of no role of Fairlead's",
            f"as the owner of the schema: GRANT fairlead_planner TO {login};",
        )
    names = ", ".join(roles)
    if "fairlead_planner" not in roles:
        said = f"{login} is {names}: it may look and decide, and cannot plan or publish"
        return Finding("role", "warning", said)
    return Finding("role", "ok", f"{login} is {names}")


def _last_look(engine: Engine) -> Finding:
    from fairlead.store.monitoring import last_look  # noqa: PLC0415

    last = last_look(engine)
    turn_on = "turn the sensor group_looks on, or run `fairlead look`"
    if last is None:
        return Finding("looks", "warning", "no look has judged a group yet", turn_on)
    age = datetime.now(UTC) - last
    said = f"the last look was {age.total_seconds() / 60:.0f} minutes ago"
    return Finding("looks", "warning" if age > _OLD else "ok", said, turn_on if age > _OLD else "")


def examine_kafka(settings: Settings) -> Iterator[Finding]:
    """Look at Kafka: brokers, the topics of Fairlead's own, rights on groups and their topics.

    Raises
    ------
    ConfigurationError
        The cluster refuses the login, or the settings are not the client's.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    from fairlead.kafka.gateway import KafkaGateway  # noqa: PLC0415 - the clients

    kafka = settings.kafka
    with KafkaGateway(kafka) as gateway:
        names = [name for name in gateway.list_groups() if settings.discovery.covers(name)]
        admin = AdminClient(kafka.librdkafka())
        wait_s = kafka.request_timeout_s
        asked: Any = admin.describe_cluster(request_timeout=wait_s)  # not in the client's stubs
        cluster = asked.result(wait_s + 1)
        said = f"cluster {cluster.cluster_id}, {len(cluster.nodes)} brokers"
        yield Finding("kafka", "ok", said)
        yield from _topic(admin, kafka, kafka.plan_topic, WRITES, compacted=True)
        yield from _topic(admin, kafka, kafka.members_topic, WRITES, compacted=True)
        yield from _topic(admin, kafka, kafka.pin_topic, READS, compacted=False)
        if kafka.private_key is None:
            said = "plans are not signed: whoever may WRITE to the plan topic decides"
            yield Finding("keys", "warning", said, "fairlead keys generate; kafka.private_key")
        else:
            yield Finding("keys", "ok", "plans are signed")
        if not names:
            yield Finding("groups", "warning", "discovery covers no group that Kafka lists")
            return
        yield from _groups(admin, kafka, names)
        # A topic that may not be described has no offsets: its members tell that they read it.
        seen = gateway.snapshot(names[:_ASKED])
        topics = {topic for row in seen.members.to_pylist() for topic in row["topics"]}
        topics |= set(seen.offsets["topic"].to_pylist())
        yield from _topics(admin, kafka, sorted(topics))


def _topic(
    admin: AdminClient,
    kafka: KafkaSettings,
    name: str,
    wanted: tuple[str, ...],
    *,
    compacted: bool,
) -> Iterator[Finding]:
    """Look at one topic of Fairlead's own: rights, and whether it is compacted as it must be."""
    allowed, error = _allowed(admin, kafka, [name])[name]
    if error is not None and "UNKNOWN_TOPIC" in error:
        made = "it is made when it is first needed, which takes CREATE"
        yield Finding(name, "ok", f"it does not exist, or may not be described: {made}")
        return
    if error is not None:
        yield Finding(name, "failed", error, f"{_ACL} --operation Describe --topic {name}")
        return
    lacking = [one for one in wanted if one not in allowed]
    if lacking:
        asked = " ".join(f"--operation {_spelt(one)}" for one in lacking)
        said = f"rights are missing: {', '.join(lacking)}"
        yield Finding(name, "failed", said, f"{_ACL} {asked} --topic {name}")
        if "DESCRIBE_CONFIGS" in lacking:
            return
    resource = ConfigResource(ResourceType.TOPIC, name)
    if "DESCRIBE_CONFIGS" in allowed:
        asked_configs = admin.describe_configs([resource], request_timeout=kafka.request_timeout_s)
        config = asked_configs[resource].result(kafka.request_timeout_s + 1)
        policy = config["cleanup.policy"].value or ""
        if ("compact" in policy) is not compacted:
            should = "compact" if compacted else "delete"
            yield Finding(
                name,
                "failed",
                f"cleanup.policy is {policy}: records that count would be lost",
                f"kafka-configs.sh --bootstrap-server BROKER --alter --entity-type topics "
                f"--entity-name {name} --add-config cleanup.policy={should}",
            )
            return
    if not lacking:
        yield Finding(name, "ok", "it is there, with all rights that are needed")


def _groups(admin: AdminClient, kafka: KafkaSettings, names: list[str]) -> Iterator[Finding]:
    """Look at the rights on groups: DESCRIBE, and READ where brokers assign."""
    asked = admin.describe_consumer_groups(
        names[:_ASKED],
        include_authorized_operations=True,  # type: ignore[call-arg] # not in the stubs
        request_timeout=kafka.request_timeout_s,
    )
    refused, silent = [], []
    for name, future in asked.items():
        try:
            found: Any = future.result(kafka.request_timeout_s + 1)
        except KafkaException:
            refused.append(name)
            continue
        allowed = {one.name for one in found.authorized_operations or ()}
        by_broker = found.type is ConsumerGroupType.CONSUMER
        if by_broker and not allowed & {"READ", "ALL"}:
            silent.append(name)
    of, then = f"{len(asked)} of discovery's", "they are not seen"
    yield _rights("group", "Describe", refused, of, then)
    if silent:
        yield _rights("group", "Read", silent, of, "their brokers are not told of new plans")


def _topics(admin: AdminClient, kafka: KafkaSettings, names: list[str]) -> Iterator[Finding]:
    """Look at the right to DESCRIBE the topics that groups read."""
    found = _allowed(admin, kafka, names[:_ASKED]) if names else {}
    refused = [name for name, (_, error) in found.items() if error is not None]
    yield _rights("topic", "Describe", refused, f"{len(found)}", "no lag is known of them")


def _rights(kind: str, operation: str, refused: list[str], of: str, then: str) -> Finding:
    """Return whether an operation is allowed on all groups or topics that were asked about."""
    if not refused:
        return Finding(f"{kind}s", "ok", f"{operation} is allowed on {of}")
    first = min(refused)
    return Finding(
        f"{kind}s",
        "failed",
        f"{operation} is refused on {len(refused)} of {of}, {first} among them: {then}",
        f"{_ACL} --operation {operation} --{kind} {quote(first)}",
    )


def _allowed(
    admin: AdminClient, kafka: KafkaSettings, topics: Iterable[str]
) -> dict[str, tuple[set[str], str | None]]:
    """Return which operations Kafka allows on topics, or what it says instead."""
    asked = admin.describe_topics(
        TopicCollection(list(topics)),
        include_authorized_operations=True,
        request_timeout=kafka.request_timeout_s,
    )
    found: dict[str, tuple[set[str], str | None]] = {}
    for name, future in asked.items():
        try:
            described: Any = future.result(kafka.request_timeout_s + 1)
        except KafkaException as error:
            cause = kafka_error(error)
            found[name] = set(), f"{cause.name()}: {cause.str()}"
            continue
        operations = described.authorized_operations or ()
        allowed = {one.name for one in operations}
        if AclOperation.ALL.name in allowed:
            allowed |= set(WRITES)
        found[name] = allowed, None
    return found


def _spelt(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))


def _dagster(_: Settings) -> Iterator[Finding]:
    """Look at Dagster's home, in a process of its own: whether daemons beat, and what plans."""
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        said = "DAGSTER_HOME is not set: what looks and plans by itself is not known here"
        yield Finding("dagster", "warning", said, "set it to the folder of dagster.yaml")
        return
    installed = (Path(__file__).parents[2] / "fairlead_planner" / "orchestration").is_dir()
    module = f"{'fairlead_planner.' if installed else ''}orchestration.switches"
    asked = subprocess.run(
        [sys.executable, "-m", module], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        said = f"{home}: {asked.stderr.strip().rpartition(chr(10))[2]}"
        yield Finding("dagster", "failed", said, "dagster.yaml there says where its storage is")
        return
    yield from switched(json.loads(asked.stdout))


def switched(found: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Say what the switches of Dagster mean.

    Parameters
    ----------
    found
        As `orchestration.switches` tells them: sensors and schedules that are `on` and `off`, and
        daemons that are `dead`.
    """
    if dead := found["dead"]:
        said = f"these daemons do not beat: {', '.join(dead)}"
        yield Finding("dagster", "failed", said, "dagster-daemon run")
    else:
        yield Finding("dagster", "ok", "its daemons beat")
    if "group_looks" in found["off"]:
        on = "dagster sensor start group_looks -w workspace.yaml"
        yield Finding("group_looks", "warning", "the sensor is off: nothing is looked at", on)
    planning = sorted(set(found["on"]) & set(_PLANS_BY_ITSELF))
    if planning:
        yield Finding("planning", "ok", f"{', '.join(planning)} on")
    else:
        said = f"{' and '.join(_PLANS_BY_ITSELF)} are off: nothing is planned by itself"
        on = "dagster sensor start planning_sensor -w workspace.yaml"
        yield Finding("planning", "warning", said, on)

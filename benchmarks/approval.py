"""Time from an approval to the record in the plan topic: `python -m benchmarks.approval`.

Belongs here: storing one plan per measurement; approving it by SQL, a command, a Dagster job or a
web page while `dagster dev` runs; printing, and writing approval.json. Belongs elsewhere: making
plans, or whether consumers follow them (`reaction`).

The sensor that publishes plans ticks at fixed intervals. Therefore, each plan is approved at a
random moment between ticks. An approval's time comes from the database, a record's time from the
record. Database and broker are on the same machine.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import psycopg

from benchmarks import harness
from benchmarks.consumers import KafkaPythonMember
from benchmarks.harness import Bench
from benchmarks.installation import PATIENCE_S, Installation, installed
from benchmarks.plans import draft, moves
from benchmarks.services import create_topics, wait_until
from fairlead.domain.records import StoredPlan
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings, Settings, WebSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.surfaces.web import build_app
from tests.fairlead.surfaces.web.proxies import PUBLIC, post
from tests.logins import logins
from tests.serving import serving
from tests.stored import plan_history

RESULTS: Final = Path(__file__).with_name("approval.json")
GROUP, TOPIC, MEMBERS, PARTITIONS = "approval", "records", ("one", "two"), 4
SETTINGS: Final = f'discovery.include = ["{GROUP}"]\n'
#: Goals in seconds: maximum of the median of ten measurements, and maximum of any measurement.
MEDIAN_S, LONGEST_S = 20.0, 40.0
SECRET: Final = "s" * 40
#: Seconds between two ticks of the sensor.
INTERVAL_S: Final = 15.0

Approve = Callable[[StoredPlan], None]


def main() -> None:
    """Measure the ways to approve one after another, print, and write approval.json."""
    with (
        harness.measuring(harness.parser(__doc__, rounds=10), RESULTS) as bench,
        installed(SETTINGS) as installation,
        ExitStack() as stack,
    ):
        kafka = KafkaSettings(bootstrap_servers=installation.servers)
        create_topics(installation.servers, {TOPIC: PARTITIONS})
        stack.enter_context(members(installation.servers))
        store = PlanStore(create_store_engine(installation.url))
        stack.callback(store.engine.dispose)
        address = stack.enter_context(pages(installation.url))
        dagster = stack.enter_context(installation.dagster_dev())
        installation.know(dagster, GROUP)
        topic = stack.enter_context(PlanTopic(kafka))
        topic.ensure()
        doors = approving(installation, dagster, address)
        found: dict[str, list[float]] = {door: [] for door in doors}
        for _ in range(bench.options.rounds):
            for door, approve in doors.items():
                found[door].append(measured(store, topic, approve))
                bench.log(f"{door}: {found[door][-1]:.1f} s")
        show(bench, found)


def approving(installation: Installation, dagster: str, address: str) -> dict[str, Approve]:
    """Return the four ways to approve, by name."""

    def by_sql(plan: StoredPlan) -> None:
        with psycopg.connect(installation.url) as connection:
            connection.execute(
                "SELECT fairlead.approve_plan(%s, %s, 'measured')", (plan.group, plan.version)
            )

    def by_command(plan: StoredPlan) -> None:
        version = str(plan.version)
        words = ("plans", "approve", plan.group, version, "--reason", "measured", "--yes")
        installation.run("fairlead", *words)

    def by_job(plan: StoredPlan) -> None:
        config = {"group": plan.group, "version": plan.version, "reason": "measured"}
        installation.launch(
            dagster, "approve", config={"ops": {"approve_plan": {"config": config}}}
        )

    def on_page(plan: StoredPlan) -> None:
        fields: dict[str, Any] = {"do": "approve", "group": plan.group, "version": plan.version}
        fields |= {"sha256": plan.sha256, "id": uuid4(), "reason": "measured"}
        person = [("X-Forwarded-Email", "kim@example.com"), ("X-Fairlead-Secret", SECRET)]
        answer = post(address, fields, person)
        if answer.status != 303:
            raise RuntimeError(answer.text)

    return {"SQL": by_sql, "command": by_command, "job": by_job, "page": on_page}


def measured(store: PlanStore, topic: PlanTopic, approve: Approve) -> float:
    """Propose and approve a plan; return the seconds from the approval to the record."""
    plan = proposed(store)
    time.sleep(random.uniform(0, INTERVAL_S))
    approve(plan)
    wait_until(
        lambda: store.get(plan.group, plan.version).state == "published",
        f"version {plan.version} is published",
        within_s=PATIENCE_S,
        every_s=0.2,
    )
    record = topic.read(plan.group)
    if record is None or record.value != plan.document:
        raise RuntimeError(f"version {plan.version} is not the newest record")
    statement = (
        "SELECT extract(epoch FROM at)::float8 FROM fairlead_raw.plan_event"
        " WHERE group_id = %s AND version = %s AND state = 'approved'"
    )
    with store.engine.connect() as connection:
        at = connection.exec_driver_sql(statement, (plan.group, plan.version)).scalar_one()
    return float(record.published_at.timestamp() - at)


def proposed(store: PlanStore) -> StoredPlan:
    """Store a plan that waits for approval. It moves partition 0 from one member to the other."""
    halves = np.split(np.arange(PARTITIONS, dtype=np.int32), 2)
    turn = len(plan_history(store, GROUP)) % 2
    owned = {name: {TOPIC: halves[(turn + place) % 2]} for place, name in enumerate(MEMBERS)}
    moved = moves(TOPIC, [0], [MEMBERS[1 - turn]], [MEMBERS[turn]])
    wanted = draft(GROUP, {TOPIC: PARTITIONS}, owned, moved, snapshot_id=uuid4().hex)
    (stored,) = store.record_decisions([wanted])
    if stored.plan is None:
        raise RuntimeError(stored.reason)
    return stored.plan


@contextmanager
def members(servers: str) -> Iterator[None]:
    """Run consumers that follow no plans, so that publishing a plan causes no rebalance."""
    config: dict[str, Any] = {"bootstrap_servers": servers, "group_id": GROUP}
    with ExitStack() as stack:
        running = [
            stack.enter_context(KafkaPythonMember([TOPIC], follow=False, client_id=name, **config))
            for name in MEMBERS
        ]
        wait_until(
            lambda: sum(len(member.owned) for member in running) == PARTITIONS,
            "the group settles",
            within_s=PATIENCE_S,
        )
        yield


@contextmanager
def pages(url: str) -> Iterator[str]:
    """Serve the web pages to people whom a proxy has authenticated; yield the pages' address."""
    with logins(url) as make:
        engine = create_store_engine(make("fairlead_web"))
        web = WebSettings.model_validate({"url": PUBLIC, "header": {"secret": SECRET}})
        with serving(build_app(engine, Settings(web=web))) as address:
            yield address
        engine.dispose()


def show(bench: Bench, found: dict[str, list[float]]) -> None:
    """Print medians and maxima, and write all measurements to approval.json."""
    rows = {
        door: {
            "median_s": harness.median(seconds, 1),
            "longest_s": round(max(seconds), 1),
            "rounds": [round(took_s, 1) for took_s in seconds],
        }
        for door, seconds in found.items()
    }
    bench.write({"goals": {"median_s": MEDIAN_S, "longest_s": LONGEST_S}, "doors": rows})
    bench.show(
        f"From approval to record: medians, at most {MEDIAN_S:g} s, each at most {LONGEST_S:g} s",
        ("door", "median", "longest"),
        ((door, f"{row['median_s']:.1f}", f"{row['longest_s']:.1f}") for door, row in rows.items()),
    )


if __name__ == "__main__":
    main()

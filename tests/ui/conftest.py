"""Fixtures for the UI's tests: `dagster dev` on the test run's services, and a browser."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from assets.partitions import COHORT
from fairlead.sandbox import Services
from fairlead.settings import KafkaSettings
from fairlead.store.migrate import upgrade
from tests.conftest import empty_database
from tests.fairlead.followers.helpers import Fleet
from tests.fixtures.consumer_groups import commit_offsets
from tests.pipeline import SKEWED
from tests.recalled import CONSUMED, recall
from tests.topics import create_topics
from tests.ui.browser import obtain
from tests.ui.running import SCREENSHOTS, dagster_dev, fairlead_serve, free_port, warm_spark
from tests.waiting import PATIENCE_S, eventually

#: Milliseconds. Time-out for the result of a click, long enough for a busy machine.
PATIENCE_MS = int(PATIENCE_S * 1000)
WIDTH, HEIGHT = 1400, 1000
Database = psycopg.Connection[tuple[Any, ...]]
UNFINISHED = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"]


@dataclass(frozen=True)
class Surroundings:
    """A group of two plan followers, and the services that plan it.

    Parameters
    ----------
    url, review_url
        Addresses of `dagster dev` and of `fairlead serve`.
    group
        Name of the group. A person approves its plans.
    store, dagster
        Connections to the databases of Fairlead and of Dagster.
    """

    url: str
    review_url: str
    group: str
    store: Database
    dagster: Database

    def states(self, group: str) -> list[str]:
        """Return the states of a group's versions, oldest first."""
        statement = "SELECT state FROM fairlead.plan WHERE group_id = %s ORDER BY version"
        return _column(self.store, statement, group)

    def story(self, group: str) -> dict[str, list[str]]:
        """Return the events of a group's plans, and the runs so far, for an error message."""
        events = (
            "SELECT version || ' ' || state || ' ' || at || ': ' || coalesce(reason, '')"
            " FROM fairlead_raw.plan_event WHERE group_id = %s ORDER BY at"
        )
        runs = "SELECT pipeline_name || ' ' || status FROM runs WHERE pipeline_name <> %s"
        return {
            "events": _column(self.store, events, group),
            "runs": _column(self.dagster, runs, "sample"),
        }

    def cohorts(self) -> list[str]:
        """Return the names of the cohorts that have a partition in Dagster."""
        statement = "SELECT partition FROM dynamic_partitions WHERE partitions_def_name = %s"
        return _column(self.dagster, statement, COHORT)

    def runs_under_way(self) -> bool:
        """Return whether a run has not ended. Runs of the job `sample` do not count."""
        statement = "SELECT status FROM runs WHERE pipeline_name <> 'sample' AND status = ANY(%s)"
        return bool(_column(self.dagster, statement, UNFINISHED))

    def change_sampled(self) -> bool:
        """Return whether stored samples show that partitions of the group changed owners."""
        statement = (
            "SELECT digest FROM fairlead.group_sample"
            " WHERE group_id = %s AND cardinality(members) > 1"
        )
        return len(set(_column(self.store, statement, self.group))) > 1

    def recorded(self, text: str) -> bool:
        """Return whether Dagster has an event of an asset that contains this text."""
        statement = (
            "SELECT id FROM event_logs WHERE strpos(event, %s) > 0"
            " AND dagster_event_type IN ('ASSET_OBSERVATION', 'ASSET_MATERIALIZATION')"
        )
        return bool(_column(self.dagster, statement, text))


@pytest.fixture(scope="module")
def around(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    """Start the services and a group; return their addresses and connections."""
    folder = tmp_path_factory.mktemp("ui")
    home = tmp_path_factory.mktemp("dagster")
    prefix = f"ui-{os.getpid()}"
    group, topic, plan_topic = f"{prefix}-orders", f"{prefix}-records", f"{prefix}-plans"
    with ExitStack() as stack:
        database = stack.enter_context(empty_database(services))
        dagster_database = stack.enter_context(empty_database(services))
        upgrade(database)
        web, dagster = free_port(), free_port()
        config = folder / "fairlead.toml"
        config.write_text(f"""
state_dir = "{folder}"
kafka.bootstrap_servers = "{services.bootstrap_servers}"
kafka.request_timeout_s = {PATIENCE_S}
kafka.plan_topic = "{plan_topic}"
postgres.url = "{database}"
discovery.include = ["{prefix}-*"]
spark.properties = {{"spark.sql.shuffle.partitions" = "2"}}
web.url = "http://127.0.0.1:{web}"
web.dagster_url = "http://127.0.0.1:{dagster}"

[[policies]]  # nothing arrives any more: the default horizon would be long enough for the backlog
objective = "PT10S"
horizon = "PT30S"
""")
        environment = {
            "FAIRLEAD_CONFIG": str(config),
            "DAGSTER_HOME": str(home),
            # Dagster needs psycopg2. For `postgresql://`, SQLAlchemy would use psycopg 3.
            "DAGSTER_POSTGRES_URL": dagster_database.replace("://", "+psycopg2://", 1),
        }
        starting = [
            stack.enter_context(warm_spark(folder)),
            stack.enter_context(fairlead_serve(folder / "serve.log", web, environment)),
        ]
        create_topic(services, topic, partitions=len(SKEWED))
        create_topic(services, plan_topic, cleanup_policy="compact")
        produce(services, topic, tuple(CONSUMED + records for records in SKEWED))
        offsets = {(topic, number): CONSUMED for number in range(len(SKEWED))}
        commit_offsets({"bootstrap.servers": services.bootstrap_servers}, group, offsets)
        fleet = Fleet(services, group, plan_topic, [topic])
        stack.callback(fleet.close)
        members = [fleet.join(name, enable_auto_commit=False) for name in ("orders-1", "orders-2")]
        eventually(lambda: all(member.owned.get(topic) for member in members), f"{group} settles")
        kafka = KafkaSettings(
            bootstrap_servers=services.bootstrap_servers, request_timeout_s=PATIENCE_S
        )
        recall(kafka, str(folder / "warehouse"), group)
        # Start sampling only now, so that it does not sample the group during its rebalance.
        starting.append(stack.enter_context(dagster_dev(home, dagster, environment)))
        for ready in starting:
            ready()
        yield Surroundings(
            f"http://127.0.0.1:{dagster}",
            f"http://127.0.0.1:{web}",
            group,
            stack.enter_context(psycopg.connect(database, autocommit=True)),
            stack.enter_context(psycopg.connect(dagster_database, autocommit=True)),
        )


@contextmanager
def headless() -> Iterator[Browser]:
    """Run a headless browser."""
    chromium = obtain()
    assert chromium is not None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.program,
            timeout=PATIENCE_MS,
            env={**chromium.environment()},
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
            ],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a headless browser."""
    with headless() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a browser page; the test fails if the console reports an error."""
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"{message.location.get('url')}: {message.text}")

    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        locale="en-US",  # in the locale C, Chromium's `Intl` has no locale
    )
    context.set_default_timeout(PATIENCE_MS)
    context.on("console", note)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    expect.set_options(timeout=PATIENCE_MS)
    page = context.new_page()
    yield page
    context.close()
    assert errors == []


def _column(database: Database, statement: str, value: object) -> list[str]:
    return [row[0] for row in database.execute(statement.encode(), (value,))]


def keep(page: Page, name: str, *, whole: bool = False) -> Path:
    """Save a screenshot of the visible part of a page, or of the whole page; return its path."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=path, full_page=whole)
    return path


def create_topic(
    services: Services, name: str, *, partitions: int = 1, cleanup_policy: str = "delete"
) -> None:
    """Create a topic and wait until it exists."""
    admin = AdminClient({"bootstrap.servers": services.bootstrap_servers})
    topic = NewTopic(name, partitions, 1, config={"cleanup.policy": cleanup_policy})
    create_topics(admin, topic)


def produce(services: Services, topic: str, counts: tuple[int, ...]) -> None:
    """Append `counts[p]` records to each partition p of a topic."""
    producer = Producer({"bootstrap.servers": services.bootstrap_servers})
    for partition, count in enumerate(counts):
        for _ in range(count):
            producer.produce(topic, b"record", partition=partition)
    assert producer.flush(PATIENCE_S) == 0

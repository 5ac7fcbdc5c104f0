"""Shared fixtures: one embedded Kafka, one Postgres and one Spark session for each test run.

Each service starts when the first test uses it. Processes of pytest-xdist share Kafka and Postgres.
All tests of a file run in one process. All tests with Spark also run in one process, because
processes cannot share a Spark session. Belongs here: fixtures that several test folders use.
"""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import hypothesis
import psycopg
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from filelock import FileLock
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from psycopg import sql
from pydantic import SecretStr

from fairlead.kafka.fetch_sources import RACK_AWARE, SELECTOR
from fairlead.sandbox import Sandbox, Services
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.plugin import compile_java, plugin_jar
from fairlead.sandbox.postgres import Postgres
from fairlead.settings import KafkaSettings, PostgresSettings, Settings, SparkSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.migrate import upgrade
from tests.cluster import KafkaCluster
from tests.lengths import form
from tests.started import limits
from tests.topics import create_topics
from tests.waiting import PATIENCE_S, eventually
from tests.while_needed import end_after, note_last, while_needed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = [
    f"tests.fixtures.{module}" for module in ("consumer_groups", "pipelines", "plans")
]

# With a deadline, hypothesis would fail examples that are slow only because the machine is busy.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

UNKNOWN_TOPIC = KafkaError.UNKNOWN_TOPIC_OR_PART  # the test has deleted the topic
SPARK = SparkSettings(master="local[2]", properties={"spark.sql.shuffle.partitions": "2"})
KafkaTopic = Callable[..., str]
#: Parts of the paths of tests that take minutes; these tests run first, in this order. The demo is
#: last: on a slow machine, its 22 consumers take CPU time from the other tests until it ends.
LONG = (
    *("tests/ui/", "tests/orchestration/", "test_storm", "followers/confluent/"),
    *("kafka/test_rights", "kafka/test_refusals", "sandbox/", "tests/jvm/", "tests/test_wheel"),
    "demo/test_demo",
)
#: Groups of tests that run in one process: name of the group -> fixtures that its tests use.
TOGETHER = {
    "spark": {"spark"},
    "java": {"java_classpath"},
    "own services": {"own_services"},
    "three brokers": {"three_brokers"},
    "secured broker": {"secured"},
}
#: Racks of `three_brokers`. AWARE: numbers of brokers that support follower fetching (KIP-392).
RACKS = ("r1", "r2", "r3")
AWARE = (2, 3)
RACKED = [
    {"broker.rack": rack, "broker.session.timeout.ms": "12000"}
    | ({SELECTOR: RACK_AWARE} if number in AWARE else {})
    for number, rack in enumerate(RACKS, start=1)
]
#: Names of tests that do not run because there is no browser.
LEFT_OUT: set[str] = set()
#: Linux's in-memory file system. Postgres's files are in it if at least ROOM bytes are free.
MEMORY = Path("/dev/shm")  # noqa: S108 - gets a folder with a new name
ROOM = 2 * 2**30
#: Name of the environment variable with the folder of the services, for all processes of a run.
SERVICES_FOLDER = "TEST_SERVICES_FOLDER"
#: SQL that copies the right to connect from a template database. CREATE DATABASE does not copy it.
RIGHTS_TOO = """
    UPDATE pg_database AS made SET datacl = model.datacl FROM pg_database AS model
    WHERE made.datname = %(name)s AND model.datname = %(template)s
        AND %(template)s <> 'template1'
"""


def pytest_configure(config: pytest.Config) -> None:
    """Choose a folder for Kafka, Postgres and the files of tests.

    Pytest's own folder does not work: if root starts pytest, other users have no access to it, and
    Postgres runs as another user.
    """
    # Tests send Ctrl-C to child processes, which ignore it if pytest runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are imported, because imported tests stay in memory
    # By default Dagster gives up on a code server after 60 s, but a busy machine takes longer.
    os.environ.setdefault("DAGSTER_GRPC_TIMEOUT_SECONDS", "600")
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="fairlead-")
        atexit.register(shutil.rmtree, folder)  # not earlier, because pytest still reads it
        limits.note_starts(Path(folder, "starts"))
        config.pluginmanager.register(limits.Report(Path(folder, "starts")))
        os.environ[SERVICES_FOLDER] = str(Path(folder, "services"))
        _keep_postgres_in_memory(Path(folder, "services"))
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)


def _keep_postgres_in_memory(services: Path) -> None:
    """Put Postgres's files into memory if there is room, since each database has 300 files."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        folder = tempfile.mkdtemp(prefix="fairlead-", dir=MEMORY)
        atexit.register(shutil.rmtree, folder)
        services.mkdir()
        (services / "postgres").symlink_to(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop Kafka and Postgres if a test has started them."""
    if not hasattr(config, "workerinput"):
        gc.collect()  # closes clients that tests left open, before the broker stops
        Sandbox(Path(os.environ.pop(SERVICES_FOLDER))).stop()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Assign all tests of a file, or all tests with an expensive fixture, to one process."""
    fixtures = set(getattr(item, "fixturenames", ()))
    group = next((name for name, users in TOGETHER.items() if users & fixtures), str(item.path))
    if item.path.parent.name == "jvm":  # these tests also start a broker
        group = "java"
    item.add_marker(pytest.mark.xdist_group(group))
    served = {"kafka", "postgres"} & {mark.name for mark in item.iter_markers()}
    if {"sandbox", "own_services"} & fixtures and not served:  # unmarked tests count as quick
        pytest.fail(f"{item.nodeid} wants the run's services: mark it kafka or postgres")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist changes the tests' names
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests, and move tests that take minutes to the front.

    Tests marked `test_long` run only in `make test-long`. If ALLOW_NO_BROWSER is set and there is
    no browser, tests that need one do not run.
    """
    left = [item for item in items if item.get_closest_marker("test_long")]
    if form(short=False, long=True):
        left = []
    browsing = [item for item in items if "browser" in getattr(item, "fixturenames", ())]
    if browsing and os.environ.get("ALLOW_NO_BROWSER"):
        from tests.ui.browser import find  # noqa: PLC0415 - Playwright, for who needs it

        if find() is None:
            left += browsing
            LEFT_OUT.update(item.nodeid for item in browsing)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = sorted(LEFT_OUT)
    items.sort(key=lambda item: [path not in item.nodeid for path in LONG])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Turn garbage collection on again; fail if pytest-xdist ignores the groups of tests."""
    # `pytest_configure` turned garbage collection off, because it takes a tenth of the import time.
    gc.freeze()
    gc.enable()
    session.config.stash[limits.CPU_BEFORE] = limits.cpu_s()
    note_last(session.items)
    if session.config.getoption("loadgroup", default=False):
        assert any("@" in item.nodeid for item in session.items), "no group stays together"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Stop the services of a group of tests after its last test."""
    end_after(item)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the names of tests that a pytest-xdist process left out for lack of a browser."""
    LEFT_OUT.update(getattr(node, "workeroutput", {}).get("left_out", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that did not run because there is no browser."""
    if LEFT_OUT:
        terminalreporter.section("left out: there is no browser")
        for test in sorted(LEFT_OUT):
            terminalreporter.line(test)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options: the lengths of storm tests and of the container test, and a storm's seed."""
    events = form(short=3, long=100)
    parser.addoption("--storm-events", type=int, default=events, help="of each follower storm")
    parser.addoption("--container-kills", type=int, default=200, help="in the image's test")
    parser.addoption("--storm-seed", type=int, default=1, help="what decides them")


@pytest.fixture(scope="session", autouse=True)
def _own_surroundings() -> Iterator[None]:
    """Hide the developer's settings from the tests, and raise time limits for slow machines."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("FAIRLEAD_")]:
            if name != "FAIRLEAD_CACHE_DIR":
                patch.delenv(name)
        patch.setenv("FAIRLEAD_CONFIG", os.devnull)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setattr("fairlead.sandbox.processes.START_TIMEOUT_S", PATIENCE_S)
        _give_clients_time(patch)
        yield


def _give_clients_time(patch: pytest.MonkeyPatch) -> None:
    """Raise time limits of clients that a slow, busy machine may exceed."""
    for client in (KafkaAdminClient, KafkaConsumer, KafkaProducer):
        patch.setitem(client.DEFAULT_CONFIG, "bootstrap_timeout_ms", 600_000)
    patch.setitem(KafkaAdminClient.DEFAULT_CONFIG, "request_timeout_ms", 300_000)
    for limit in ("max_block_ms", "delivery_timeout_ms"):
        patch.setitem(KafkaProducer.DEFAULT_CONFIG, limit, 600_000)
    defaults = create_store_engine.__kwdefaults__
    assert defaults is not None
    patch.setitem(defaults, "connect_timeout_s", 60)


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """Return the test run's running sandbox."""
    sandbox = Sandbox(Path(os.environ[SERVICES_FOLDER]))
    with limits.shared():
        sandbox.start()
    return sandbox


@pytest.fixture(scope="session")
def own_services(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sandbox that tests may stop, damage and restart.

    All these tests use the same folder, because formatting a new broker takes seconds.
    """
    return tmp_path_factory.mktemp("own") / "sandbox"


@pytest.fixture
def own_postgres(own_services: Path) -> Iterator[Postgres]:
    """Return a Postgres server that tests may stop, with a new migrated database `fairlead`."""
    server = Postgres(own_services / "postgres")
    server.start()
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE fairlead WITH (FORCE)")
        connection.execute("CREATE DATABASE fairlead")
    upgrade(server.url("fairlead"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Return three brokers in three racks; `AWARE` brokers support follower fetching (KIP-392)."""
    with while_needed("three brokers") as stack:
        cluster = KafkaCluster(tmp_path_factory.mktemp("racks"), settings=RACKED)
        yield stack.enter_context(cluster)


@pytest.fixture(scope="session")
def services(sandbox: Sandbox) -> Services:
    """Return the addresses of the test run's Kafka and Postgres."""
    services = sandbox.running()
    assert services is not None
    return services


@pytest.fixture(scope="session")
def settings(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return settings for the test run's services, with a separate state directory."""
    state_dir = tmp_path_factory.mktemp("state")
    return Settings(
        state_dir=state_dir,
        warehouse=str(state_dir / "warehouse"),
        kafka=KafkaSettings(
            bootstrap_servers=services.bootstrap_servers, request_timeout_s=PATIENCE_S
        ),
        postgres=PostgresSettings(url=SecretStr(services.postgres_url)),
        spark=SPARK,
    )


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """Return the run's Spark session."""
    from fairlead.spark.session import build_session  # noqa: PLC0415 - seconds, for who needs it

    with limits.shared():
        session = build_session(SPARK, app_name="tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def java_classpath() -> str:
    """Return a classpath: our jar, Kafka's jars, and the tests' Java programs, compiled once."""
    classes = Path(os.environ[SERVICES_FOLDER]).with_name("classes")
    sources = sorted(Path(__file__).with_name("jvm").glob("*.java"))
    with FileLock(f"{classes}.lock"), limits.shared():
        jars = [plugin_jar(), *kafka_classpath()]
        if not classes.exists():
            with tempfile.TemporaryDirectory(dir=classes.parent) as folder:
                compile_java(sources, jars, Path(folder, "classes"), release=17)
                Path(folder, "classes").rename(classes)
    return os.pathsep.join(map(str, [classes, *jars]))


@pytest.fixture
def unique_name() -> str:
    """Return a name for a group or topic that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def kafka_topic(services: Services) -> Iterator[KafkaTopic]:
    """Return a function that creates a topic, which is deleted when the test ends.

    `kafka_topic(name=None, *, partitions=1, config=None) -> name`
    """
    admin = AdminClient({"bootstrap.servers": services.bootstrap_servers})
    created: list[str] = []

    def create(
        name: str | None = None, *, partitions: int = 1, config: dict[str, str] | None = None
    ) -> str:
        topic = name or f"test-{uuid.uuid4().hex[:12]}"
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config or {})
        create_topics(admin, new)
        created.append(topic)
        eventually(lambda: _knows(admin, topic), f"topic {topic} is there")
        return topic

    yield create
    for future in (admin.delete_topics(created) if created else {}).values():
        try:
            future.result(timeout=PATIENCE_S)
        except KafkaException as error:
            cause = error.args[0]
            if not isinstance(cause, KafkaError) or cause.code() != UNKNOWN_TOPIC:
                raise


def _knows(admin: AdminClient, topic: str) -> bool:
    """Return whether the broker returns the metadata of a new topic."""
    found = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic]
    return found.error is None and bool(found.partitions)


@pytest.fixture
def database(services: Services) -> Iterator[str]:
    """Return the URL of an empty Postgres database, which is dropped when the test ends."""
    with empty_database(services) as url:
        yield url


@pytest.fixture(scope="session")
def _template(services: Services) -> Iterator[str]:
    """Return the name of a migrated database, from which `migrated` copies others."""
    with empty_database(services) as url:
        upgrade(url)
        yield urlsplit(url).path[1:]


@pytest.fixture
def migrated(services: Services, _template: str) -> Iterator[str]:
    """Return the URL of a migrated database, copied from a template because that is faster."""
    with empty_database(services, template=_template) as url:
        yield url


@pytest.fixture(scope="session")
def _week_template(services: Services, _template: str) -> Iterator[str]:
    """Return the name of a template database with the documentation's sample week."""
    from tests.docs.scenario import store_week  # noqa: PLC0415 - for who needs it

    with empty_database(services, template=_template) as url:
        store_week(url)
        yield urlsplit(url).path[1:]


@pytest.fixture
def week(services: Services, _week_template: str) -> Iterator[str]:
    """Return the URL of a database with the sample week, copied from the template."""
    with empty_database(services, template=_week_template) as url:
        yield url


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to each report the CPU seconds of this process and of its children that have ended."""
    report = yield
    now = limits.cpu_s()
    report.user_properties.append((limits.CPU, now - item.config.stash[limits.CPU_BEFORE]))
    item.config.stash[limits.CPU_BEFORE] = now
    return report


@contextmanager
def empty_database(services: Services, template: str = "template1") -> Iterator[str]:
    """Create a Postgres database from a template; yield its URL, and drop it at the end."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    identifier = sql.Identifier(name)
    with psycopg.connect(services.postgres_url, autocommit=True) as connection:
        make = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(make.format(identifier, sql.Identifier(template)))
        try:
            connection.execute(RIGHTS_TOO, {"name": name, "template": template})
            yield urlsplit(services.postgres_url)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))

"""The web application while all processes of the database are stopped."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import psutil
import psycopg
import pytest
from sqlalchemy import Engine, text

from fairlead.errors import StoreUnavailableError
from fairlead.sandbox.postgres import Postgres
from fairlead.settings import Settings
from fairlead.store import watched
from fairlead.store.engine import create_store_engine, transaction
from fairlead.surfaces.web import build_app
from tests.fairlead.surfaces.web.test_app import get
from tests.serving import serving
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.postgres

#: Number of connections to open before the database stops; opening them later would time out.
CONNECTIONS = 5
ASLEEP = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


def sleep(engine: Engine, seconds: float) -> None:
    """Run a query that takes this many seconds."""
    with transaction(engine) as connection:
        connection.execute(text(f"SELECT pg_sleep({seconds:g})"))


@contextmanager
def frozen(server: Postgres) -> Iterator[None]:
    """Stop all processes of a server with SIGSTOP; resume them when the block ends."""
    main = server.process()
    assert main is not None
    processes = [main, *main.children()]

    def send(number: signal.Signals) -> None:
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # a child of Postgres may end at any time
                process.send_signal(number)

    try:
        send(signal.SIGSTOP)
        yield
    finally:
        send(signal.SIGCONT)


def test_frozen_database_is_reported_and_a_slow_one_is_not(
    own_postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages and `/metrics` report a stopped database, and its running queries fail.

    A query that is only slow does not fail.
    """
    monkeypatch.setattr(watched, "_SILENCE_S", 0.2)
    url = own_postgres.url("fairlead")
    # clock: longer than a slow server takes to answer
    engine = create_store_engine(url, connect_timeout_s=40)
    with serving(build_app(engine, Settings())) as address, ThreadPoolExecutor() as pool:
        sleep(engine, 1)
        assert get(address)[0] == 200
        with ExitStack() as stack:
            for _ in range(CONNECTIONS):
                stack.enter_context(engine.connect())
        asleep = pool.submit(sleep, engine, 300)
        with psycopg.connect(url, autocommit=True) as connection:
            eventually(lambda: connection.execute(ASLEEP).fetchone() == (1,), "the query runs")
        with frozen(own_postgres):
            answers = {
                path: pool.submit(get, f"{address}{path}")
                for path in ("/", "/metrics", "/ready", "/health")
            }
            assert answers["/health"].result()[::2] == (200, "ok\n")
            for path in ("/", "/ready"):
                status, _, text = answers[path].result()
                assert (status, "database does not answer" in text) == (503, True)
            assert "\nfairlead_database_up 0.0\n" in answers["/metrics"].result()[2]
            with pytest.raises(StoreUnavailableError, match="does not answer any more"):
                asleep.result(PATIENCE_S)
        eventually(lambda: get(address)[0] == 200, "pages are there again")
    engine.dispose()

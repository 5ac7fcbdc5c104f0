"""Real publications that are killed, or frozen until others have done their work, many times over.

Belongs here: who dies where, what happens meanwhile, and what must hold afterwards. Does not: the
runs and their points (`crashing`).

`python -m tests.fairlead.workflows.killing --kills 200` starts a broker and a Postgres of its own.
"""

import argparse
import os
import signal
import tempfile
import time
from collections import Counter
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final

import psycopg

from fairlead.errors import FairleadError
from fairlead.followers.core.plan_cache import PlanCache, PlanRecord
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.settings import KafkaSettings
from fairlead.store import PlanStore, create_store_engine
from fairlead.store.migrate import upgrade
from fairlead.workflows.reconciling import differences
from tests.cluster import QUIET_PROPERTIES
from tests.fairlead.workflows.crashing import PLANNING, RETIRING, plan, send_back, survive
from tests.waiting import PATIENCE_S, eventually

# clocks: how long it took, for who started it

GROUPS: Final = tuple(f"g{number}" for number in range(8))


class Killing:
    """Groups whose publications are killed, one after the other.

    Parameters
    ----------
    url, kafka
        Where they run.
    seed
        Says who dies where.
    """

    def __init__(self, url: str, kafka: KafkaSettings, seed: int = 0) -> None:
        self._url, self._kafka = url, kafka
        self._random = Random(seed)
        self._runs = Counter[str]()
        self.done = Counter[str]()
        self._engine = create_store_engine(url)
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["tests.fairlead.workflows.crashing"])

    def kill_one(self) -> None:
        """Kill or freeze a run, do the next one, wake what was frozen, and look."""
        group, freezing = self._random.choice(GROUPS), self._random.random() < 1 / 2
        store = PlanStore(self._engine)
        retiring = store.published(group) is not None and self._random.random() < 1 / 4
        point = self._random.choice(list(RETIRING if retiring else PLANNING))
        how = signal.SIGSTOP if freezing else signal.SIGKILL
        given = (self._url, self._kafka, group, self._next(group), point, how, retiring)
        victim = self._context.Process(target=run, args=given)
        victim.start()
        try:
            if not freezing:
                victim.join(PATIENCE_S)
                assert victim.exitcode == -signal.SIGKILL, (group, point, victim.exitcode)
            else:
                assert victim.pid is not None
                wait_until_stopped(victim.pid)
                end_sessions(self._url)
            plan(self._url, self._kafka, group, self._next(group), survive)
            if freezing:
                assert victim.pid is not None
                os.kill(victim.pid, signal.SIGCONT)
                victim.join(PATIENCE_S)
                assert victim.exitcode is not None, (group, point, "does not end")
        finally:
            victim.kill()  # a frozen one would never end
            victim.join()
        victim.close()
        self.done[f"{how.name} {'retiring' if retiring else 'planning'}"] += 1
        plan(self._url, self._kafka, group, self._next(group), survive)
        self.agree(group, f"{how.name} at '{point}'")

    def agree(self, group: str, after: str) -> None:
        """Hold database, topic and a new follower of a group against each other."""
        store = PlanStore(self._engine)
        history = store.history(group)
        assert [row["version"] for row in history] == list(range(1, len(history) + 1)), after
        assert store.outbox().outstanding([group]) == [], after
        published = store.published(group)
        assert published is not None, after
        with PlanTopic(self._kafka) as topic:
            assert differences(store, [group], topic=topic, verifier=None) == [], after
            record, cache = topic.read(group), PlanCache(group, topic.origin, None)
        assert record is not None
        assert record.value == published.document, after
        cache.apply(PlanRecord(0, group.encode(), record.value, tuple(record.headers)))
        assert cache.state.plan is not None
        assert cache.state.plan.version == published.version, after

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _next(self, group: str) -> str:
        self._runs[group] += 1
        return f"s{self._runs[group]}"


def run(  # noqa: PLR0917 - what another process is given
    url: str,
    kafka: KafkaSettings,
    group: str,
    snapshot: str,
    point: str,
    how: signal.Signals,
    retiring: bool,  # noqa: FBT001 - the same
) -> None:
    """Plan, or retire, until a point, and be killed or stopped there."""

    def reach(where: str) -> None:
        if where == point:
            os.kill(os.getpid(), how)

    with suppress(FairleadError, AssertionError):  # what it is told when it wakes too late
        if retiring:
            send_back(url, kafka, group, reach)
        else:
            plan(url, kafka, group, snapshot, reach)


def wait_until_stopped(pid: int) -> None:
    """Wait until a process has stopped itself."""

    def stopped() -> bool:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state != "Z", "it ended before it came there"
        return state == "T"

    eventually(stopped, "it comes there")


def end_sessions(url: str) -> None:
    """End the sessions that hold a transaction open, as the database does with the idle."""
    with psycopg.connect(url, autocommit=True) as superuser:
        superuser.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )


def main() -> None:
    """Kill as often as is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker, server = KafkaBroker(Path(folder, "kafka")), Postgres(Path(folder, "postgres"))
        broker.start()
        server.start()
        try:
            url = server.url("fairlead")
            upgrade(url)
            kafka = KafkaSettings(
                bootstrap_servers=broker.bootstrap_servers, properties=QUIET_PROPERTIES
            )
            with PlanTopic(kafka) as topic:
                topic.ensure()
            killing, began = Killing(url, kafka, given.seed), time.monotonic()
            for _ in range(given.kills):
                killing.kill_one()
            killing.close()
            took = time.monotonic() - began
            print(f"{given.kills} in {took:.0f} s, {dict(killing.done)}: all agree")  # noqa: T201
        finally:
            server.stop()
            broker.stop()


if __name__ == "__main__":
    main()

"""What `fairlead demo` and `fairlead dev` set up: services, the schema, a home for Dagster.

Belongs here: the environment in which Dagster's processes find everything. Does not: the cluster's
contents (`cluster`).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead.errors import ConfigurationError
from fairlead.kafka.members_topic import MembersTopic
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Sandbox, Services
from fairlead.settings import Settings, load_settings
from fairlead.store.migrate import upgrade

#: The demo's own policies, used instead of the user's `fairlead.toml`.
POLICIES = Path(__file__).with_name("fairlead.toml")

#: The folder that has the pipeline; there is none beside an installed wheel.
CHECKOUT = Path(__file__).parents[3]
_STOP_S: Final = 10.0
_STORAGE = """
storage:
  postgres:
    postgres_url:
      env: DAGSTER_POSTGRES_URL
"""


@dataclass(frozen=True)
class Surroundings:
    """Running services; this process's environment leads its children to them."""

    services: Services
    settings: Settings
    dagster_home: Path

    def planner(self, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
        """Start `python -m orchestration` with these arguments, its output in a log file."""
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "orchestration", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
            )


def dagster_yaml() -> str:
    """Return the checkout's `dagster.yaml`, with its storage in the embedded Postgres.

    Raises
    ------
    ConfigurationError
        This is no checkout.
    """
    try:
        return (CHECKOUT / "dagster.yaml").read_text() + _STORAGE
    except FileNotFoundError as error:
        raise ConfigurationError("It runs from a checkout: the wheel has no pipeline") from error


def reset(state_dir: Path) -> None:
    """Remove what an earlier demo left behind.

    Raises
    ------
    SandboxError
        The sandbox is in use, by `make dev` say.
    """
    Sandbox(state_dir).erase()
    for name in ("dagster", "warehouse", "demo"):
        shutil.rmtree(state_dir / name, ignore_errors=True)


@contextmanager
def surroundings(state_dir: Path, *, progress: Callable[[str], None]) -> Iterator[Surroundings]:
    """Start the services, bring schema and plan topic about, and give Dagster a home.

    Everything is stopped on leaving; data stay under `state_dir`. `progress` takes a line for the
    user when something takes a while.
    """
    state_dir = state_dir.absolute()
    home = state_dir / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text(dagster_yaml())
    with Sandbox(state_dir, progress=progress) as services:
        upgrade(services.postgres_url)
        _forget_user_settings()
        os.environ.update(
            services.environment()
            | {
                "FAIRLEAD_CONFIG": str(POLICIES),
                "FAIRLEAD_STATE_DIR": str(state_dir),
                "DAGSTER_HOME": str(home),
            }
        )
        settings = load_settings()
        with PlanTopic(settings.kafka) as topic:
            topic.ensure()
        MembersTopic(settings.kafka).ensure()
        with _fork_server(home):
            yield Surroundings(services, settings, home)


@contextmanager
def _fork_server(home: Path) -> Iterator[None]:
    """Import once what all runs need, while everything else starts."""
    command = [sys.executable, "-m", "orchestration.forkserver"]
    with (home / "forkserver.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=CHECKOUT, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            server.terminate()  # it waits for runs that are not over
            try:
                server.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _forget_user_settings() -> None:
    """Keep what is meant for the user's own cluster away from the embedded one."""
    for name in list(os.environ):
        if name.startswith("FAIRLEAD_") and name != "FAIRLEAD_CACHE_DIR":
            del os.environ[name]

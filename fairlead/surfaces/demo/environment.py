"""The environment of `fairlead demo` and `fairlead dev`: services, the schema, Dagster's home.

Belongs here: environment variables for Dagster's processes. Belongs elsewhere: topics and consumers
(`topics_and_consumers`).
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairlead.errors import ConfigurationError
from fairlead.kafka.members_topic import MembersTopic
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Sandbox, Services
from fairlead.settings import Settings, load_settings
from fairlead.store.migrate import upgrade
from fairlead.surfaces import pipeline

#: The demo's own policies, used instead of the user's `fairlead.toml`.
POLICIES = Path(__file__).with_name("fairlead.toml")

_STORAGE = """
storage:
  postgres:
    postgres_url:
      env: DAGSTER_POSTGRES_URL
"""


@dataclass(frozen=True)
class DemoEnvironment:
    """The running services, settings with the services' addresses, and Dagster's home."""

    services: Services
    settings: Settings
    dagster_home: Path


def dev_home(state_dir: Path) -> Path:
    """Return Dagster's home for the sandbox."""
    return state_dir / "dagster"


def dagster_yaml() -> str:
    """Return the planner's `dagster.yaml`, with its storage in the embedded Postgres."""
    return pipeline.dagster_yaml() + _STORAGE


def reset(state_dir: Path) -> None:
    """Remove the files of an earlier demo."""
    Sandbox(state_dir).erase()
    for name in ("dagster", "warehouse", "demo"):
        shutil.rmtree(state_dir / name, ignore_errors=True)


@contextmanager
def demo_environment(
    state_dir: Path, *, progress: Callable[[str], None]
) -> Iterator[DemoEnvironment]:
    """Start the services, create the schema, the topics and Dagster's home.

    All services stop at the end of the block; their data stay under `state_dir`. Before each slow
    step, `progress` is called with a line of text for the user.

    Raises
    ------
    ConfigurationError
        The code does not run from a checkout.
    """
    if not (pipeline.CHECKOUT / "workspace.yaml").exists():
        raise ConfigurationError("run it in a checkout: the wheel has no embedded services")
    state_dir = state_dir.absolute()
    home = dev_home(state_dir)
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text(dagster_yaml())
    with Sandbox(state_dir, progress=progress) as services:
        upgrade(services.postgres_url)
        for name in list(os.environ):  # remove the user's own settings
            if name.startswith("FAIRLEAD_") and name != "FAIRLEAD_CACHE_DIR":
                del os.environ[name]
        os.environ.update(
            services.environment()
            | {
                "FAIRLEAD_CONFIG": str(POLICIES),
                "FAIRLEAD_STATE_DIR": str(state_dir),
                pipeline.HOME_VARIABLE: str(home),
            }
        )
        settings = load_settings()
        with PlanTopic(settings.kafka) as topic:
            topic.ensure()
        MembersTopic(settings.kafka).ensure()
        yield DemoEnvironment(services, settings, home)

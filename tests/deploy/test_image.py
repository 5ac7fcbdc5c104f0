"""Run the services of compose.yaml from empty volumes until consumers follow a plan.

Then kill and stop services, and check that plan topic and database agree.
"""

import random
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.deploy.containers import COMPOSE, Composed, build

pytestmark = pytest.mark.test_long(guarded_by="tests/deploy/test_compose.py")

OURS = [name for name, service in COMPOSE["services"].items() if "build" in service]
KILLED = ("postgres", "kafka", "code", "daemon", "webserver", "serve")
WITHDRAW = "fairlead plans withdraw carts --reason again --yes"
PUBLISH = """
version=$(fairlead plans rollback carts 1 --reason again --yes --json |
    python -c 'import json, sys; print(json.load(sys.stdin)["version"])')
fairlead plans approve carts "$version" --reason agreed --yes
fairlead plans publish carts
"""
PAGE = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:{}').read().decode())"
SETTINGS = """
[discovery]
include = ["carts"]

[sampling]
every = "PT10S"

[[policies]]
groups = "*"
approval = { automatic = true, min_improvement = 0.05 }
"""


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    """Build the images and start all services, each after the services that it depends on."""
    scratch = tmp_path_factory.mktemp("image")
    build(scratch)
    settings = scratch / "fairlead.toml"
    settings.write_text(SETTINGS)
    settings.chmod(0o644)
    composed = Composed(scratch, "fairlead-test", {"/etc/fairlead/fairlead.toml": settings})
    try:
        waited: set[str] = set()
        while left := [name for name in SERVICES if name not in waited]:
            for name in left:
                needed = COMPOSE["services"][name].get("depends_on", {})
                if not set(needed) - waited:
                    _started(composed, name)
                    waited.add(name)
        yield composed
    finally:
        composed.remove()


#: Names of all services except Grafana, for which Debian has no package.
SERVICES = [name for name in COMPOSE["services"] if name != "grafana"]


def _started(composed: Composed, name: str) -> None:
    composed.start(name)
    if COMPOSE["services"][name]["restart"] == "no":
        assert composed.ended_well(name), composed.log(name)
    elif "test" in COMPOSE["services"][name].get("healthcheck", {}) and name != "kafka":
        composed.wait(lambda: composed.healthy(name), f"{name} is healthy")
    elif name == "kafka":  # its health check is a script that our image lacks
        composed.wait(lambda: "Kafka Server started" in composed.log(name), name)


@pytest.fixture(scope="module")
def followed(composed: Composed) -> Composed:
    """Start consumers that fall behind, turn on planning, and wait until they follow a plan."""
    composed.start_beside("workload", ["python", "/tests/workload.py"])
    workspace = ["--workspace", "/opt/dagster/workspace.yaml"]
    composed.exec("daemon", "dagster", "sensor", "start", "planning_sensor", *workspace)
    plans = (
        "SELECT count(*) FROM fairlead.plan_history WHERE group_id = 'carts'"
        " AND state = 'published' AND adherence = 1"
    )
    composed.wait(lambda: answer(composed, plans) == "1", "a plan is followed")
    return composed


def test_from_empty_to_a_followed_plan(followed: Composed) -> None:
    """Web pages show the group, Prometheus has its metrics, and the role `approver` exists."""
    fetched = followed.exec("serve", "python", "-c", PAGE.format("9464/group?group=carts"))
    assert "carts" in fetched
    up = PAGE.format("9090/api/v1/query?query=fairlead_group_forecast_lag_seconds")
    followed.wait(
        lambda: '"group":"carts"' in followed.exec("serve", "python", "-c", up),
        "Prometheus has scraped the pages",
    )
    assert answer(followed, "SELECT rolname FROM pg_roles WHERE rolname = 'approver'") == "approver"


def test_kills_leave_database_and_topic_agreed(
    followed: Composed, pytestconfig: pytest.Config
) -> None:
    """After each kill of a container during publication or withdrawal, topic and database agree."""
    chance = random.Random(2026)
    versions: list[int] = []
    amid = 0
    lasts_s = {WITHDRAW: 15.0, PUBLISH: 15.0}
    for kill in range(pytestconfig.getoption("container_kills")):
        published = "SELECT count(*) FROM fairlead.plan_history WHERE state = 'published'"
        step = WITHDRAW if answer(followed, published) == "1" else PUBLISH
        sending = followed.begin("code", "sh", "-c", step)
        began = time.monotonic()  # clock: the kill comes within the duration of a step
        try:
            sending.wait(chance.uniform(0, lasts_s[step]))
            took_s = time.monotonic() - began  # clock: the duration of a step
            lasts_s[step] = 1.2 * took_s  # so that some kills come just after the step
        except subprocess.TimeoutExpired:
            amid += 1
            lasts_s[step] *= 1.1  # in case the next step takes longer
        killed = chance.choice(KILLED)
        followed.kill(killed)
        sending.wait()
        wait_until_running(followed, killed)
        versions.append(agreed(followed, f"kill {kill}, of {killed}"))
        sys.stdout.write(f"kill {kill}, of {killed}: version {versions[-1]}, {amid} amid a step\n")
        sys.stdout.flush()
    assert len(set(versions)) > len(versions) // 10  # clock: plans were published between kills
    assert amid


def wait_until_running(composed: Composed, name: str) -> None:
    """Wait until a service is healthy again. Skip Kafka, whose check our image cannot run."""
    if name != "kafka" and "test" in COMPOSE["services"][name].get("healthcheck", {}):
        composed.wait(lambda: composed.healthy(name), f"{name} is healthy again")


def agreed(composed: Composed, after: str) -> int:
    """Wait until topic and database agree; return the published version."""
    found: list[str] = []

    def ask() -> bool:
        answer = composed.answer("code", "python", "/tests/agreement.py")
        found.extend([answer] if answer else [])
        return bool(found)

    composed.wait(ask, f"{after}: database and topic agree")
    return int(found[0])


@pytest.mark.parametrize("name", [name for name in OURS if name != "migrate"])
def test_services_end_cleanly_after_sigterm(followed: Composed, name: str) -> None:
    """After SIGTERM while publishing or withdrawing, a service ends; topic and database agree."""
    published = "SELECT count(*) FROM fairlead.plan_history WHERE state = 'published'"
    step = WITHDRAW if answer(followed, published) == "1" else PUBLISH
    sending = followed.begin("code", "sh", "-c", step)
    time.sleep(random.Random(name).uniform(2, 10))  # clock: when to stop the service
    followed.stop(name)
    assert followed.exit_code(name) != 137
    followed.start_again(name)
    sending.wait()
    wait_until_running(followed, name)
    agreed(followed, f"SIGTERM of {name}")


def answer(composed: Composed, query: str) -> str:
    """Return the result of a query to Fairlead's database, as text."""
    words = ["psql", "--username", "postgres", "--no-align", "--tuples-only", "--command", query]
    return composed.exec("postgres", *words, "fairlead").strip()

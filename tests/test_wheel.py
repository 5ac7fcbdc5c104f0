"""The wheel, and the source distribution from which it can be built."""

import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import Page, expect

from fairlead.settings import Settings
from fairlead.surfaces.demo.load import steady_load
from fairlead.surfaces.demo.scenario import DemoGroup
from fairlead.surfaces.demo.topics_and_consumers import Consumers
from tests.conftest import KafkaTopic
from tests.fairlead.followers.helpers import wait_until_settled
from tests.packaging import build, new_environment
from tests.programs import ended
from tests.ui.conftest import browser, page  # noqa: F401 - fixtures
from tests.ui.test_person import assert_open_to_all

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution of the checkout."""
    return build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return build("wheel", folder, source=source)


def names(wheel: Path) -> set[str]:
    """Return the paths of the files in a wheel."""
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def tops(files: Iterable[str]) -> set[str]:
    """Return the names of the folders that a wheel adds to site-packages."""
    return {name.partition("/")[0] for name in files}


def test_wheel_adds_only_our_packages(wheel: Path) -> None:
    """The wheel has our three packages, each with `py.typed`, but no tests or other packages."""
    files = names(wheel)
    assert tops(files) == {
        "assignors",
        "fairlead",
        "fairlead_planner",
        "kafka_fairlead-0.1.0.dist-info",
    }
    assert "fairlead/surfaces/survey/templates/survey.html" in files
    assert {f"{top}/py.typed" for top in ("assignors", "fairlead", "fairlead_planner")} <= files
    assert [name for name in files if "__pycache__" in name or "/tests/" in name] == []


def test_wheel_from_checkout_and_source_distribution_are_equal(wheel: Path, tmp_path: Path) -> None:
    assert names(build("wheel", tmp_path)) == names(wheel)


@pytest.mark.kafka
def test_wheel_can_survey_a_cluster(
    *,
    wheel: Path,
    settings: Settings,
    unique_name: str,
    kafka_topic: KafkaTopic,
    page: Page,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Installed with the extra `survey`, `fairlead survey` diagnoses a group that is behind.

    The page that it writes is accessible and loads nothing from elsewhere.
    """
    python = new_environment(tmp_path, wheel, "survey")
    # The first consumer's load is 1.8 times its capacity; the group's load is half its capacity.
    topic = kafka_topic(partitions=12)
    backlog = {topic: [30, 30, 30, *[1] * 8, 2]}
    group = DemoGroup(unique_name, backlog, consumers=4, rate=40, load=0.5)
    servers, found = settings.kafka.bootstrap_servers, tmp_path / "survey.html"
    looking = ("--bootstrap-servers", servers, "--every", "3", "--minutes", "0.35")
    with (
        Consumers(group, group.name, servers, None, tmp_path / "consumers.log") as consumers,
        steady_load(servers, [group]),
    ):
        wait_until_settled(consumers)
        survey = (python.with_name("fairlead"), "survey", "--format", "html", *looking)
        done = ended(*survey, cwd=tmp_path)
    assert f"{group.name}: Stable" in done.stderr
    found.write_text(done.stdout)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(found.as_uri())
    # Accept every diagnosis of a problem: on a busy machine, consumers may be slow.
    heading = page.get_by_role("heading", name=re.compile(f"^{group.name}: (?!healthy|unknown)"))
    of_group = page.locator("section", has=heading)
    expect(of_group).to_contain_text("caught up")
    assert_open_to_all(page)
    assert requests == [found.as_uri()]

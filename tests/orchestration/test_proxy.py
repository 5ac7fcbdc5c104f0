"""The actor of a run in Dagster is the person in the proxy's header, even if a client lies."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import dagster as dg
import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget

from orchestration.proxy import ACTOR_TAG
from tests.serving import serving
from tests.waiting import PATIENCE_S

LOCATION = """
import dagster as dg

@dg.op
def nothing(): ...

@dg.job
def noop(): nothing()

defs = dg.Definitions(jobs=[noop])
"""
DAGSTER_YAML = """
run_coordinator:
  module: orchestration.proxy
  class: ProxyRunCoordinator
  config: {header: Remote-User, max_concurrent_runs: 7}
telemetry: {enabled: false}
"""
LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
  }
}
"""
AGAIN = """
mutation Again($params: ReexecutionParams!) {
  launchRunReexecution(reexecutionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
  }
}
"""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Return a Dagster instance with our run coordinator, which queues runs."""
    (tmp_path / "dagster.yaml").write_text(DAGSTER_YAML)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        yield instance


@pytest.fixture
def webserver(instance: dg.DagsterInstance, tmp_path: Path) -> Iterator[str]:
    """Run Dagster's webserver with one code location; return its address."""
    from dagster_webserver.webserver import DagsterWebserver  # noqa: PLC0415 - it takes a second

    location = tmp_path / "location.py"
    location.write_text(LOCATION)
    loaded = LoadableTargetOrigin(python_file=str(location))
    target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(loaded, location_name="here"))
    with (
        WorkspaceProcessContext(instance, target) as context,
        serving(DagsterWebserver(context).create_asgi_app()) as address,
    ):
        yield address


@pytest.mark.long
def test_header_decides_who_launched_a_run(instance: dg.DagsterInstance, webserver: str) -> None:
    """The name in the proxy's header replaces the actor tag that a client sends.

    Without a name in the header, the tag that a client sends becomes empty.
    """
    actors = {}
    for person in ("kim", " ", None):
        for claimed in ("lee", None):
            tags = [{"key": ACTOR_TAG, "value": claimed}] if claimed else []
            run = graphql(webserver, LAUNCH, {"params": parameters(tags)}, person)
            actors[person, claimed] = tags_of(instance, run).get(ACTOR_TAG)
    assert actors == {
        ("kim", "lee"): "kim",
        ("kim", None): "kim",
        (" ", "lee"): "",
        (" ", None): None,
        (None, "lee"): "",
        (None, None): None,
    }


@pytest.mark.long
def test_repeated_run_has_the_person_who_repeats_it(
    instance: dg.DagsterInstance, webserver: str
) -> None:
    """The actor of a re-executed run is the person who repeats it, not the first run's actor."""
    first = graphql(webserver, LAUNCH, {"params": parameters([])}, "kim")
    stored = instance.get_run_by_id(first)
    assert stored is not None
    instance.report_run_failed(stored)
    again = {"params": {"parentRunId": first, "strategy": "ALL_STEPS"}}
    assert tags_of(instance, graphql(webserver, AGAIN, again, "lee"))[ACTOR_TAG] == "lee"
    assert tags_of(instance, graphql(webserver, AGAIN, again, None))[ACTOR_TAG] == ""


def parameters(tags: list[dict[str, str]]) -> dict[str, Any]:
    """Return the parameters that Dagster's launchpad sends to launch a run with these tags."""
    return {
        "selector": {
            "repositoryLocationName": "here",
            "repositoryName": "__repository__",
            "jobName": "noop",
        },
        "runConfigData": {},
        "executionMetadata": {"tags": tags},
    }


def graphql(address: str, query: str, variables: dict[str, Any], person: str | None) -> str:
    """Send a query that launches a run; return the run's id.

    `person` is the name in the header that the proxy adds; None: the header is missing.
    """
    request = Request(  # noqa: S310 - our own address
        f"{address}/graphql",
        json.dumps({"query": query, "variables": variables}).encode(),
        {"Content-Type": "application/json"} | ({"Remote-User": person} if person else {}),
    )
    with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own address
        (launched,) = json.load(answer)["data"].values()
    assert launched["__typename"] == "LaunchRunSuccess", launched
    return str(launched["run"]["runId"])


def tags_of(instance: dg.DagsterInstance, run: str) -> Mapping[str, str]:
    """Return the tags of a run."""
    stored = instance.get_run_by_id(run)
    assert stored is not None
    assert stored.status in {dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.FAILURE}
    return stored.tags

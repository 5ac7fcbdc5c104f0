"""Manifests of the Helm chart: validity, restrictions of pods, secrets, and versions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.common.installed import installed_version
from fairlead.settings import load_settings
from tests.deploy.charts import CHART, GOLDEN, HELM, ROOT, SETS, rendered, tool
from tests.programs import ended

#: Test values for the variables that dagster-values.yaml takes from Kubernetes Secrets.
SECRETS = {"FAIRLEAD_POSTGRES__URL": "postgresql://planner:secret@postgres/fairlead"}
#: Kind of a manifest -> keys that lead to the pod's specification.
PODS = {
    "Deployment": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
}


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((GOLDEN / f"{name}.yaml").read_text()))


def pods(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for document in documents(name):
        if way := PODS.get(document["kind"]):
            pod = document
            for key in way:
                pod = pod[key]
            yield document["metadata"]["name"], pod


@pytest.mark.parametrize("name", SETS)
def test_pods_are_restricted(name: str) -> None:
    """Each pod meets the Pod Security Standard "restricted" and has at most one database login."""
    for _, pod in pods(name):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            secrets = [entry for entry in container["env"] if "valueFrom" in entry]
            assert sum(entry["name"] == "FAIRLEAD_POSTGRES__URL" for entry in secrets) <= 1
            assert not container["image"].endswith((":latest", ":"))
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_each_service_has_its_own_login() -> None:
    """Web pages, sampling and migrations have different database logins; a survey has none."""
    keys = {}
    for name in ("plain", "few"):
        for owner, pod in pods(name):
            environment = {entry["name"]: entry for entry in pod["containers"][0]["env"]}
            url = environment.get("FAIRLEAD_POSTGRES__URL")
            keys[owner] = url and url["valueFrom"]["secretKeyRef"]["key"]
    assert keys == {
        "fairlead-serve": "reader-url",
        "fairlead-sampling": "planner-url",
        "fairlead-migrate": "owner-url",
        "fairlead-prune": "owner-url",
        "fairlead-survey-1": None,
    }


def test_only_pages_get_the_secret_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the pod `serve` has the proxy's secret, which lets its holder act as any person."""
    given = {
        "FAIRLEAD_WEB__HEADER__SECRET": "s" * 40,
        "FAIRLEAD_POSTGRES__URL": SECRETS["FAIRLEAD_POSTGRES__URL"],
        "FAIRLEAD_KAFKA__PROPERTIES": "{}",
    }
    having = []
    for owner, pod in pods("everything"):
        environment = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
        if "FAIRLEAD_WEB__HEADER__SECRET" in environment:
            having.append(owner)
            for name, value in environment.items():
                monkeypatch.setenv(name, value or given[name])
    assert having == ["fairlead-serve"]
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(ROOT / "deploy/fairlead.toml"))
    web = load_settings().web
    assert web.header is not None
    assert (web.url, web.header.secret_name) == ("https://plans.example.com", "X-Fairlead-Secret")


def test_versions_are_equal() -> None:
    """The chart, the image, the jar, the package and the changelog have the same version."""
    released = installed_version()
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert described["version"] == described["appVersion"] == released
    jar = f"<artifactId>fairlead-kafka</artifactId>\n  <version>{released}</version>"
    assert jar in (ROOT / "jvm/pom.xml").read_text()
    dagster = (ROOT / "deploy/kubernetes/dagster-values.yaml").read_text()
    assert dagster.count(f"tag: {released}") == 3
    assert f"The first version, {released}" in (ROOT / "CHANGELOG.md").read_text()


def test_dagsters_variables_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    values = yaml.safe_load((ROOT / "deploy/kubernetes/dagster-values.yaml").read_text())
    (location,) = values["dagster-user-deployments"]["deployments"]
    for variable in location["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value") or SECRETS[variable["name"]])
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(ROOT / "deploy/fairlead.toml"))
    settings = load_settings()
    assert settings.kafka.bootstrap_servers == "kafka:9092"


@pytest.mark.test_long(guarded_by="tests/deploy/test_chart.py::test_pods_are_restricted")
def test_helm_renders_the_golden_files(tmp_path: Path) -> None:
    """`helm lint` passes, rendered manifests equal the golden files, invalid values are refused."""
    program = tool(HELM, tmp_path)
    ended(program, "lint", "--strict", CHART, "--set", "kafka.bootstrapServers=broker-1:9092")
    for name, values in SETS.items():
        assert rendered(program, values) == (GOLDEN / f"{name}.yaml").read_text(), name
    for wrong in (
        {"kafka": {"bootstrapServers": "broker-1"}},
        {"image": {"repository": "fairlead", "tag": "latest"}},
        {"serve": {"replica": 2}},
        {"postgres": {"secret": ""}},
    ):
        with pytest.raises(AssertionError, match="meet the specifications"):
            rendered(program, wrong)


@pytest.mark.long
def test_manifests_match_the_kubernetes_schemas() -> None:
    """All manifests are valid, except the Prometheus operator's kinds, which have no schema."""
    from kubernetes_validate import validate  # noqa: PLC0415 - compiles forty grammars

    for name in SETS:
        for document in documents(name):
            if isinstance(document.get("data"), str):  # the path of a file instead of its contents
                document["data"] = {}
            if "monitoring" not in document["apiVersion"]:
                validate(document, "1.33", strict=True)

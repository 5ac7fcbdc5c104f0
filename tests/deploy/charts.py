"""Render the Helm chart with three sets of values.

`python -m tests.deploy.charts` updates the golden files, which are the expected manifests.

Belongs here: the values, helm, and the format of golden files. Belongs elsewhere: checks
(`test_chart`).
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import yaml

from tests.programs import ended

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy/chart"
GOLDEN: Final = Path(__file__).with_name("golden")
HELM: Final = "helm.sh/helm/v3/cmd/helm@v3.18.6"
#: Kubernetes version that helm assumes. Helm built with `go install` would assume a far older one.
KUBERNETES: Final = "1.33.0"
#: Sets of chart values by name, without the broker's address, which is always added.
SETS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "everything": {
        "kafka": {"propertiesSecret": {"name": "kafka-client"}},
        "postgres": {"readerKey": "web-url"},
        "serve": {
            "url": "https://plans.example.com",
            "dagsterUrl": "https://d.example.com",
            "headerSecret": {"name": "fairlead-proxy"},
        },
        "sampling": {"enabled": True, "storageClass": "fast"},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboard": {"enabled": True},
        "image": {
            "repository": "registry.example.com/fairlead",
            "tag": "0.1.0-1",
            "pullSecrets": [{"name": "registry"}],
        },
        "settings": {"existingConfigMap": "policies"},
        "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
        "podAnnotations": {"example.com/team": "streaming"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    },
    "few": {
        "serve": {"replicas": 0},
        "migrate": {"enabled": False},
        "prune": {"enabled": False},
        "sampling": {"enabled": True, "existingClaim": "samples"},
        "survey": {"enabled": True, "minutes": 2},
        "podDisruptionBudget": {"enabled": False},
    },
}


def tool(module: str, folder: Path) -> Path:
    """Return the path of a program; if it is not installed, Go builds it into the folder."""
    name = module.partition("@")[0].rpartition("/")[2]
    if own := shutil.which(name):
        return Path(own)
    go = shutil.which("go")
    assert go, f"install {name}, or Go, which builds it"
    surroundings = {**os.environ, "GOBIN": str(folder)}
    ended(go, "install", module, env=surroundings)
    return folder / name


def rendered(program: Path, values: dict[str, Any]) -> str:
    """Return the manifests for a set of values, in the format of golden files.

    Documents are sorted. The alerts and the dashboard are replaced by the paths of their files.
    """
    given = {"kafka": {"bootstrapServers": "broker-1:9092"}, **values}
    given["kafka"] = {"bootstrapServers": "broker-1:9092", **given["kafka"]}
    template = (program, "template", "fairlead", CHART, "--namespace", "streaming")
    options = ("--kube-version", KUBERNETES, "--values", "-")
    output = ended(*template, *options, input=json.dumps(given)).stdout
    documents = [document for document in yaml.safe_load_all(output) if document]
    for document in documents:
        if document["kind"] == "PrometheusRule":
            alerts = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
            assert document["spec"] == alerts
            document["spec"] = "deploy/prometheus/alerts.yml"
        if "fairlead.json" in document.get("data", {}):
            dashboard = json.loads((ROOT / "deploy/grafana/fairlead.json").read_text())
            assert json.loads(document["data"]["fairlead.json"]) == dashboard
            document["data"] = "deploy/grafana/fairlead.json"
    documents.sort(key=lambda document: (document["kind"], document["metadata"]["name"]))
    return str(yaml.safe_dump_all(documents, width=100))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        program = tool(HELM, Path(folder))
        for name, values in SETS.items():
            (GOLDEN / f"{name}.yaml").write_text(rendered(program, values))

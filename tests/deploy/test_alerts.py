"""Test with Prometheus's `promtool` when each alert fires."""

import shutil
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from fairlead.sandbox.jars import cache_dir
from tests.programs import ended

HERE = Path(__file__).parent
RULES = HERE.parents[1] / "deploy/prometheus/alerts.yml"


def promtool() -> Path:
    """Return the path of promtool; if it is not installed, take it from Debian's package."""
    if own := shutil.which("promtool"):
        return Path(own)
    folder = cache_dir() / "prometheus"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "usr/bin/promtool"
    with FileLock(folder / "lock"):
        if not program.exists():
            ended("apt-get", "download", "prometheus", cwd=folder)
            (package,) = folder.glob("prometheus_*.deb")
            ended("dpkg-deb", "--extract", package, ".", cwd=folder)
    return program


@pytest.mark.test_long(guarded_by="tests/deploy/test_monitoring.py::test_every_query_has_a_metric")
def test_alerts_fire_when_their_condition_holds(tmp_path: Path) -> None:
    """In the cases of alerts.yml, alerts fire at the expected times with the expected texts."""
    shutil.copy(RULES, tmp_path / "rules.yml")
    shutil.copy(HERE / "alerts.yml", tmp_path)
    ended(promtool(), "check", "rules", "rules.yml", cwd=tmp_path)
    ended(promtool(), "test", "rules", "alerts.yml", cwd=tmp_path)


def test_every_alert_has_a_case() -> None:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    tried = (HERE / "alerts.yml").read_text()
    assert [rule["alert"] for rule in group["rules"] if rule["alert"] not in tried] == []

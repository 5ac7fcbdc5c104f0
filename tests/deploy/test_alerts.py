"""Test with Prometheus's `promtool` when each alert fires."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from fairlead.sandbox.jars import cache_dir

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
            run("apt-get", "download", "prometheus", folder=folder)
            (package,) = folder.glob("prometheus_*.deb")
            run("dpkg-deb", "--extract", str(package), ".", folder=folder)
    return program


def run(*command: str, folder: Path) -> None:
    """Run a program; if it fails, raise AssertionError with its output."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"


@pytest.mark.test_long(guarded_by="tests/deploy/test_monitoring.py::test_every_query_has_a_metric")
def test_alerts_fire_when_their_condition_holds(tmp_path: Path) -> None:
    """In the cases of alerts.yml, alerts fire at the expected times with the expected texts."""
    shutil.copy(RULES, tmp_path / "rules.yml")
    shutil.copy(HERE / "alerts.yml", tmp_path)
    run(str(promtool()), "check", "rules", "rules.yml", folder=tmp_path)
    run(str(promtool()), "test", "rules", "alerts.yml", folder=tmp_path)


def test_every_alert_has_a_case() -> None:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    tried = (HERE / "alerts.yml").read_text()
    assert [rule["alert"] for rule in group["rules"] if rule["alert"] not in tried] == []

"""What a consumer application gets: the wheel with one extra, in an environment of its own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROBE = """
import importlib, importlib.util, json, sys, time
client, *modules = sys.argv[1:]
importlib.import_module(client)
started = time.perf_counter()
for module in modules:
    importlib.import_module(module)
seconds = time.perf_counter() - started
planner = ["dagster", "pyspark", "sqlalchemy", "ortools", "pandas", "pydantic", "confluent_kafka"]
print(json.dumps({
    "seconds": seconds,
    "installed": [name for name in planner if importlib.util.find_spec(name)],
    "where": importlib.import_module("fairlead").__file__,
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.parametrize(
    ("extra", "client", "modules"),
    [
        (
            "kafka-python",
            "kafka",
            ["kafka_python", "kafka_python_assignors", "kafka_python_cleanup"],
        ),
        ("aiokafka", "aiokafka", ["aiokafka", "aiokafka_assignors", "aiokafka_cleanup"]),
    ],
)
def test_wheel_with_one_extra_is_all_a_consumer_needs(
    tmp_path: Path, wheel: Path, extra: str, client: str, modules: list[str]
) -> None:
    """Followers import in 0.3 s, beside their client; nothing of the planner is installed."""
    uv = shutil.which("uv", path=ROOT / ".fairlead/uv/bin") or shutil.which("uv")
    assert uv, "uv is missing: run make install"
    python = tmp_path / "venv/bin/python"
    locked = ROOT / "requirements.lock"
    for command in (
        ["venv", "--python", sys.executable, "venv"],
        [
            "pip",
            "install",
            "--python",
            python,
            "-c",
            locked,
            f"fairlead[{extra}] @ {wheel.as_uri()}",
        ],
    ):
        subprocess.run([uv, *command], cwd=tmp_path, check=True, capture_output=True)
    names = [f"fairlead.followers.{name}" for name in modules]
    found = []
    for _ in range(5):  # the first one compiles, and others may run beside a busy neighbour
        result = subprocess.run(
            [python, "-c", PROBE, client, *names],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        found.append(json.loads(result.stdout))
    assert found[0]["installed"] == []
    assert Path(found[0]["where"]).is_relative_to(tmp_path)
    assert min(probe["seconds"] for probe in found) < 0.3

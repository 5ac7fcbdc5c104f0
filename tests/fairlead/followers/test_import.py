"""Each follower loads only numpy and the packages of its client."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

PROBE = """
import importlib, sys
importlib.import_module(sys.argv[2])
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


@pytest.mark.parametrize(
    ("module", "client"),
    [
        ("kafka_python", "kafka"),
        ("aiokafka", "aiokafka"),
        ("confluent", "confluent_kafka"),
    ],
)
def test_follower_needs_numpy_and_its_client_alone(module: str, client: str) -> None:
    """No package that the planner needs is loaded, although all are installed here."""
    result = subprocess.run(
        [sys.executable, "-c", PROBE, f"fairlead.followers.{module}", client],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name for name in result.stdout.split() if not name.startswith("_")}
    assert loaded - sys.stdlib_module_names - {client} == {"assignors", "fairlead", "numpy"}

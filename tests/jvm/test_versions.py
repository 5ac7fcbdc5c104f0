"""The jar works with earlier versions of brokers and clients if it is built for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Tests of the jar and of Fairlead's gateway; the first file needs an unused broker.
TESTS = [
    *("tests/jvm/test_broker_reading.py", "tests/jvm/test_group_assignor.py"),
    *("tests/jvm/test_consumers.py", "tests/jvm/test_jar.py", "tests/fairlead/kafka"),
]


@pytest.mark.test_long(
    guarded_by="tests/jvm/test_group_assignor.py::test_plain_consumers_adopt_plans_and_lose_only_moved_partitions"
)
@pytest.mark.parametrize("version", ["4.3.1", "4.0.2"])
def test_earlier_versions_pass_the_same_tests(version: str) -> None:
    """The jar, compiled against an earlier Kafka, passes the tests with brokers of that version."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.older_kafka"]
    ended = subprocess.run(
        [*command, *TESTS],
        cwd=ROOT,
        env={**os.environ, "KAFKA_OF_TESTS": version},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-6000:]

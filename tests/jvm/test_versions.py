"""The jar works with earlier versions of brokers and clients if it is built for them."""

import os
import sys
from pathlib import Path

import pytest

from tests.programs import ended

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
    pytest_of_older = (sys.executable, "-m", "pytest", "-q", "-p", "tests.older_kafka")
    environment = {**os.environ, "KAFKA_OF_TESTS": version}
    ended(*pytest_of_older, *TESTS, cwd=ROOT, env=environment, timeout=None)

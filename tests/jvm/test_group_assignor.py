"""Brokers follow plans; where there is none, everybody keeps what they have."""

import json
import subprocess

from fairlead.sandbox.java import find_java
from tests.lengths import form


def test_random_groups_are_whole_and_move_by_plans_alone(java_classpath: str) -> None:
    """It never throws; without a plan that holds nothing moves; with one it is followed."""
    count = str(form(short=2_000, long=200_000))
    command = [str(find_java()), "-cp", java_classpath, "fairlead.kafka.Groups", "1", count]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    outcomes = json.loads(result.stdout)
    assert sum(outcomes.values()) == int(count)
    assert min(outcomes.values()) > int(count) / 200, outcomes

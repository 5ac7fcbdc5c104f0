"""A fixture that runs Kafka's own assignors, in one Java process for all tests of this folder."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assignors.problem import Int32, Problem
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.java import BRIEF, find_java

Share = dict[str, dict[str, list[int]]]


class Oracle:
    """Sends requests to Oracle.java, which answers with the results of Kafka's classes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, what: str, **request: Any) -> Any:
        """Send a request as one line of JSON and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": what, **request}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "Oracle.java ended: its standard error says why"
        answered = json.loads(answer)
        assert "error" not in answered, answered
        return answered


def owner_of(problem: Problem, shares: Share) -> Int32:
    """Convert an assignment from Oracle.java into the owner of each partition."""
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    for name, share in shares.items():
        for topic, partitions in share.items():
            first = int(problem.topic_offsets[problem.topics.index(topic)])
            owner[first + np.array(partitions, dtype=int)] = problem.members.index(name)
    return owner


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Start Oracle.java on Kafka's jars."""
    classpath = os.pathsep.join(map(str, kafka_classpath()))
    source = Path(__file__).with_name("Oracle.java")
    command = [str(find_java()), *BRIEF, "-cp", classpath, str(source)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Oracle(process)
        assert process.stdin is not None
        process.stdin.close()

"""A fixture that runs Kafka's own assignors, in one Java process for all tests of this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from assignors.problem import Int32, Problem
from fairlead.sandbox.jars import kafka_classpath
from tests.jvm.asking import Program, answering

Share = dict[str, dict[str, list[int]]]


def owner_of(problem: Problem, shares: Share) -> Int32:
    """Convert an assignment from Oracle.java into the owner of each partition."""
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    for name, share in shares.items():
        for topic, partitions in share.items():
            first = int(problem.topic_offsets[problem.topics.index(topic)])
            owner[first + np.array(partitions, dtype=int)] = problem.members.index(name)
    return owner


@pytest.fixture(scope="session")
def oracle() -> Iterator[Program]:
    """Start Oracle.java, which answers with the results of Kafka's classes."""
    classpath = os.pathsep.join(map(str, kafka_classpath()))
    source = Path(__file__).with_name("Oracle.java")
    with answering("-cp", classpath, str(source)) as oracle:
        yield oracle

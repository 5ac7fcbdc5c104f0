"""What is said while Spark works."""

import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fairlead.common.progress import spark_works

pytestmark = pytest.mark.spark
TASKS = 4


def slowly(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Be a task that takes longer than what is between two lines."""
    for batch in numbers:
        time.sleep(0.5)  # clock: longer than `every_s`
        yield batch


def test_a_long_step_says_how_far_it_is(spark: SparkSession) -> None:
    """Its beginning first, then tasks done of all there are, never fewer; nothing afterwards."""
    said: list[str] = []
    with spark_works(spark, "Analysing 3 groups", said.append, every_s=0.1):
        spark.range(0, TASKS, 1, TASKS).mapInArrow(slowly, "id long").collect()
    beginning, *lines = said
    assert beginning == "Analysing 3 groups"
    done = [int(line.removeprefix("Analysing 3 groups: ").split()[0]) for line in lines]
    assert {line.partition(" of ")[2] for line in lines} == {f"{TASKS} tasks done"}
    assert done == sorted(done)
    with spark_works(spark, "Nothing", said.append, every_s=60.0):
        pass
    assert said[len(lines) + 1 :] == ["Nothing"]

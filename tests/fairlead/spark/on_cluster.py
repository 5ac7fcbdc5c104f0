"""Measure and plan groups on the Spark that the settings name, in a separate process.

Belongs here: the program that `test_cluster` starts, which records the executors that did the work.
Does not: any expectation.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.settings import load_settings
from fairlead.spark.candidates import write_candidates
from fairlead.spark.lag import write_lag
from fairlead.spark.session import build_session
from fairlead.spark.warehouse import Warehouse


def plan(warehouse: Warehouse, snapshot_id: str) -> DataFrame:
    """Measure and plan a snapshot; return its candidates, read from the warehouse."""
    spark = build_session(load_settings().spark)
    write_lag(spark, warehouse, snapshot_id)
    groups = warehouse.load("groups", snapshot_id)["group"].to_pylist()
    policy = Policy(assignors=("sticky-lag-aware", "range"))
    write_candidates(spark, warehouse, snapshot_id, dict.fromkeys(groups, policy), GroupMemories())
    return spark.read.parquet(f"{warehouse.path}/candidates/{snapshot_id}")


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the process id of the task's executor: the parent of the Python worker."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"executor": pa.array([os.getppid()], pa.int64())})


if __name__ == "__main__":
    planned = plan(Warehouse(load_settings().warehouse_path), sys.argv[1])
    executors = planned.repartition(8).mapInArrow(where, "executor long").distinct().collect()
    Path(sys.argv[2]).write_text(json.dumps([row["executor"] for row in executors]))

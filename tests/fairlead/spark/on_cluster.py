"""Compute lag and candidates of groups on the configured Spark, in a separate process.

Belongs here: the program that `test_cluster` starts. Belongs elsewhere: assertions.
"""

import sys

from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.settings import load_settings
from fairlead.spark.candidates import write_candidates
from fairlead.spark.lag import write_lag
from fairlead.spark.session import build_session
from fairlead.spark.warehouse import Warehouse


def plan(warehouse: Warehouse, snapshot_id: str) -> None:
    """Compute lag and candidates for a snapshot."""
    spark = build_session(load_settings().spark)
    write_lag(spark, warehouse, snapshot_id)
    groups = warehouse.load("groups", snapshot_id)["group"].to_pylist()
    policy = Policy(assignors=("sticky-lag-aware", "range"))
    write_candidates(spark, warehouse, snapshot_id, dict.fromkeys(groups, policy), GroupMemories())


if __name__ == "__main__":
    plan(Warehouse(load_settings().warehouse_path), sys.argv[1])

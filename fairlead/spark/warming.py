"""What a warm server is warm by: all that a run asks for, once, about a group that nobody has.

Belongs here: the group, and asking. Does not: the server (`warm`, `fairlead.sandbox.spark`).
"""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from pyspark.sql import SparkSession

from fairlead.domain.groups import GroupDescription, LiveMember, LogOffsets, TopicCommits
from fairlead.domain.policy import Policy
from fairlead.domain.samples import GroupSnapshot, new_snapshot_id, samples_of
from fairlead.spark.candidates import write_candidates
from fairlead.spark.lag import write_lag
from fairlead.spark.warehouse import Warehouse

_NAME: Final = "warming"
_PARTITIONS: Final = 4


def warm_up(spark: SparkSession, folder: Path) -> None:
    """Measure and plan a group of a warehouse of its own, below a folder, which is removed."""
    with TemporaryDirectory(dir=folder, prefix="warming-") as place:
        warehouse, snapshot = Warehouse(place), _snapshot(datetime.now(UTC))
        warehouse.write_snapshot(snapshot, {})
        write_lag(spark, warehouse, snapshot.snapshot_id)
        write_candidates(spark, warehouse, snapshot.snapshot_id, {_NAME: Policy()})


def _snapshot(at: datetime) -> GroupSnapshot:
    """Return a group of one member that is behind."""
    numbers = np.arange(_PARTITIONS, dtype=np.int32)
    member = LiveMember(
        member_id=_NAME,
        client_id=_NAME,
        host="",
        instance_id=None,
        name=_NAME,
        topics=(_NAME,),
        partitions={_NAME: tuple(numbers.tolist())},
        generation=None,
    )
    log = LogOffsets(
        starts={_NAME: 0},
        counts={_NAME: _PARTITIONS},
        begin=np.zeros(_PARTITIONS, np.int64),
        end=1_000 + np.arange(_PARTITIONS, dtype=np.int64),
        unreadable={},
    )
    snapshot_id = new_snapshot_id(at)
    samples = samples_of(
        sample_id=snapshot_id,
        at=at,
        descriptions={_NAME: GroupDescription(_NAME, "Stable", "consumer", "range", (member,))},
        committed={
            _NAME: {
                _NAME: TopicCommits(numbers, np.zeros(_PARTITIONS, np.int64), [b""] * _PARTITIONS)
            }
        },
        log=log,
    )
    return GroupSnapshot(snapshot_id, at, 0.0, samples)

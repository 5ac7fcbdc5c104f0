"""Invent samples of a group for the minutes before its real sample.

Consumers that have a backlog in the real sample fall behind in the invented ones. The others keep
up.
"""

from datetime import timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fairlead.archive import SampleArchive
from fairlead.domain.samples import SAMPLES, new_snapshot_id
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings

MINUTES: Final = 20
#: Records that a consumer reads from each partition between two samples: BUSY if the consumer is
#: behind, otherwise IDLE.
BUSY, IDLE = 30, 6
#: Earlier commits are invented only for partitions with at least this committed offset, so that all
#: invented offsets are above 0.
CONSUMED: Final = 2 * MINUTES * BUSY
#: Records per owned partition. A consumer with more lag is behind.
BEHIND: Final = 10


def recalled(
    row: dict[str, Any], minutes: int = MINUTES, *, every: timedelta = timedelta(minutes=1)
) -> pa.Table:
    """Return invented samples from before a real sample, followed by the real sample.

    Parameters
    ----------
    row
        The real sample: a row of `SAMPLES`.
    minutes
        Number of invented samples.
    every
        Time between two samples.
    """
    end, committed, owner = (np.array(row[key], int) for key in ("end", "committed", "owner"))
    lag = np.maximum(end - np.maximum(committed, 0), 0)
    has_one = owner >= 0
    owned = np.bincount(owner[has_one], minlength=len(row["members"]))
    waiting = np.bincount(owner[has_one], lag[has_one], minlength=len(row["members"]))
    behind = np.zeros(owner.size, dtype=bool)
    behind[has_one] = (waiting > BEHIND * owned)[owner[has_one]]
    per_minute = np.where(committed >= CONSUMED, np.where(behind, BUSY, IDLE), 0)
    rows = []
    for before in range(minutes, -1, -1):
        stands = np.where(committed >= 0, committed - before * per_minute, committed)
        waits = np.where(behind, lag - lag * before // minutes, lag)
        ends = np.where(committed >= 0, stands + waits, end)
        rows.append(
            row
            | {
                "sample_id": new_snapshot_id(row["at"] - before * every)
                if before
                else row["sample_id"],
                "at": row["at"] - before * every,
                "end": ends.tolist(),
                "committed": stands.tolist(),
            }
        )
    return pa.Table.from_pylist(rows, SAMPLES)


def recall(kafka: KafkaSettings, warehouse: str, group: str) -> None:
    """Store invented samples of a running group, one for every five minutes before now.

    A slow machine may plan minutes after the last sample, and no records arrive in between. Samples
    are five minutes apart so that this gap is short in comparison.
    """
    with KafkaGateway(kafka) as gateway:
        (row,) = gateway.snapshot([group]).samples.to_pylist()
    samples = recalled(row, every=timedelta(minutes=5))
    archive = SampleArchive(warehouse)
    for number in range(samples.num_rows - 1):
        at = samples["at"][number].as_py()
        archive.append(samples.slice(number, 1), new_snapshot_id(at))

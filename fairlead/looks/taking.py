"""Taking a look at every group that discovery covers.

Belongs here: which groups, in which portions, and what is written down. Does not: when (`pace`),
nor how groups are asked (`fairlead.kafka.gateway`).
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.snapshot import GroupSnapshot, new_snapshot_id
from fairlead.looks.archive import LookArchive, Taken
from fairlead.looks.look import LOOKS, look_of
from fairlead.settings import Settings

#: Commits are read before ends; with few groups at a time, seconds lie between the two at most.
GROUPS_AT_ONCE: Final = 500


def covered_groups(gateway: KafkaGateway, settings: Settings) -> list[str]:
    """Return the groups of the cluster that discovery covers, ascending."""
    return [name for name in gateway.list_groups() if settings.discovery.covers(name)]


def look_once(archive: LookArchive, settings: Settings) -> Taken:
    """Look at every group that discovery covers, on a connection of its own; see `take`."""
    with KafkaGateway(settings.kafka) as gateway:
        return take(gateway, archive, settings, covered_groups(gateway, settings))


def take(
    gateway: KafkaGateway, archive: LookArchive, settings: Settings, groups: Sequence[str]
) -> Taken:
    """Look at groups, write it down, and tidy the archive.

    Raises
    ------
    KafkaUnavailableError
        Brokers do not answer in time. Nothing is written then.
    """
    began, clock = datetime.now(UTC), time.monotonic()
    portions = [
        look_of(gateway.snapshot(groups[first : first + GROUPS_AT_ONCE]))
        for first in range(0, len(groups), GROUPS_AT_ONCE)
    ]
    look = pa.concat_tables([LOOKS.empty_table(), *portions])
    archive.append(look, new_snapshot_id(began))
    archive.tidy(datetime.now(UTC), settings.looks.retention)
    taken = Taken(began, time.monotonic() - clock, look.num_rows, partitions_in(look))
    archive.note(taken)
    return taken


def keep(snapshot: GroupSnapshot, archive: LookArchive) -> None:
    """Keep a snapshot that was taken for something else as a look."""
    archive.append(look_of(snapshot), snapshot.snapshot_id)


def partitions_in(look: pa.Table) -> int:
    """Count the partitions of a look; those that several groups read count for each."""
    return int(np.sum(pc.list_value_length(look["end"]).to_numpy()))

"""Taking a look at every group that discovery covers.

Belongs here: which groups, in which portions, and what is written down. Does not: when (`pace`),
nor how groups are asked (`fairlead.kafka.gateway`).
"""

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.archive import LookArchive, Taken
from fairlead.domain.calls import Call, lasting
from fairlead.domain.groups import CLASSIC
from fairlead.domain.looks.look import LOOKS, look_of
from fairlead.domain.snapshot import GroupSnapshot, new_snapshot_id
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.diagnosing import Diagnosed, Memory, Seen, diagnose, members_changed
from fairlead.workflows.following import follow
from fairlead.workflows.nudging import STAYS_S

_log = logging.getLogger(__name__)

#: Commits are read before ends; with few groups at a time, seconds lie between the two at most.
GROUPS_AT_ONCE: Final = 500


def covered_groups(gateway: KafkaGateway, settings: Settings) -> list[str]:
    """Return the groups of the cluster that discovery covers, ascending."""
    return [name for name in gateway.list_groups() if settings.discovery.covers(name)]


def take(
    gateway: KafkaGateway,
    archive: LookArchive,
    settings: Settings,
    groups: Sequence[str],
    store: PlanStore | None = None,
) -> Taken:
    """Look at groups, write it down, tidy the archive, say what is the matter, and tell brokers.

    Parameters
    ----------
    store
        Knows what is remembered of groups and the plans that brokers follow, and takes the
        diagnoses; None: nobody asks for them.

    Returns
    -------
    What it cost; with `store`, the groups that need a plan, too.

    Raises
    ------
    KafkaUnavailableError
        Brokers do not answer in time. Nothing is written then.
    StoreUnavailableError
        The database does not answer. The look is written down all the same, without calls.
    """
    began, clock = datetime.now(UTC), time.monotonic()
    seen = [
        Seen.of(gateway.snapshot(groups[first : first + GROUPS_AT_ONCE]))
        for first in range(0, len(groups), GROUPS_AT_ONCE)
    ]
    look = pa.concat_tables([LOOKS.empty_table(), *(one.look for one in seen)])
    archive.append(look, new_snapshot_id(began))
    archive.tidy(datetime.now(UTC), settings.looks.retention)
    before, calls = archive.taken(), dict[str, Call]()
    took_s = time.monotonic() - clock
    try:
        if store is not None and seen:
            diagnosed = _diagnosed(archive, seen, settings, groups, store)
            calls = lasting(diagnosed.calls, {} if before is None else before.calls)
    finally:  # the look was taken, whatever became of the diagnoses
        judged_s = time.monotonic() - clock - took_s
        taken = Taken(began, took_s, look.num_rows, partitions_in(look), calls, judged_s)
        archive.note(taken)
    if store is not None and (assigned := _assigned_by_brokers(seen)):
        tell_brokers(gateway, settings, assigned, store)
    return taken


def _assigned_by_brokers(seen: Sequence[Seen]) -> list[str]:
    """Return the groups of the consumer protocol: mostly there are none, and nobody is asked."""
    return [
        group
        for one in seen
        for group, kind in zip(
            one.groups["group"].to_pylist(), one.groups["group_type"].to_pylist(), strict=True
        )
        if kind not in {None, CLASSIC}
    ]


def tell_brokers(
    gateway: KafkaGateway, settings: Settings, groups: Sequence[str], store: PlanStore
) -> None:
    """Have brokers follow the plans of groups whose members have come or gone; see `following`.

    The last and longest nudge is left out: the next look comes soon.
    """
    for one in follow(
        gateway,
        settings.kafka,
        groups,
        lambda assigned: store.in_state("published", groups=assigned),
        stays_s=STAYS_S[:2],
    ):
        if not one.reached:
            _log.info("group %s: the broker does not follow its plan: %s", one.group, one.reason)


def _diagnosed(
    archive: LookArchive,
    seen: Sequence[Seen],
    settings: Settings,
    groups: Sequence[str],
    store: PlanStore,
) -> Diagnosed:
    """Judge what was seen, and store what is the matter."""
    memory = Memory(store.capacities(groups), store.last_changes(groups))
    diagnosed = diagnose(archive, seen, settings.policies, memory)
    store.record_findings(diagnosed.found)
    followed = store.in_state("published", groups=diagnosed.calls) if diagnosed.calls else []
    return Diagnosed(diagnosed.found, members_changed(diagnosed.calls, seen, followed))


def keep(snapshot: GroupSnapshot, archive: LookArchive) -> None:
    """Keep a snapshot that was taken for something else as a look."""
    archive.append(look_of(snapshot), snapshot.snapshot_id)


def partitions_in(look: pa.Table) -> int:
    """Count the partitions of a look; those that several groups read count for each."""
    return int(np.sum(pc.list_value_length(look["end"]).to_numpy()))

"""What is the matter with the groups that were just looked at.

Belongs here: diagnosing some groups between planning runs, within bounds. Does not: definitions
(`fairlead.domain.judgement.diagnosis`), storing what was found (`fairlead.store`).
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa

from fairlead.archive import LookArchive
from fairlead.common.tables import slices
from fairlead.domain.groups import with_advice
from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.judgement.decision import judge
from fairlead.domain.judgement.forecast import Forecast
from fairlead.domain.looks.look import EVERY_LOOK, look_of
from fairlead.domain.looks.questions import Group, Ways, capacity_rows, question_about
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.records import Findings
from fairlead.domain.snapshot import GroupSnapshot

_log = logging.getLogger(__name__)

#: Of more groups than these only planning runs say what is the matter, in Spark.
MOST: Final = 300

Found = dict[str, tuple[datetime, Findings]]


def diagnose(
    archive: LookArchive,
    snapshots: Sequence[GroupSnapshot],
    policies: Sequence[Policy],
    known: Mapping[str, Mapping[str, Capacity]],
) -> Found:
    """Diagnose the groups of snapshots by the looks of the last hour.

    Parameters
    ----------
    archive
        Has the looks before the snapshots, and may have these.
    snapshots
        Just taken, of each group one.
    policies
        Say what is too far behind.
    known
        Group to what is remembered of its members' speeds.

    Returns
    -------
    Group to when it was looked at, and what was found. Groups that could not be read, or whose
    members read nothing, are missing.
    """
    found: Found = {}
    for snapshot in snapshots:
        for group in _groups(archive, snapshot, known):
            name = group.described["group"]
            try:
                findings = _findings(group, policy_for(name, policies))
            except ValueError as error:  # offsets that no broker told, say: the next look may know
                _log.info("group %s: not diagnosed: %s", name, error)
                continue
            if findings is not None:
                found[name] = (snapshot.snapshot_at, findings)
    return found


def _groups(
    archive: LookArchive, snapshot: GroupSnapshot, known: Mapping[str, Mapping[str, Capacity]]
) -> Iterator[Group]:
    now = look_of(snapshot)
    if not now.num_rows:
        return
    names = now["group"].to_pylist()
    earlier = archive.read(
        snapshot.snapshot_at - EVERY_LOOK, snapshot.snapshot_at, (min(names), max(names))
    )
    looks = slices(pa.concat_tables([earlier, now]), "group")
    members = slices(snapshot.members, "group")
    for row in snapshot.groups.to_pylist():
        if row["error"] is None and row["group"] in members:
            yield Group(
                described=row,
                members=members[row["group"]].to_pylist(),
                looks=looks[row["group"]],
                capacities=capacity_rows(known.get(row["group"], {})),
            )


def _findings(group: Group, policy: Policy) -> Findings | None:
    question = question_about(group, Ways.of(policy, compare=False))
    if not question.problem.partition_total:
        return None
    judgement = judge(question, assignors=())
    kept: Forecast = judgement.kept
    return Findings(
        diagnosis=judgement.diagnosis.name,
        names=judgement.diagnosis.names,
        evidence=with_advice(judgement.diagnosis.evidence, group.described),
        late_s=kept.late_s,
        utilisation=kept.utilisation,
        capacities=judgement.capacities,
    )

"""What would have come of plans that are only observed: each day, as it was and as planned.

Belongs here: the looks of a day as a recording, and the figures of its replay. Does not: the replay
(`replay`), nor where figures are kept (`fairlead.store.observed_plans`).
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
from sqlalchemy import Engine

from fairlead.archive import LookArchive
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.policy import Policy, policy_for
from fairlead.simulation.world import Int64
from fairlead.store.observed_plans import ObservedDay, newest_observed, record_observed
from fairlead.surfaces.backtest.recording import Recording, Snapshot
from fairlead.surfaces.backtest.replay import RECORDED, Stretch, replay

_log = logging.getLogger(__name__)

#: A day is replayed anew so often, where a planning run is at the group.
EVERY: Final = timedelta(hours=1)
#: Fewer looks tell nothing of speeds.
LEAST: Final = 6


def observe(
    engine: Engine,
    archive: LookArchive,
    members: pa.Table,
    policies: Sequence[Policy],
    now: datetime,
) -> None:
    """Replay the day of each group that is observed, and that before it where it is not complete.

    What is wrong with a group is said in the log, and concerns no other.

    Parameters
    ----------
    members
        Of a snapshot, of all groups of a run: who subscribes to what.
    now
        Time-zone-aware.
    """
    reads: dict[str, dict[str, list[str]]] = {}
    for row in members.select(["group", "member", "topics"]).to_pylist():
        if policy_for(row["group"], policies).observe:
            reads.setdefault(row["group"], {})[row["member"]] = row["topics"]
    known = newest_observed(engine, list(reads)) if reads else {}
    for group, topics in reads.items():
        try:
            policy, last = policy_for(group, policies), known.get(group)
            for found in _days(archive, group, now, reads=topics, policy=policy, last=last):
                record_observed(engine, group, found)
        except Exception:  # noqa: BLE001 - a replay must not end a planning run
            _log.exception("group %s: what plans would have brought is not known", group)


def _days(
    archive: LookArchive,
    group: str,
    now: datetime,
    *,
    reads: Mapping[str, Sequence[str]],
    policy: Policy,
    last: ObservedDay | None,
) -> Iterator[ObservedDay]:
    """Yield the days that are to be replayed: today's once an hour, and yesterday's to its end."""
    today = now.astimezone(UTC).date()
    if last is not None and last.day == today and now - last.until < EVERY:
        return
    yesterday = today - timedelta(days=1)
    for day in (yesterday, today) if last is not None and last.day == yesterday else (today,):
        began = datetime.combine(day, time(), UTC)
        looks = archive.read(began, min(now, began + timedelta(days=1)), [group])
        found = of_day(day, looks, reads, policy)
        if found is not None:
            yield found


def of_day(
    day: date, looks: pa.Table, reads: Mapping[str, Sequence[str]], policy: Policy
) -> ObservedDay | None:
    """Return what plans would have brought on a day; None: too few looks could be replayed.

    Parameters
    ----------
    looks
        Of one group and day, by time.
    reads
        Member to topics; of whom it is not known, it is taken for all topics.
    policy
        The group's. It is replayed as if it were not observed.
    """
    snapshots = [_snapshot(row, reads) for row in looks.to_pylist() if row["members"]]
    if len(snapshots) < LEAST:
        return None
    recording = Recording.of(snapshots, latest=policy.auto_offset_reset == "latest")
    in_charge = policy.assignors[0]
    acting = policy.model_copy(update={"observe": False})
    recorded, kept, planned = (
        list(replay(recording, charge, acting)) for charge in (RECORDED, OBSERVED, in_charge)
    )
    return ObservedDay(
        day=day,
        until=snapshots[-1].at,
        late_recorded_s=_late_s(recorded),
        late_s=_late_s(kept),
        late_planned_s=_late_s(planned),
        plans=sum(outcome.published for outcome in planned),
        paused_s=sum(outcome.paused_s for outcome in planned),
    )


def _late_s(stretches: Sequence[Stretch]) -> float:
    return sum(stretch.late_s for stretch in stretches)


def _snapshot(look: Mapping[str, Any], reads: Mapping[str, Sequence[str]]) -> Snapshot:
    """Return a row of the schema `LOOKS` as a snapshot."""
    topics, cuts = look["topics"], np.cumsum(look["counts"])[:-1]
    there = set(topics)
    owned: dict[str, dict[str, list[int]]] = {name: {} for name in look["members"]}
    for topic, owners in zip(
        topics, np.split(np.array(look["owner"], np.int32), cuts), strict=True
    ):
        for number, owner in enumerate(owners.tolist()):
            if owner >= 0:
                owned[look["members"][owner]].setdefault(topic, []).append(number)

    def cut(column: str) -> dict[str, Int64]:
        values = np.split(np.array(look[column], np.int64), cuts)
        return dict(zip(topics, values, strict=True))

    return Snapshot(
        at=look["at"],
        members={
            name: [topic for topic in reads.get(name, topics) if topic in there]
            for name in look["members"]
        },
        owned=owned,
        begin=cut("begin"),
        end=cut("end"),
        committed=cut("committed"),
    )

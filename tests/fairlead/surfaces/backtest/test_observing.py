"""What plans would have brought a group that is observed: from its looks to a row a day."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import Engine

from benchmarks.simulation.catalogue import SCENARIOS
from fairlead.archive import LookArchive
from fairlead.domain.looks.look import LOOKS
from fairlead.domain.policy import Policy
from fairlead.domain.snapshot import new_snapshot_id
from fairlead.store.observed_plans import observed_days
from fairlead.surfaces.backtest.observing import observe
from fairlead.surfaces.backtest.recording import Snapshot
from tests.fairlead.store.conftest import engine, store_url  # noqa: F401 - fixtures
from tests.fairlead.surfaces.backtest.recordings import recorded

pytestmark = pytest.mark.postgres


def look_of(snapshot: Snapshot, group: str) -> pa.Table:
    """Lay a snapshot out as a look."""
    topics, members = sorted(snapshot.end), list(snapshot.members)
    owner_of = {
        (topic, number): members.index(name)
        for name, owned in snapshot.owned.items()
        for topic, numbers in owned.items()
        for number in numbers
    }
    row = {
        "group": group,
        "at": snapshot.at,
        "topics": topics,
        "counts": [snapshot.end[topic].size for topic in topics],
        **{
            name: [offset for topic in topics for offset in getattr(snapshot, name)[topic].tolist()]
            for name in ("begin", "end", "committed")
        },
        "members": members,
        "owner": [
            owner_of.get((topic, number), -1)
            for topic in topics
            for number in range(snapshot.end[topic].size)
        ],
    }
    return pa.Table.from_pylist([row], LOOKS)


def test_day_of_looks_is_replayed_once_an_hour(tmp_path: Path, engine: Engine) -> None:  # noqa: F811
    """Plans would have saved most lateness; nothing is replayed of a group that is planned."""
    snapshots, _ = recorded(SCENARIOS["skew"], hours=3)
    archive = LookArchive(str(tmp_path))
    for snapshot in snapshots:
        look = pa.concat_tables([look_of(snapshot, group) for group in ("planned", "watched")])
        archive.append(look, new_snapshot_id(snapshot.at))
    rows = [
        {"group": group, "member": name, "topics": list(topics)}
        for group in ("planned", "watched")
        for name, topics in snapshots[-1].members.items()
    ]
    policies, members = (Policy(groups="watched", observe=True),), pa.Table.from_pylist(rows)
    now = snapshots[-1].at

    observe(engine, archive, members, policies, now)

    yesterday = now.date() - timedelta(days=1)
    (day,) = observed_days(engine, "watched", yesterday)
    assert observed_days(engine, "planned", yesterday) == []
    assert (day.day, day.until) == (now.date(), now)
    assert day.late_s == pytest.approx(day.late_recorded_s, rel=0.1)
    assert 0 < day.late_planned_s < 0.4 * day.late_s
    assert 1 <= day.plans <= 4
    assert day.paused_s >= 10 * day.plans

    archive.append(look_of(snapshots[-1], "watched"), new_snapshot_id(now + timedelta(minutes=9)))
    observe(engine, archive, members, policies, now + timedelta(minutes=50))
    assert observed_days(engine, "watched", yesterday) == [day]

"""The page of a group: diagnoses, decisions, versions, owners, lag and work.

Belongs here: which stored data the page shows, and how many rows. Belongs elsewhere: the queries
(`fairlead.store.group_history`), a version's review (`fairlead.surfaces.review`).
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Engine

from fairlead.domain.advice import advice_in
from fairlead.domain.cohorts import cohort_of
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.stored_samples import Change, GroupHistory, StoredSample
from fairlead.domain.work_text import time_per_record
from fairlead.store import event_queries, group_history, history_queries
from fairlead.store.freezes import freezes_on
from fairlead.store.regressions import back_offs
from fairlead.surfaces.links import asset_url
from fairlead.surfaces.next_step import next_step
from fairlead.surfaces.offers import Desk, of_freeze, of_hot_partitions
from fairlead.surfaces.survey.finding import follows as follow_how
from fairlead.surfaces.web.group_plots import (
    STRIPS,
    plots_of,
    plots_of_partition,
    strip_of,
)
from fairlead.surfaces.web.layout import TEMPLATES, ages

#: Maximum number of rows of a table; commands show all rows.
ROWS: Final = 50
#: Maximum number of partitions in the list from which the reader chooses one.
OFFERED: Final = 500


def group_page(
    engine: Engine,
    group: str,
    partition: str = "",
    *,
    dagster_url: str | None = None,
    policies: Sequence[Policy] = (),
    desk: Desk | None = None,
    now: datetime | None = None,
) -> str:
    """Return a group's page as an HTML document.

    Parameters
    ----------
    engine
        Fairlead's database; `fairlead_reader` is enough.
    group
        The consumer group.
    partition
        "topic-number" of the partition whose history is shown; "": no history.
    dagster_url
        Address of the Dagster UI; None: the page has no link to it.
    policies
        The policies of the settings.
    desk
        The reader of the page, who may be allowed to act.
    now
        The time, time-zone-aware, from which ages are computed; None: now.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    """
    read_at = now or datetime.now(UTC)
    diagnoses = group_history.read_diagnoses(engine, group, limit=ROWS)
    (row,) = history_queries.read_groups(engine, [group])
    policy = policy_for(group, policies)
    samples = group_history.read_samples(engine, group)
    course = GroupHistory.of(samples)
    changes = course.changes()
    freezes, resting = freezes_on(engine, group), back_offs(engine, [group])
    return TEMPLATES.get_template("group.html").render(
        row=row,
        desk=desk,
        freezes=freezes,
        steps=[of_freeze(group, frozen=any(freeze.group == group for freeze in freezes))],
        before=diagnoses[1] if len(diagnoses) > 1 else None,
        diagnoses=diagnoses,
        advice=advice_in(row["evidence"]),
        can_follow=_can_follow(samples),
        resting=resting.values(),
        next_step=next_step(row, history_queries.undecided([row], read_at), resting),
        planned_at=row["decided_at"] or group_history.last_planning(engine),
        keys=of_hot_partitions(group, row["diagnosis"], row["names"] or ()),
        policy=policy,
        work=group_history.read_work(engine, group, limit=ROWS),
        of_work=group_history.read_work(engine, group, partition=partition, limit=1),
        takes=time_per_record,
        plots=plots_of(samples, course, policy.objective.total_seconds()),
        strip=strip_of(course, changes, row["last_seen"]),
        samples=samples,
        changes=changes,
        restless=_restless(changes),
        versions=history_queries.read_plans(engine, group, limit=ROWS),
        partition=partition,
        moves=group_history.read_moves_of(engine, group, partition, limit=ROWS)
        if partition
        else [],
        owned=_owned(changes, partition),
        of_partition=plots_of_partition(course, partition),
        partitions=course.partitions[:OFFERED],
        strips=min(len(course.partitions), STRIPS),
        partition_total=len(course.partitions),
        history=event_queries.read_history(engine, group, limit=ROWS),
        adoption=group_history.read_adoption(engine, group),
        dagster=asset_url(dagster_url, "assignment_plan", cohort_of(group, policies)),
        age=ages(read_at),
        rows=ROWS,
        now=read_at,
    )


def _can_follow(samples: Sequence[StoredSample]) -> str:
    """Describe how a group's clients can follow plans; "" if there is no sample."""
    if not samples:
        return ""
    last = samples[-1]
    described = {"group_type": last.group_type, "protocol": last.protocol}
    return follow_how(described, members=len(last.members))


def _restless(changes: Sequence[Change]) -> list[tuple[str, int]]:
    """Return the members that joined or left more than once, and how often; at most five."""
    counts = Counter(name for change in changes for name in (*change.came, *change.left))
    return [(name, count) for name, count in counts.most_common(5) if count > 1]


def _owned(changes: Sequence[Change], partition: str) -> list[tuple[Change, str, str]]:
    """Return the changes of a partition's owner: the change, the old and the new owner."""
    return [
        (change, before, after)
        for change in changes
        for name, before, after in change.moved
        if name == partition
    ]

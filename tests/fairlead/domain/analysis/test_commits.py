"""Backlogs, and stuck, silent and throttled partitions, recognised from commits."""

import numpy as np
import pytest

from fairlead.domain.analysis.commits import Commits, read_commits
from tests.fairlead.domain.analysis.questions import series_at

TIMES = range(30)


def commits_of(committed: list[list[int]], end: list[list[int]] | None = None) -> Commits:
    """Analyse commits of four partitions, two per member; each partition gets 60 records a step."""
    arriving = [[1000 + 60 * step] * 4 for step in TIMES]
    return read_commits(series_at(end or arriving, committed, [0, 0, 1, 1]))


@pytest.mark.parametrize(("age", "backlog"), [(50, 0), (70, 60)])
def test_a_lag_older_than_a_step_is_a_backlog(age: int, backlog: int) -> None:
    """If a member commits at each step, only lag older than a step is a backlog."""
    end = 10_000 + 600 * np.array(TIMES)[:, None].repeat(4, axis=1)
    committed = end - 10 * np.array([3, 4, 4, age])
    commits = read_commits(
        series_at(end.tolist(), committed.tolist(), [0, 1, 2, 3], members=tuple("abcd"))
    )
    assert commits.backlog[:3].tolist() == [0, 0, 0]
    assert commits.backlog[3] == pytest.approx(10 * backlog, rel=0.1)


def test_records_left_by_a_commit_are_a_backlog() -> None:
    """Member b leaves 80 of 240 new records unread at each commit, so b is busy, and a is not."""
    rows = [
        [997 + 60 * step] * 2 + [1000 + 160 * (step // 4), 920 + 160 * ((step + 2) // 4)]
        for step in TIMES
    ]
    commits = commits_of(rows)
    assert commits.busy[12:, 1][commits.marked[12:, 1]].all()
    assert not commits.busy[:, 0].any()


def test_records_of_the_next_commit_are_no_backlog_before_it() -> None:
    """A member is busy only at commits that leave records unread, not between commits.

    In one partition of b, 240 records arrive between commits. Every second commit leaves 120 of
    them unread, and the next commit covers these and all new ones.
    """
    rows = [
        [997 + 60 * step] * 3 + [760 + 240 * (step // 4) + (240, 120)[step // 4 % 2]]
        for step in TIMES
    ]
    assert np.flatnonzero(commits_of(rows).busy[:28, 1]).tolist() == [3, 11, 19, 27]


def rarely(step: int) -> list[int]:
    """Return the committed offsets at a step; each partition is committed every 240 records."""
    return [1000 - 60 * ahead + 240 * ((step + ahead) // 4) for ahead in range(4)]


@pytest.mark.parametrize(("come", "backlog"), [(75, 0), (200, 360)])
def test_few_records_without_a_commit_are_no_backlog(come: int, backlog: int) -> None:
    """If a partition has no commits, only its unread records beyond 240 are a backlog.

    In the other partitions, each commit covers 240 records.
    """
    rows = [[1000, *rarely(step)[1:]] for step in TIMES]
    ends = [[1000 + come * max(step - 26, 0)] + [1000 + 60 * step] * 3 for step in TIMES]
    assert commits_of(rows, ends).backlog.tolist() == [backlog, 0, 0, 0]


def test_a_new_owner_is_silent_as_long_as_its_partition_waits() -> None:
    """If nothing is committed after step 10, all members are silent and no partition is stuck.

    All partitions change owners every four samples; the time since the last commit still counts.
    """
    rows = [[997 + 60 * min(step, 10)] * 4 for step in TIMES]
    end = [[1000 + 60 * step] * 4 for step in TIMES]
    owner = [[step // 4 % 2] * 2 + [1 - step // 4 % 2] * 2 for step in TIMES]
    commits = read_commits(series_at(end, rows, owner))
    assert commits.silent.all()
    assert not commits.stuck.any()
    assert (commits.waiting_s > 1100).all()


@pytest.mark.parametrize(("every", "first"), [(1, 0), (2, 0), (2, 1), (5, 0), (5, 2)])
def test_a_partition_is_throttled_at_any_commit_interval(every: int, first: int) -> None:
    """A partition is throttled if a tenth of it is read, although its owner reads others fully."""
    rows = []
    for step in range(60):
        commit = (step - first) // every * every + first
        rows.append([1000 + 6 * commit] + [997 + 60 * commit] * 3)
    end = [[1000 + 60 * step] * 4 for step in range(60)]
    commits = read_commits(series_at(end, rows, [0] * 4))
    assert commits.throttled.tolist() == [True, False, False, False]
    assert commits.read_per_s[0] == pytest.approx(0.1)
    assert not commits.busy[1:].any()


def test_a_partition_is_throttled_although_it_often_changes_owners() -> None:
    """Each member owns all partitions for three minutes; only half of partition 0 is read."""
    rows = [[1000 + 30 * step] + [997 + 60 * step] * 3 for step in range(60)]
    end = [[1000 + 60 * step] * 4 for step in range(60)]
    owner = [[step // 3] * 4 for step in range(60)]
    owner[58][1:3] = [-1, -1]  # in most samples, the owner has two other partitions
    commits = read_commits(series_at(end, rows, owner, members=tuple(map(str, range(20)))))
    assert commits.throttled.tolist() == [True, False, False, False]


def test_a_partition_of_a_slow_earlier_owner_is_not_throttled() -> None:
    """If only the earlier owner of a partition fell behind, the partition is not throttled."""
    end = [[600 * step] for step in range(20)]
    owner = [[int(step >= 17)] for step in range(20)]
    rows = [[300 * step] for step in range(20)]
    waits = np.array([False, True])
    assert not read_commits(series_at(end, rows, owner), waits=waits).throttled.any()


def test_a_member_is_silent_long_after_its_third_commit() -> None:
    """A member is silent if it commits three times in ten minutes, and then not for 44 minutes."""
    rows = [[60 * (min(step, 15) // 5 * 5)] * 2 for step in range(60)]
    end = [[60 * step] * 2 for step in range(60)]
    assert read_commits(series_at(end, rows, [0, 0])).silent[0]


def test_a_rarely_committed_partition_is_not_stuck_if_owners_change() -> None:
    """A partition committed only at every eighth sample is not stuck, under either owner."""
    rows = [[997 + 60 * step] * 5 + [1000 + 480 * (step // 8)] for step in range(48)]
    end = [[1000 + 60 * step] * 6 for step in range(48)]
    owner = [[0, 0, 0, 1, 1, step // 5 % 2] for step in range(48)]
    for until in range(30, 48):
        assert not read_commits(series_at(end[:until], rows[:until], owner[:until])).stuck.any()


@pytest.mark.parametrize(("first", "backlogs"), [(50, 1), (1200, 0)])
def test_many_records_after_few_are_no_batch(first: int, backlogs: int) -> None:
    """500 unread records are a backlog after batches of 50, but not after batches of 1,200."""
    come = np.array([0, first] * 6 + [1000] * 8)
    other = 1000 * np.arange(come.size + 1)
    end = 1000 + np.stack([np.append(0, come.cumsum()), other, other, other], axis=1)
    committed = end.copy()
    committed[-1, 0] -= 500
    series = series_at(end.tolist(), committed.tolist(), [0, 1, 2, 3], members=tuple("abcd"))
    assert np.count_nonzero(read_commits(series).backlog) == backlogs


def test_a_partition_committed_at_each_change_of_owner_can_be_stuck() -> None:
    """A partition is stuck if its last owner has not committed it for 24 minutes.

    Before that, the partition got another owner, and a commit, every six minutes.
    """
    end = [[600 * step] * 6 for step in range(61)]
    owner = [[step // 6 % 2 if step < 36 else 0, 0, 0, 1, 1, 1] for step in range(61)]
    handed_on = [max(step - step % 6, 1) - 1 for step in [*range(37), *[36] * 24]]
    rows = [[600 * last] + [600 * step] * 5 for step, last in enumerate(handed_on)]
    assert read_commits(series_at(end, rows, owner)).stuck.nonzero()[0].tolist() == [0]


@pytest.mark.parametrize(("steps", "stuck"), [(4, []), (6, [0])])
def test_a_partition_is_stuck_only_after_several_samples(steps: int, stuck: list[int]) -> None:
    """A partition that waits for four minutes may be committed late; after six it is stuck."""
    end = [[1000 + 60 * step] * 4 for step in TIMES]
    rows = [[997 + 60 * min(step, TIMES[-1] - steps), *row[1:]] for step, row in enumerate(end)]
    assert read_commits(series_at(end, rows, [0] * 4)).stuck.nonzero()[0].tolist() == stuck


def test_a_slowly_fetched_partition_is_found_in_a_new_log() -> None:
    """A partition is throttled even if its topic was recreated during the samples."""
    end = [[100_000 + 600 * k] for k in range(8)] + [[6000 * k] for k in range(12)]
    rows = [[100_000 + 600 * k] for k in range(8)] + [[3000 * k] for k in range(12)]
    commits = read_commits(series_at(end, rows, [0]), waits=np.array([True]))
    assert commits.throttled.tolist() == [True]

"""Members whose commits are ahead of what they have worked off, as with aiokafka's `getmany()`."""

from dataclasses import replace

import numpy as np

from fairlead.domain.judgement.commits import Commits, read_commits
from fairlead.domain.judgement.commits_ahead import set_right
from fairlead.domain.judgement.looks import Looks
from tests.fairlead.domain.judgement.questions import looks_at

#: Of a's two partitions 60 records come a step, of b's 60 each; a gets a batch in these looks.
BATCHES = [0, 1, 2, 4, 7, 11, 16]
LOOKS = 19


def seen(*, late: bool = True, together: bool = True) -> tuple[Looks, Commits]:
    """Return looks at a, who commits at batches, and b, who commits all the time, or late too."""
    ends, committed = [], []
    given = np.zeros(2, np.int64)
    for look in range(LOOKS):
        end = 1000 + 60 * look * np.ones(4, np.int64)
        if look in BATCHES:
            before = given.copy()
            given = end[:2]
            if not together and look > 1:  # of one partition after the other
                given = np.where(np.arange(2) == look % 2, end[:2], before)
        behind = np.array([5, 5]) if late or look % 2 else np.array([65, 65])
        ends.append(end.tolist())
        committed.append([*given.tolist(), *(end[2:] - behind).tolist()])
    looks = looks_at(ends, committed, [0, 0, 1, 1])
    return looks, read_commits(looks)


def test_a_batch_counts_as_read_when_it_was_worked_off() -> None:
    """What jumped at the end of one pause is what was read in the next; the last one waits."""
    looks, before = seen()
    after = set_right(looks, before)
    assert before.late.tolist() == [True, False]
    marks = np.array(BATCHES[1:]) - 1
    assert after.taken[marks[1:], 0].tolist() == before.taken[marks[:-1], 0].tolist()
    assert (after.taken[:, 2:] == before.taken[:, 2:]).all()
    assert after.busy[marks[3:], 0].all()
    # The last batch came two looks ago and takes as long as its like: some of it is held.
    lag = looks.lag[-1][:2]
    assert (after.backlog[:2] > lag).all()
    assert (after.backlog[:2] < lag + before.taken[marks[-1], :2]).all()


def test_whoever_commits_partitions_one_after_the_other_is_not_ahead() -> None:
    """As clients do that work off chunks."""
    looks, commits = seen(together=False)
    assert set_right(looks, commits) is commits


def test_whoever_commits_after_many_records_is_not_ahead() -> None:
    """After 240 of each partition, as all do; only a has so few that looks find no commit of it."""
    look = np.arange(LOOKS)
    ahead = np.array([0, *range(4), *range(4)])
    committed = 1000 - 60 * ahead + 240 * ((look[:, None] + ahead) // 4)
    end = np.repeat(1000 + 60 * look[:, None], ahead.size, axis=1)
    owner = [0, *[1] * 4, *[2] * 4]
    looks = looks_at(end.tolist(), committed.tolist(), owner, members=("a", "b", "c"))
    commits = read_commits(looks)
    assert commits.late.tolist() == [True, False, False]
    assert set_right(looks, commits) is commits


def test_most_members_that_commit_every_other_look_are_not_ahead() -> None:
    """They are at rest: a peer that commits more often, for it works off a backlog, is no rule."""
    look = np.arange(LOOKS)
    seldom = 995 + 60 * (look // 2 * 2)
    committed = np.column_stack([seldom] * 4 + [995 + 30 * look] * 2)
    end = np.repeat(1000 + 60 * look[:, None], 6, axis=1)
    looks = looks_at(end.tolist(), committed.tolist(), [0, 0, 1, 1, 2, 2])
    looks = replace(looks, members=("a", "b", "c"))
    commits = read_commits(looks)
    assert commits.late.tolist() == [True, True, False]
    assert not set_right(looks, commits).busy[:, :2].any()

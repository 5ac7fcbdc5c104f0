"""Members that commit ahead of what they have worked off: what they hold counts as read too early.

Belongs here: who commits ahead, and setting these commits right. Does not: what all others' commits
say (`commits`).

aiokafka's `getmany()` hands out all that was fetched, and its positions, which a timer commits, are
ahead of the application by the whole batch. Whoever keeps up polls, and so commits, every few
seconds; whoever does not works a batch off for minutes, in which nothing is committed, and then all
partitions jump at once. What jumps at the end of one such pause is worked off in the next.
"""

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.judgement.commits import Commits
from fairlead.domain.judgement.looks import Looks

Places = npt.NDArray[np.intp]

#: A pause is so many steps without a commit, at least, where others commit in every step.
_PAUSE: Final = 2
#: It takes so many of them, at whose ends this share of what had come moved at once.
_PAUSES: Final = 2
_TOGETHER: Final = 0.8
#: Commits are in a rhythm that lie no further than so many steps from it, from first to last.
_RHYTHM: Final = 1.5
#: Commits bring equally much whose standard deviation is no more than this share of their mean.
_EQUALLY: Final = 0.1


def set_right(looks: Looks, commits: Commits) -> Commits:
    """Return commits in which what was handed out counts as read once it has been worked off."""
    commit = commits.marked.any(axis=0)
    rarely = commits.late & commit
    # Where most commit less often than looks are taken, that is how the application commits.
    if not rarely.any() or 2 * rarely.sum() > commit.sum():
        return commits
    found = commits
    for member in np.flatnonzero(commits.late).tolist():
        unsteady = np.flatnonzero(~commits.steady[:, member])
        first = int(unsteady[-1]) + 1 if unsteady.size else 0
        marks = np.flatnonzero(commits.marked[:, member])
        marks = marks[marks >= first]
        places = np.flatnonzero(looks.owner[-1] == member)
        # Nor is it ahead where all its group commits after many records.
        if commits.evenly[places].any() or not _jumps(looks, commits, marks, places):
            continue
        if not _by_design(looks, commits, member, marks, places):
            found = _delayed(looks, found, member, marks, places)
    return found


def _jumps(looks: Looks, commits: Commits, marks: Places, places: Places) -> bool:
    """Whether nearly all that had come moved at once after each pause."""
    ends = marks[1:][np.diff(marks) >= _PAUSE]
    if ends.size < _PAUSES or not places.size:
        return False
    begins = marks[:-1][np.diff(marks) >= _PAUSE]
    come = looks.end[np.ix_(ends, places)] > looks.end[np.ix_(begins, places)]
    moved = commits.taken[np.ix_(ends, places)] > 0
    return bool((moved & come).sum() >= _TOGETHER * max(int(come.sum()), 1))


def _by_design(looks: Looks, commits: Commits, member: int, marks: Places, places: Places) -> bool:
    """Whether a member commits in a rhythm, or after so many records, and is at rest.

    Whoever is ahead works off in each pause what came in the pause before: where that leaves
    nothing behind, pauses and batches become longer and longer, or shorter.
    """
    pause = np.diff(marks) >= _PAUSE
    ends = marks[1:][pause]
    if commits.throughout[ends, member].any():
        return False
    at = looks.at[marks + 1]
    # In a timer's turns nothing may have come: they are counted.
    turn = np.rint((at - at[0]) / np.median(np.diff(at)[pause]))
    if turn[-1] > 0:
        off = at - np.polyval(np.polyfit(turn, at, 1), turn)
        if np.ptp(off) <= _RHYTHM * looks.step:
            return True
    brought = commits.taken[np.ix_(ends, places)].sum(axis=1)
    return bool(brought.std() <= _EQUALLY * brought.mean())


def _delayed(looks: Looks, commits: Commits, member: int, marks: Places, places: Places) -> Commits:
    taken, consumed = commits.taken.copy(), commits.consumed.copy()
    marked, busy = commits.marked.copy(), commits.busy.copy()
    jumps = commits.taken[np.ix_(marks, places)]
    taken[np.ix_(marks, places)] = np.concatenate((0 * jumps[:1], jumps[:-1]))
    consumed[marks, member] = taken[np.ix_(marks, places)].sum(axis=1)
    marked[marks[0], member] = False
    pause = np.diff(marks) >= _PAUSE
    busy[marks[1:], member] |= pause
    at = looks.at[marks + 1]
    since, last = looks.now - at[-1], at[-1] - at[-2]
    backlog = commits.backlog.copy()
    if pause[-1] or since >= _PAUSE * looks.step - 1.0:
        done = jumps[-2].sum() * since / max(float(jumps[-1].sum()) * last, 1e-9)
        backlog[places] = looks.lag[-1][places] + max(1.0 - done, 0.0) * jumps[-1]
    return replace(
        commits, taken=taken, consumed=consumed, marked=marked, busy=busy, backlog=backlog
    )

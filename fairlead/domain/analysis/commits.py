"""What commits say: what of a lag is a backlog, and which partitions and members are stuck.

Belongs here: telling a record that waits from one whose commit has not come yet. Does not: how fast
members are (`capacities`), nor what follows (`diagnosis`).

The lag that a look sees is a backlog and, on top, what was read since the last commit. How much the
latter is depends on how the application commits:

- Where commits come within every look (auto-commit: every 5 s), a look sees a lag as old as the
  last commit. How old that is at most shows on the members that are at rest.
- Where commits come less often than looks, only the look right behind a commit is worth
  anything: what arrived before the look ahead of it and was not committed is a backlog for certain.
- Where an application counts records before it commits them, all that its commits bring has a
  common divisor: less than that waits for the next commit.
- Where producers send a batch less often than looks are taken, a lag may have come just now: what
  a commit left of all that had come by the look ahead of it is a backlog for certain.
- Records behind an open transaction are no lag: consumers that read committed cannot read them.
- A lag no larger than what a partition shows at rest is none: the marker of a transaction, a
  record that an application keeps until it has a hundred.

So a partition's lag at the last look is, by the first line that holds:

=========================================================  ==============================
the partition, or its owner                                 its backlog
=========================================================  ==============================
shows no larger lag than at rest                            0
is stuck: waits while its owner commits others              0: it does not hold its owner up
crawls: is behind while its owner reads others at once      0: the same
is committed, or sent to, less often than looks are taken   what the last commit left behind
counts records, and less waits than it counts               the same
any other                                                   the lag beyond `explained_s`
=========================================================  ==============================

`read_commits` has an example of each. Its rules build on each other in this order: what moved, what
waits, intervals and who is late, foreign and silent, stuck, crawling, what counts as consumed, the
age that commits explain, who is busy, the backlog.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.looks import Float64, Int64, Looks, Mask

Places = npt.NDArray[np.intp]

#: What at most counts as a lag at rest, in records.
MOST_AT_REST: Final = 10
#: Steps, and seconds, that a partition must wait before it can be called stuck.
STUCK_STEPS: Final = 5
STUCK_S: Final = 120.0
#: And so many of its owner's usual commit intervals, and turns at its other partitions.
STUCK_INTERVALS: Final = 3.0
STUCK_TURNS: Final = 3
#: And more than so many times what its commits usually bring.
_GATHERS: Final = 1.25
#: What Kafka's clients commit by themselves is so old at most, and some time for a poll.
_AUTO_COMMIT_S: Final = 5.5
#: A member's own least age, and some noise, is what its commits explain.
_OWN: Final = 1.25
#: But not so many times what is usual in the group: that is a backlog that stays as it is.
_PEERS: Final = 3.0
#: Where commits are older than auto-commit's, the upper quartile counts, but no more than so many
#: times the lower: ages wander for long where commits come nearly as often as looks.
_APART: Final = 2.0
#: There is no cap for a member whose last samples, at most so many, show nearly the same age:
#: within this factor and so many standard deviations. A backlog would change.
_SAME_STEPS: Final = 20
_SAME: Final = 1.2
_DEVIATIONS: Final = 4.0
#: Records a step, below which an age is chance.
_FEW: Final = 10
#: A partition is throttled while at least two others of its owner, which each get so many times
#: what is read of it, keep up, in this share of the samples.
FASTER_THAN_CRAWLING: Final = 1.5
AT_REST: Final = 0.9
_OTHERS: Final = 2
#: The steps in which a partition did not change hands are sought in so many times as many.
_TENURES: Final = 3
#: So many seconds lie at most between the ends and the commits that a look reads.
LOOK_S: Final = 15.0
#: A partition gets batches where at least so many steps, and this share of all, bring a batch and
#: follow a step that brings nothing.
_BATCHES: Final = 2
_BATCH_SHARE: Final = 0.1
#: A batch is at least this share of what a step brings on average: a rate near zero brings less.
_BATCH: Final = 0.9
#: Late commits whoever misses more than this share of the steps that should end in a commit, and
#: not once only, as in a pause.
LATE: Final = 0.1
_ONCE: Final = 1
#: Of `Commits`, what is told of partitions; all else is told of members.
_OF_PARTITIONS: Final = frozenset(
    ("taken", "foreign", "stuck", "begun", "crawling", "read", "backlog", "waiting_s")
)


@dataclass(frozen=True, eq=False)
class Commits:
    """What the commits of S steps say: P partitions, M members.

    Parameters
    ----------
    taken
        Records of each partition that count as consumed in each step, int64 of shape (S, P).
    consumed
        Records a member consumed in each step by its commits, float64 of shape (S, M). What it
        committed of partitions that changed hands in the step, of stuck ones, and what it read
        again, is not in it.
    marked
        Whether a member committed anything new in a step, bool of shape (S, M).
    busy
        Whether what was left at the look behind such a step is a backlog, and nothing was lost in
        it, so that all that was consumed counts; bool of shape (S, M).
    throughout
        Whether a member also had a backlog at the look ahead of such a step, for certain: records
        that had come by then were not committed at its end; bool of shape (S, M).
    steady
        Whether a member owned the same partitions, some, at both ends, and the logs of all of them
        were seen; bool of shape (S, M).
    interval_s
        A member's usual time between commits, float64 of shape (M,): a step at least; infinite
        for one that had something to commit and never did.
    held_back_s
        For how long a member reads what commits hold back, by chance, of its partitions that are
        committed less often than looks are taken; seconds, float64 of shape (M,).
    late
        Members that commit less often than looks are taken, bool of shape (M,).
    silent
        Members with something to commit that have not committed anything for far longer than they
        use to, or whose commits are foreign, bool of shape (M,).
    foreign
        Partitions that are committed beyond the end of their log, as where commits were copied from
        another cluster: where the owner stands nobody knows; bool of shape (P,).
    stuck
        Partitions that wait while their owner commits others, bool of shape (P,).
    begun
        Partitions with a commit, or an arrival: of others nobody knows where consumers would begin;
        bool of shape (P,).
    crawling
        Partitions that stay behind while their owner reads others as soon as they come, to which
        more comes: no way in which clients share their time does that, so that it is the partition,
        whoever reads it; bool of shape (P,).
    read
        Records a second that were read of each of these lately, float64 of shape (P,).
    backlog
        Records that certainly or probably wait to be read, float64 of shape (P,); 0 for a stuck or
        throttled partition, whose owner does not hold it up.
    waiting_s
        For how long a partition has had something to commit and no commit, whoever owned it,
        float64 of shape (P,).
    explained_s
        How old a lag each member's commits explain, in seconds, float64 of shape (M,).
    """

    taken: Int64
    consumed: Float64
    marked: Mask
    busy: Mask
    throughout: Mask
    steady: Mask
    interval_s: Float64
    held_back_s: Float64
    late: Mask
    silent: Mask
    foreign: Mask
    stuck: Mask
    begun: Mask
    crawling: Mask
    read: Float64
    backlog: Float64
    waiting_s: Float64
    explained_s: Float64

    def in_work(self, looks: Looks, costs: Float64) -> "Commits":
        """Return the same with records counted as what they take, float64 of shape (P,)."""
        return replace(self, consumed=_PerMember(looks).sum(self.taken * costs))

    def of(self, mine: slice, members: slice) -> "Commits":
        """Return what commits say of some of the partitions, and of those who own them."""
        cut = {
            name: values[..., mine if name in _OF_PARTITIONS else members]
            for name, values in vars(self).items()
        }
        return Commits(**cut)

    @property
    def usual_interval_s(self) -> float:
        """The longest usual interval of a member that commits, in seconds; 0 where none does."""
        finite = self.interval_s[np.isfinite(self.interval_s)]
        return float(finite.max(initial=0.0))


def read_commits(
    looks: Looks,
    *,
    team_of: Places | None = None,
    brought: Float64 | None = None,
) -> Commits:
    """Read from looks what their commits say.

    Parameters
    ----------
    looks
        Of the last hour, or so; two at least for anything to be said.
    team_of
        Number of each member's group, ascending, shape (M,); None: there is one group.
    brought
        What a commit of each partition usually brings (`usually_brought`), float64 of shape (P,);
        None: as these looks show.

    Notes
    -----
    O(L P).

    Examples
    --------
    Twelve looks, a minute apart; a record a second comes to each of seven partitions. Members a to
    d commit what they have read three seconds before each look, but d has a fifth partition that
    nobody has committed for seven minutes. Member e commits half of what comes, and f commits every
    four minutes.

    >>> look = np.arange(12)
    >>> prompt = 997 + 60 * look
    >>> stands, half, seldom = np.minimum(prompt, prompt[4]), 1000 + 30 * look, prompt // 240 * 240
    >>> committed = np.column_stack([prompt, prompt, prompt, prompt, stands, half, seldom])
    >>> end = np.repeat(1000 + 60 * look[:, None], 7, axis=1)
    >>> owner = np.tile(np.array([0, 1, 2, 3, 3, 4, 5], np.int32), (12, 1))
    >>> looks = Looks(60.0 * look, 0 * end, end, committed, tuple("abcdef"), owner)
    >>> found = read_commits(looks)
    >>> looks.lag[-1].tolist()
    [3, 3, 3, 3, 423, 330, 220]
    >>> found.backlog.round().tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 312.0, 0.0]
    >>> found.stuck.nonzero()[0].tolist(), found.late.nonzero()[0].tolist()
    ([4], [5])

    Three seconds are explained by how old a commit may be. Of the 330 records of e, its commits
    explain nine seconds, and chance as many records.

    >>> found.explained_s.round().tolist()
    [6.0, 6.0, 6.0, 6.0, 9.0, 6.0]
    """
    if not looks.members:
        # Nobody is somebody who owns nothing: nothing below need know of groups without members.
        looks = replace(looks, members=("",))
    team_of = np.zeros(len(looks.members), np.intp) if team_of is None else team_of
    brought = _gathered(looks, usually_brought(looks) if brought is None else brought)
    per_member = _PerMember(looks)
    held = (looks.owner[1:] == looks.owner[:-1]) & (looks.owner[1:] >= 0) & looks.in_one_log[:-1]
    advance = looks.advanced
    moved = held & looks.committed_again
    rest = at_rest(looks)
    uncommitted = (looks.lag > rest) | _never_committed(looks)
    waiting_s = _waiting(looks, moved, uncommitted, same_owner=False)
    owned_s = _waiting(looks, moved, uncommitted)
    marked = per_member.any(moved)
    due = held & (uncommitted[:-1] | moved)
    overdue = waiting_s >= STUCK_INTERVALS * _own_interval(looks, moved, due, waiting_s)
    interval_s, late = _intervals(looks, marked, per_member.any(due))
    rarely = _intervals(looks, moved, due)[1]
    unpunctual = late | _any_owned(looks, rarely)
    foreign = _foreign(looks)
    silent = _silent(looks, per_member, np.where(overdue, waiting_s, owned_s), interval_s)
    silent |= _any_owned(looks, foreign)
    patience_s = _patience(looks, interval_s)
    stuck = _stuck(looks, moved, marked, owned_s, patience_s)
    stuck &= owned_s >= STUCK_INTERVALS * _own_interval(looks, moved, due, owned_s)
    behind = looks.position[1:] < looks.readable_end[:-1]
    left, read = _left_behind(looks, held, behind, marked=marked, late=late)
    waited_s = patience_s[np.maximum(looks.owner[-1], 0)]
    stuck |= left & (read == 0) & overdue & (waiting_s >= waited_s)
    # What gathers before a commit, by day or night, waits for it.
    gathers = looks.lag[-1] <= np.maximum(rest, _GATHERS * brought)
    stuck &= ~gathers
    begun = (looks.last_committed[-1] >= 0) | (looks.arrived > 0).any(axis=0)
    stuck &= begun
    crawling = left & (read > 0)
    crawling &= ~stuck & ~_any_owned(looks, stuck)[np.maximum(looks.owner[-1], 0)]
    free = moved & ~stuck & ~crawling
    proven = np.maximum(looks.readable_end[:-1] - looks.position[1:] - rest, 0)
    taken: Int64 = np.where(free, advance, 0)
    consumed = per_member.sum(taken)
    arrived = per_member.sum(np.where(free, looks.arrived, 0))
    explained_s = _ages(looks, arrived, per_member.sum(free * looks.lag[1:]), unpunctual, team_of)
    throughout = per_member.any(_left_by_commits(free, proven, advance, rarely))
    explained = arrived / looks.seconds[:, None] * explained_s
    in_batches, steady = _in_batches(looks, held), per_member.steady()
    waits = per_member.sum(np.where(free & ~in_batches, np.maximum(looks.lag[1:] - rest, 0), 0))
    by_age: Mask = ~unpunctual & (waits > explained + 3.0 * np.sqrt(explained) + 1.0)
    counted = _counted(looks, steady, np.any(by_age, axis=0))
    busy = throughout | (by_age & (waits > counted))
    by_commits = unpunctual | ((counted > 0) & (waits[-1:].sum(axis=0) <= counted))
    most = np.where(
        (in_batches | np.append(by_commits, False)[looks.owner[-1]])  # -1 is nobody
        & ~(overdue & ~gathers & (waiting_s >= waited_s)),
        _left_by_last(looks, looks.committed_again, proven, brought),
        np.inf,
    )
    return Commits(
        taken=taken,
        consumed=consumed,
        marked=per_member.any(free),
        busy=busy,
        throughout=busy & throughout,
        steady=steady,
        interval_s=interval_s,
        held_back_s=_held_back(looks, np.where(free & rarely, advance, 0), consumed),
        late=late,
        silent=silent,
        foreign=foreign,
        stuck=stuck,
        crawling=crawling,
        read=read,
        backlog=np.where(stuck | crawling | ~begun, 0.0, _backlog(looks, most, rest, explained_s)),
        begun=begun,
        waiting_s=waiting_s,
        explained_s=explained_s,
    )


class _PerMember:
    """Sums over the partitions that a member owns at the end of each step."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self.steps, self.members = len(looks) - 1, len(looks.members)
        rows = np.arange(self.steps)[:, None] * (self.members + 1)
        # Nobody's partitions are summed into a column behind the last, which is dropped.
        owner = np.where(looks.owner[1:] >= 0, looks.owner[1:], self.members)
        self._cell = (rows + owner).ravel()
        self._size = self.steps * (self.members + 1)

    def sum(self, values: Int64 | Float64 | Mask) -> Float64:
        """Sum values of shape (S, P) to float64 of shape (S, M)."""
        total = np.bincount(self._cell, weights=values.ravel(), minlength=self._size)
        table: Float64 = total.reshape(self.steps, self.members + 1).astype(np.float64)
        return table[:, : self.members]

    def any(self, values: Mask) -> Mask:
        """Whether some value of shape (S, P) holds, bool of shape (S, M)."""
        count = np.bincount(self._cell[values.ravel()], minlength=self._size)
        table: Mask = count.reshape(self.steps, self.members + 1) > 0
        return table[:, : self.members]

    def steady(self) -> Mask:
        """Whether a member owned the same partitions at both ends of a step, in logs that go on."""
        owner = self._looks.owner
        changed = (owner[1:] != owner[:-1]) | ~self._looks.in_one_log[:-1]
        gained = self.any(changed)
        lost = np.zeros((self.steps, self.members), dtype=bool)
        step, partition = np.nonzero(changed)
        before = owner[step, partition]
        lost[step[before >= 0], before[before >= 0]] = True
        owns = self.any(np.ones_like(changed))
        return owns & ~gained & ~lost


def at_rest(looks: Looks) -> Int64:
    """Return the largest lag that each partition showed while nothing happened, int64 (P,)."""
    quiet = (looks.arrived == 0) & (looks.advanced == 0) & looks.in_one_log[:-1]
    small = np.where(quiet & (looks.lag[1:] <= MOST_AT_REST), looks.lag[1:], 0)
    # Where there is no quiet step, a record behind at every look is a transaction's marker.
    marker = np.minimum(looks.lag.min(axis=0), 1) if len(looks) > STUCK_STEPS else 0
    largest: Int64 = np.maximum(small.max(axis=0, initial=0), marker).astype(np.int64)
    return largest


def usually_brought(looks: Looks) -> Float64:
    """Return what a commit of each partition usually brings, records, float64 of shape (P,)."""
    commits = (looks.advanced > 0).sum(axis=0)
    usual: Float64 = looks.advanced.sum(axis=0) / np.maximum(commits, 1)
    return usual


def _gathered(looks: Looks, brought: Float64) -> Float64:
    """Return the usual records of a commit, float64 of shape (P,).

    Of a partition without a commit: of its owner's other partitions, on average.
    """
    owner, count = looks.owner[-1], len(looks.members)
    mine = (brought > 0) & (owner >= 0)
    total = np.bincount(owner[mine], brought[mine], count)
    mean = np.append(total / np.maximum(np.bincount(owner[mine], minlength=count), 1), 0.0)
    return np.where(brought > 0, brought, mean[owner])


def _waiting(looks: Looks, moved: Mask, uncommitted: Mask, *, same_owner: bool = True) -> Float64:
    """Return for how long each partition has had something to commit and no commit.

    By its present owner, or by whoever owned it.
    """
    # From the last look backwards: looks with something uncommitted, steps without a commit.
    still = uncommitted.copy()
    waited = (looks.owner[1:] == looks.owner[:-1]) if same_owner else ~looks.committed_again
    still[:-1] &= ~moved & waited & looks.in_one_log[:-1]
    waits = np.logical_and.accumulate(still[::-1], axis=0)[::-1]
    first = len(looks) - waits.sum(axis=0)
    since: Float64 = looks.at[np.minimum(first, len(looks) - 1)]
    return looks.now - since


def _intervals(looks: Looks, marked: Mask, due: Mask) -> tuple[Float64, Mask]:
    """Return the usual time between commits of each member, or partition, and who commits late."""
    due_s = (due * looks.seconds[:, None]).sum(axis=0) if len(looks) > 1 else 0.0
    marks = marked.sum(axis=0)
    steps_due = due.sum(axis=0)
    missed = steps_due - marks
    never = np.where(steps_due > 0, np.inf, 0.0)
    interval: Float64 = np.where(marks > 0, due_s / np.maximum(marks, 1), never)
    late = (marks > 0) & (missed > np.maximum(LATE * steps_due, _ONCE))
    return np.maximum(interval, looks.step), late


def _held_back(looks: Looks, taken: Int64, consumed: Float64) -> Float64:
    """Return for how long each member reads what commits of some partitions hold back, seconds.

    Partitions are committed independently of each other: the root of the sum of the squares of what
    their commits bring. 0 for a member that has read nothing yet.
    """
    members, owner = len(looks.members), looks.owner[-1]
    if not taken.any():
        return np.zeros(members)
    squares = (taken.sum(axis=0) / np.maximum((taken > 0).sum(axis=0), 1)) ** 2
    owned = owner >= 0
    together = np.bincount(owner[owned], squares[owned], members)
    per_s = consumed.sum(axis=0) / looks.seconds.sum()
    held: Float64 = np.sqrt(together) / np.where(per_s > 0, per_s, np.inf)
    return held


def _any_owned(looks: Looks, chosen: Mask) -> Mask:
    """Return the members that own one of some partitions now: bool of shape (M,)."""
    owner = looks.owner[-1]
    owned: Mask = np.bincount(owner[chosen & (owner >= 0)], minlength=len(looks.members)) > 0
    return owned


def _silent(looks: Looks, per_member: _PerMember, waiting_s: Float64, interval_s: Float64) -> Mask:
    """Return the members that have waited for long, of whose partitions none was committed."""
    if len(looks) <= STUCK_STEPS:
        return np.zeros(per_member.members, dtype=bool)
    waits = (waiting_s > 0) & (looks.owner[-1] >= 0)
    longest = np.full(per_member.members, -1.0)
    np.maximum.at(longest, looks.owner[-1][waits], waiting_s[waits])
    bound = _patience(looks, interval_s)
    silent: Mask = longest >= bound
    return silent & (looks.now - _last_mark(looks, per_member) >= bound) if silent.any() else silent


def _patience(looks: Looks, interval_s: Float64) -> Float64:
    """Return for how long a commit may stay out before something is the matter, seconds, (M,)."""
    usual = np.where(np.isfinite(interval_s), interval_s, looks.step)
    return np.maximum(np.maximum(STUCK_INTERVALS * usual, STUCK_STEPS * looks.step), STUCK_S)


def _last_mark(looks: Looks, per_member: _PerMember) -> Float64:
    """Return when each member last committed something new; long ago for one that never did."""
    moved = looks.committed_again & (looks.owner[1:] == looks.owner[:-1])
    marked = per_member.any(moved)
    last = marked.shape[0] - np.argmax(marked[::-1], axis=0)
    return np.where(marked.any(axis=0), looks.at[np.minimum(last, len(looks) - 1)], -np.inf)


def _stuck(
    looks: Looks, moved: Mask, marked: Mask, waiting_s: Float64, patience_s: Float64
) -> Mask:
    """Return the partitions that wait while their owner commits others, turn after turn."""
    stuck = np.zeros(looks.partitions, dtype=bool)
    if len(looks) <= STUCK_STEPS:
        return stuck
    owner = looks.owner[-1]
    place = np.maximum(owner, 0)
    since = np.minimum(np.searchsorted(looks.at, looks.now - waiting_s - 1e-6), len(looks) - 1)
    # Commits of each member up to each look: those since the partition began to wait.
    commits = np.concatenate((np.zeros((1, marked.shape[1])), marked.cumsum(axis=0)))
    others = commits[-1, place] - commits[since, place]
    few = 2
    waits = (owner >= 0) & (waiting_s >= patience_s[place]) & (others > few)
    if not waits.any():
        return stuck
    # What was another's until lately had its turns there.
    took = _turns(looks, moved & (looks.owner[1:] == owner))
    turns = np.concatenate((np.zeros((1, looks.partitions)), took.cumsum(axis=0)))
    for partition in np.flatnonzero(waits).tolist():
        mine = (owner == owner[partition]) & (waiting_s < waiting_s[partition])
        taken = (turns[-1] - turns[since[partition]])[mine]
        usual = np.median(taken[taken > 0]) if taken.any() else 0.0
        stuck[partition] = usual >= STUCK_TURNS
    return stuck


def _left_behind(
    looks: Looks, held: Mask, behind: Mask, *, marked: Mask, late: Mask
) -> tuple[Mask, Float64]:
    """Return the partitions that crawl or stand, and how fast they are read, records a second.

    The newest steps count in which a partition did not change hands and its owner committed
    something. Where commits are rare, fewer of them count, from all samples.
    """
    nothing = np.zeros(looks.partitions)
    first = int(np.searchsorted(looks.at, looks.now - STUCK_S + 1e-6))
    count = max(len(looks) - 1 - first, STUCK_STEPS)
    if len(looks) <= count:
        return nothing > 0, nothing
    newest = max(len(looks) - 1 - _TENURES * count, 0)
    steps = slice(0 if late.any() else newest, None)
    held, owner = held[steps], looks.owner[1:][steps]
    if late.any():
        recent = np.arange(len(owner)) >= newest
        held = held & (recent[:, None] | late[np.maximum(owner, 0)])
    tells = held & np.take_along_axis(marked[steps], np.maximum(owner, 0), axis=1)
    following = tells[::-1].cumsum(axis=0)[::-1]
    wanted = np.where(late[np.maximum(looks.owner[-1], 0)], STUCK_INTERVALS, count)
    counts = held & (following >= 1) & (following <= wanted)
    tells &= counts
    behind = behind[steps]
    seconds = looks.seconds[steps]
    span = np.maximum(seconds @ counts, 1e-9)
    read = np.where(counts, looks.advanced[steps], 0).sum(axis=0) / span
    come = np.where(counts, looks.arrived[steps], 0).sum(axis=0) / span
    enough = (tells.sum(axis=0) == wanted) & (looks.owner[-1] >= 0)
    left = enough & (behind | ~tells).all(axis=0) & (read < come)
    # Nobody is left behind whose owner never had anything at rest.
    rests_at, resting = np.nonzero(held & ~behind)
    idle = np.zeros((len(owner), len(looks.members) + 1), dtype=bool)
    idle[rests_at, owner[rests_at, resting]] = True
    left &= (tells & idle[np.arange(len(owner))[:, None], owner]).any(axis=0)
    for partition in np.flatnonzero(left).tolist():
        mine = tells[:, partition]
        beside = held[mine] & (owner[mine] == owner[mine, partition, None])
        rests = (beside & ~behind[mine]).sum(axis=0) >= AT_REST * beside.sum(axis=0)
        faster = (come > 0) & (come >= FASTER_THAN_CRAWLING * read[partition])
        others = (beside & rests & faster).sum(axis=1) >= _OTHERS
        left[partition] = others.mean() >= AT_REST
    return left, read


def _own_interval(looks: Looks, moved: Mask, due: Mask, waiting_s: Float64) -> Float64:
    """Return the usual time between commits of each partition before it began to wait; 0: none.

    A partition that is committed after so many records may use to wait for longer than others do.
    """
    marks = moved.sum(axis=0)
    seconds = (due * looks.seconds[:, None]).sum(axis=0) - waiting_s if len(looks) > 1 else 0.0
    return np.where(marks > 0, np.maximum(seconds, 0.0) / np.maximum(marks, 1), 0.0)


def _left_by_commits(free: Mask, proven: Int64, advance: Int64, rarely: Mask) -> Mask:
    """Return where a backlog was left at the end of a step, for certain: bool of shape (S, P).

    By the partition's commit in it. If it is committed `rarely`, also in the steps after a commit
    that left more than the next commit took.
    """
    left: Mask = free & (proven > 0)
    if not rarely.any() or not left.any():
        return left
    steps, columns = np.arange(len(free))[:, None], np.arange(free.shape[1])
    last = np.maximum.accumulate(np.where(free, steps, -1), axis=0)
    following = np.minimum.accumulate(np.where(free, steps, len(free))[::-1], axis=0)[::-1]
    following = np.where(following < len(free), following, last)
    between: Mask = (last >= 0) & (proven[last, columns] > advance[following, columns])
    return left | (between & rarely)


def _turns(looks: Looks, moved: Mask) -> Mask:
    """Return the steps in which a partition had its turn anew, bool of shape (S, P).

    Kafka's clients work off one fetched chunk after the other, for minutes each: the partitions
    that wait meanwhile have their turn later. So a turn begins where the owner has committed
    another partition since this one was last committed, or has read it to its end.
    """
    steps = np.arange(moved.shape[0])[:, None]
    last = np.maximum.accumulate(np.where(moved, steps, -1), axis=0)
    before = np.concatenate((np.full((1, moved.shape[1]), -1), last[:-1]))
    owner = looks.owner[-1]
    cell = np.where(moved & (owner >= 0), owner + len(looks.members) * steps, -1)
    size = len(looks.members) * len(moved)
    every = np.bincount(cell[cell >= 0], minlength=size).reshape(len(moved), -1)
    others = np.where(owner >= 0, every[:, np.maximum(owner, 0)] - moved, 0)
    between = (others > 0).cumsum(axis=0)
    columns = np.arange(moved.shape[1])
    since = np.where(before >= 0, between[np.maximum(before, 0), columns], 0)
    done = looks.position[1:] >= looks.readable_end[:-1]
    return moved & (done | (between > since) | (before < 0))


def _never_committed(looks: Looks) -> Mask:
    """Return where something came that was not committed, and no commit says where to begin.

    Consumers begin at the end then, and there is no lag: but what came since is something to
    commit. Bool of shape (L, P).
    """
    if not looks.latest:
        return np.zeros(looks.end.shape, dtype=bool)
    grown = looks.in_one_log & (np.concatenate((looks.arrived[:1] * 0, looks.arrived)) > 0)
    return (looks.committed < 0) & np.logical_or.accumulate(grown, axis=0)


def _foreign(looks: Looks) -> Mask:
    """Return the partitions that are committed beyond the end of their log, bool of shape (P,).

    At every newest look, and further than what arrives while a look reads first ends, then commits.
    """
    if len(looks) <= STUCK_STEPS:
        return np.zeros(looks.partitions, dtype=bool)
    newest = slice(-STUCK_STEPS, None)
    # Nothing is unread in an empty log.
    filled = looks.end[newest] > np.maximum(looks.begin[newest], 0)
    beyond = np.where(filled, (looks.committed - looks.end)[newest], 0)
    if not (beyond > 0).any():
        return np.zeros(looks.partitions, dtype=bool)
    meanwhile = LOOK_S * (looks.arrived / looks.seconds[:, None]).max(axis=0)
    foreign: Mask = (beyond > meanwhile).all(axis=0)
    return foreign


def _ages(looks: Looks, arrived: Float64, lag: Float64, late: Mask, team_of: Places) -> Float64:
    """Return how old a lag each member's commits explain, in seconds, float64 of shape (M,).

    A sample sees a commit at an age between 0 and the commit interval; the median is half of it.
    The lower quartile of the members' medians is used for the whole group: three quarters of a
    group are rarely behind. If samples and commits keep step, a member shows the same age at every
    sample, which is explained as well. If its ages vary by chance, the largest is. Never more than
    a step: these members commit within every step.
    """
    usable = (arrived >= _FEW) & ~late
    enough = usable.sum(axis=0) > STUCK_STEPS // 2
    if not enough.any():
        return np.full(late.size, looks.step)
    usable, per_s = usable[:, enough], np.maximum(arrived, 1.0) / looks.seconds[:, None]
    shows = np.where(usable, (lag / per_s)[:, enough], np.inf)
    ages, count = np.sort(shows, axis=0), usable.sum(axis=0)
    columns = np.arange(count.size)
    medians = ages[(count - 1) // 2, columns]
    low, usual, high = _quartiles(medians, team_of[enough], int(team_of[-1]) + 1)[:, team_of]
    auto = min(_AUTO_COMMIT_S, looks.step)
    explained = np.maximum(np.minimum(auto, 2.0 * high), 2.0 * low)
    explained = np.where(low > auto, 2.0 * np.minimum(high, _APART * low), explained)
    looked = np.minimum(count, _SAME_STEPS)
    chance = np.sqrt(ages[0] / np.median(per_s[:, enough], axis=0))
    same = ages[looked - 1, columns] <= _SAME * ages[0] + _DEVIATIONS * chance
    same &= looked >= STUCK_STEPS
    own = _OWN * ages[0]
    own = np.where(same, own, np.minimum(own, _PEERS * usual[enough]))
    own = np.where(_by_chance(shows, ages, usable), ages[count - 1, columns], own)
    explained[enough] = np.maximum(explained[enough], np.where(ages[0] > looks.step, 0.0, own))
    capped: Float64 = np.minimum(explained, looks.step)
    return capped


def _by_chance(shows: Float64, ages: Float64, usable: Mask) -> Mask:
    """Return whether members show commits of any age up to their interval, bool of shape (M,).

    So does whoever commits after so many records, and has less to read than others. The least of
    such ages is near none, their lower quartile half the median, the most twice the median, and two
    looks differ by two thirds of it. A backlog never does all that: it goes on from look to look.

    Parameters
    ----------
    shows
        Ages at each look, seconds, float64 of shape (S, M).
    ages
        The same in ascending order, the usable ones first.
    usable
        Which of them count, bool of shape (S, M).
    """
    count, columns = usable.sum(axis=0), np.arange(usable.shape[1])
    least, low, median, most = (ages[(count - 1) * part // 4, columns] for part in (0, 1, 2, 4))
    both = usable[1:] & usable[:-1]
    differ = np.abs(np.diff(np.where(usable, shows, 0.0), axis=0)) * both
    apart = differ.sum(axis=0) / np.maximum(both.sum(axis=0), 1)
    alike = (least <= 0.3 * median) & (low <= 0.75 * median) & (most <= 2.6 * median)
    chance: Mask = alike & (apart >= 0.5 * median) & (count >= STUCK_STEPS)
    return chance


def _quartiles(values: Float64, team_of: Places, teams: int) -> Float64:
    """Return the lower quartile, median and upper quartile by team, float64 of shape (3, teams).

    Infinite where a team has no value.
    """
    ordered = values[np.lexsort((values, team_of))]
    counts = np.bincount(team_of, minlength=teams)
    first, read = np.cumsum(counts) - counts, counts > 0
    place = np.array([[0.25], [0.5], [0.75]]) * (counts[read] - 1)
    below = place.astype(np.int64)
    above, share = np.minimum(below + 1, counts[read] - 1), place - below
    low, high = ordered[first[read] + below], ordered[first[read] + above]
    found = np.full((3, teams), np.inf)
    near = 1.0 - share  # from the nearer end, as numpy's own: the same to the last bit
    apart = high - low
    found[:, read] = np.where(share < near, low + apart * share, high - apart * near)
    return found


def _in_batches(looks: Looks, held: Mask) -> Mask:
    """Return the partitions to which nothing came in a step, then as much as usual, bool (P,).

    Their producers send a batch less often than looks are taken: a lag may be what has just come.
    """
    steps = len(held)
    usual = looks.arrived.sum(axis=0) / max(steps, 1)
    again = (looks.arrived[1:] >= _BATCH * usual) & (looks.arrived[:-1] == 0) & held[1:]
    enough = again.sum(axis=0) >= max(_BATCHES, _BATCH_SHARE * steps)
    batches: Mask = enough & (usual >= _FEW)
    return batches


def _counted(looks: Looks, steady: Mask, asked: Mask) -> Float64:
    """Return how many records members work off before they commit them, float64 of shape (M,).

    Where an application counts records, all that its commits bring has a common divisor: that of
    each partition, or of all together. 0 where there is none, and of those who are not `asked`.
    """
    if not asked.any():
        return np.zeros(asked.size)
    owner = looks.owner[-1]
    mine = np.flatnonzero(np.append(asked, False)[owner])
    # What was counted before partitions changed hands was committed then.
    whole = np.logical_and.accumulate(steady[::-1], axis=0)[::-1]
    brought = np.where(whole[:, owner[mine]], np.maximum(looks.advanced[:, mine], 0), 0)
    together = np.zeros((asked.size, len(brought)), np.int64)
    np.add.at(together, owner[mine], brought.T)
    each = np.bincount(owner[mine], _common_divisor(brought), asked.size)
    return np.maximum(each, _common_divisor(together.T))


def _common_divisor(brought: Int64) -> Float64:
    """Return the common divisor of what commits bring in each column; 0: there is none.

    Steps that all bring as much tell nothing: so it is where a constant rate is read.

    Parameters
    ----------
    brought
        Records by step, int64 of shape (S, N); the first commit of each column is left out, for
        nobody knows when its count began.
    """
    commits = (brought > 0).cumsum(axis=0)
    later = commits > 1
    divisor = np.gcd.reduce(np.where(later, brought, 0), axis=0)
    differ = (later & (brought != divisor)).any(axis=0)
    enough = (commits[-1] > STUCK_STEPS) & (divisor >= _FEW) & differ
    return np.where(enough, divisor, 0.0)


def _left_by_last(looks: Looks, free: Mask, proven: Int64, brought: Float64) -> Float64:
    """Return what the last commit of each partition left behind, which stands until the next: (P,).

    Without a commit, all its lag is left but what its commits usually bring (`brought`).
    """
    left: Float64 = looks.lag[-1].astype(np.float64)
    if len(looks) <= 1:
        return left
    last = free.shape[0] - 1 - np.argmax(free[::-1], axis=0)
    left = np.maximum(left - brought, 0.0)
    return np.where(free.any(axis=0), proven[last, np.arange(looks.partitions)], left)


def _backlog(looks: Looks, most: Float64, rest: Int64, explained_s: Float64) -> Float64:
    """Return the records of each partition that wait, apart from what commits explain.

    Where `most`, of shape (P,), is finite, it is known by its commits: that, or all the lag.
    """
    lag: Float64 = np.maximum(looks.lag[-1] - rest, 0).astype(np.float64)
    if len(looks) <= 1:
        return lag
    owner = looks.owner[-1]
    explains = np.where(owner >= 0, explained_s[np.maximum(owner, 0)], 0.0)
    explained = looks.arrived[-1] / looks.seconds[-1] * explains
    fresh = np.maximum(lag - explained - 3.0 * np.sqrt(explained), 0.0)
    return np.where(np.isfinite(most), np.minimum(most, lag), fresh)

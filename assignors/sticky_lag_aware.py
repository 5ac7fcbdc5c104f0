"""Sticky lag-aware assignment: move only what pays for itself in balanced lag.

Belongs here: when a plan is good enough, what it may spend, and what it says of itself. Does not:
placing orphans (`placement`), finding moves (`relief`), the bound it is held against
(`lower_bound`).
"""

from dataclasses import dataclass

import numpy as np

from assignors import flow, options
from assignors.assignment import Assignment, Spent
from assignors.filling import fill
from assignors.ledger import NO_LIMIT, Ledger, Limits
from assignors.lower_bound import load_lower_bound
from assignors.placement import place
from assignors.problem import Float64, Int32, Int64, Problem
from assignors.relief import Step, relieve
from assignors.sticky import sticky

# A plan that starts further outside the band than this many times its width is renewed: it goes on
# to a small share of the band, so that the next jitter of the lags does not undo it. Others are
# mended: back to the edge of the band, with the fewest moves.
_FAR = 3.0
_RENEWED = 0.2


def sticky_lag_aware(
    problem: Problem,
    *,
    band: float = 0.05,
    band_floor: float = 0.0,
    horizon: float = 0.0,
    max_moves: int | None = None,
    max_count_skew: int | None = None,
    max_topic_count_skew: int | None = None,
) -> Assignment:
    """Keep the current assignment, place orphans, then relieve the heaviest member step by step.

    A member's load is the predicted work of its partitions, lag + arrival rate x horizon, over its
    capacity. Loads are held against a lower bound that no assignment can beat.

    Parameters
    ----------
    problem
        P partitions, M members.
    band
        Do nothing while the heaviest load is at most this share above the lower bound.
    band_floor
        Nor while it is at most this many records above it.
    horizon
        Seconds ahead for which work is predicted; 0, or unknown rates: lag alone.
    max_moves
        Owned partitions moved at most; None: as many as pay. Orphans are placed in any case.
    max_count_skew
        How much less even than `sticky`'s the partition counts may be: 0 keeps them as even, k
        allows a spread wider by k; None: counts do not matter. Counts that are less even to begin
        with are evened out first, as far as `max_moves` allows.
    max_topic_count_skew
        How many partitions of one topic a member may get beyond its even share; None: any.

    Returns
    -------
    Assignment
        With outcome, a reason for every move, and the frontier: what each number of moves buys,
        also beyond `max_moves`. The heaviest load is never above that of the assignment it starts
        from, and never higher with a larger `max_moves`.

    Notes
    -----
    Greedy: the step with the most excess load removed for each partition moved is next (`relief`).
    Partitions without work never move for load.

    Examples
    --------
    >>> from assignors.problem import Member
    >>> members = {"a": Member(["t"], owned={"t": [0, 1, 2]}), "b": ["t"]}
    >>> problem = Problem.of({"t": 3}, members, {"t": [60, 50, 10]})
    >>> plan = sticky_lag_aware(problem)
    >>> plan.by_member()
    {'a': {'t': [1, 2]}, 'b': {'t': [0]}}
    >>> plan.frontier
    (Spent(moves=0, heaviest=120.0), Spent(moves=1, heaviest=60.0))
    >>> plan.reasons
    {0: 'relieves a, 100.0% above the lower bound'}
    """
    options.non_negative("band", band)
    options.non_negative("band_floor", band_floor)
    options.non_negative("horizon", horizon)
    options.count_or_none("max_moves", max_moves)
    options.count_or_none("max_count_skew", max_count_skew)
    options.count_or_none("max_topic_count_skew", max_topic_count_skew)
    weights = _predicted_work(problem, horizon)
    goal = _Goal.of(problem, weights, band, band_floor)
    ledger = _start(
        problem,
        weights,
        goal,
        max_moves=max_moves,
        count_skew=max_count_skew,
        topic_skew=max_topic_count_skew,
    )
    return _Plan(problem, ledger, goal, max_moves).finish()


def _predicted_work(problem: Problem, horizon: float) -> Float64:
    work = problem.weights.astype(np.float64)
    if horizon and problem.arrival_rates is not None:
        work += problem.arrival_rates * horizon
    return work


@dataclass(frozen=True)
class _Goal:
    """Loads to compare with.

    Parameters
    ----------
    bound
        No assignment has a lighter heaviest member.
    edge
        The upper end of the band.
    far, renewed
        Above the one, a plan goes on to the other.
    hot_partition
        The partition that alone makes the bound, well above what is shared by all; else None.
    """

    bound: float
    edge: float
    far: float
    renewed: float
    hot_partition: int | None

    @classmethod
    def of(cls, problem: Problem, weights: Float64, band: float, band_floor: float) -> "_Goal":
        bound = load_lower_bound(problem, weights)
        slack = max(bound.load * band, band_floor)
        return cls(
            bound=bound.load,
            edge=bound.load + slack,
            far=bound.load + slack * _FAR,
            renewed=bound.load + slack * _RENEWED,
            hot_partition=bound.partition if bound.alone > bound.shared + slack else None,
        )


def _start(
    problem: Problem,
    weights: Float64,
    goal: _Goal,
    *,
    max_moves: int | None,
    count_skew: int | None,
    topic_skew: int | None,
) -> Ledger:
    """Lay out where relief starts from: complete, and within the limits if possible."""
    limits = _limits(problem, count_skew, topic_skew)
    ledger = _keep_and_place(problem, weights, limits, even=count_skew is not None)
    if ((ledger.counts < limits.fewest) | (ledger.counts > limits.most)).any():
        even = sticky(problem).owner
        evened = int(((even != problem.owner) & (problem.owner >= 0)).sum())
        if max_moves is None or evened <= max_moves:
            ledger = Ledger(problem, even, weights, limits)
    if goal.bound:
        # What had no owner costs nothing to place better.
        for _ in relieve(ledger, problem.owner < 0, target=goal.renewed):
            pass
    return ledger


def _limits(problem: Problem, count_skew: int | None, topic_skew: int | None) -> Limits:
    none = Limits.none(problem)
    fewest, most, most_of_topic = none.fewest, none.most, none.most_of_topic
    if count_skew is not None:
        fewest, most = _even_counts(problem)
        # The spread grows by count_skew in all, whichever way.
        fewest, most = fewest - count_skew // 2, most + (count_skew - count_skew // 2)
    if topic_skew is not None:
        readers = np.maximum(problem.subscriber_counts, 1)
        most_of_topic = -(-problem.partition_counts // readers) + topic_skew
    return Limits(fewest, most, most_of_topic)


def _even_counts(problem: Problem) -> tuple[Int64, Int64]:
    """Fewest and most partitions each member has where counts are as even as can be."""
    if not problem.equal_subscriptions:
        counts = sticky(problem).counts
        return counts, counts
    share, rest = divmod(int(problem.assignable.sum()), max(problem.readers.size, 1))
    fewest = np.zeros(len(problem.members), dtype=np.int64)
    fewest[problem.readers] = share
    return fewest, fewest + (rest > 0)


def _keep_and_place(problem: Problem, weights: Float64, limits: Limits, *, even: bool) -> Ledger:
    orphans = np.flatnonzero((problem.owner < 0) & problem.assignable)
    room = _even_room(problem, orphans.size) if even else np.full(limits.most.size, NO_LIMIT)
    while_placing = Limits(limits.fewest, room, limits.most_of_topic)
    ledger = Ledger(problem, problem.owner, weights, while_placing)
    place(ledger, orphans)
    ledger.limits = limits
    return ledger


def _even_room(problem: Problem, orphans: int) -> Int64:
    """Count each member would have if orphans were placed for even counts alone."""
    if not problem.equal_subscriptions:
        return Assignment(problem, flow.solve(problem, keep_all=True)).counts
    counts = Assignment(problem, problem.owner).counts
    readers = problem.readers
    received = np.bincount(fill(counts[readers], orphans), minlength=readers.size)
    counts[readers] += received
    return counts


class _Plan:
    """The path of steps from where planning starts, and how far along it the budget goes."""

    def __init__(
        self, problem: Problem, ledger: Ledger, goal: _Goal, max_moves: int | None
    ) -> None:
        self.problem, self.ledger, self.goal = problem, ledger, goal
        self.budget = NO_LIMIT if max_moves is None else max_moves
        self.start: Int32 = ledger.owner.copy()
        self.last_owner = self.start.copy()
        self.steps: list[Step] = []
        self.points = [Spent(self._moved(self.start), self._heaviest())]

    def finish(self) -> Assignment:
        """Walk the path, and return the assignment where it is best within the budget."""
        goal, heaviest = self.goal, self.points[0].heaviest
        if goal.bound and heaviest > goal.edge:
            self._walk(goal.edge)
        if goal.bound and heaviest > goal.far and self.points[-1].heaviest <= goal.edge:
            self._walk(goal.renewed)
        affordable = next(
            (i for i, point in enumerate(self.points) if point.moves > self.budget),
            len(self.points),
        )
        within = self.points[: max(affordable, 1)]
        best = min(range(len(within)), key=lambda i: (within[i].heaviest, i))
        owner = self.start.copy()
        reasons = self._reasons_at_start()
        for step in self.steps[:best]:
            for partition, taker in step.takers():
                owner[partition] = taker
                if self.problem.owner[partition] >= 0:
                    reasons[partition] = self._reason(step, partition)
        cut_short = affordable < len(self.points)
        outcome = self._outcome(within[best], best, cut_short=cut_short)
        return Assignment(self.problem, owner, outcome, reasons, self._frontier())

    def _walk(self, target: float) -> None:
        everything = np.ones(self.problem.partition_total, dtype=bool)
        moved = self.points[-1].moves
        for step in relieve(self.ledger, everything, target=target):
            for partition, taker in step.takers():
                origin = self.problem.owner[partition]
                if origin >= 0:
                    moved += int(taker != origin) - int(self.last_owner[partition] != origin)
                self.last_owner[partition] = taker
            self.steps.append(step)
            self.points.append(Spent(moved, self._heaviest()))

    def _heaviest(self) -> float:
        return float(self.ledger.loads.max(initial=0.0))

    def _moved(self, owner: Int32) -> int:
        return int(((owner != self.problem.owner) & (self.problem.owner >= 0)).sum())

    def _frontier(self) -> tuple[Spent, ...]:
        """Keep the points that buy something: lighter than every point with as few moves."""
        kept: list[Spent] = []
        for point in sorted(self.points):
            if not kept or point.heaviest < kept[-1].heaviest:
                kept.append(point)
        return tuple(kept)

    def _reasons_at_start(self) -> dict[int, str]:
        owner = self.problem.owner
        moved = np.flatnonzero((self.start != owner) & (owner >= 0))
        reasons = dict.fromkeys(moved.tolist(), "evens out partition counts (max_count_skew)")
        for partition in np.flatnonzero((owner < 0) & (self.start >= 0)).tolist():
            reasons[partition] = "had no owner; goes where it burdens the group least"
        return reasons

    def _reason(self, step: Step, partition: int) -> str:
        members = self.problem.members
        if partition == step.partitions[0]:
            above = step.load / self.goal.bound - 1
            return f"relieves {members[step.giver]}, {above:.1%} above the lower bound"
        other = "{}-{}".format(*self.problem.partition_name(step.partitions[0]))
        return f"makes room on {members[step.taker]} for {other}"

    def _outcome(self, end: Spent, steps: int, *, cut_short: bool) -> str:
        goal = self.goal
        what = "no change" if not (end.moves or steps) else f"{end.moves} moves"
        if not goal.bound:
            return f"{what}: there is no lag to balance"
        above = f"the heaviest member is {end.heaviest / goal.bound - 1:.1%} above the lower bound"
        if cut_short:
            return f"{what}: the budget of {self.budget} moves is spent; {above}"
        if goal.hot_partition is not None:
            name = "{}-{}".format(*self.problem.partition_name(goal.hot_partition))
            if end.heaviest <= goal.edge:
                return f"{what}: {name} alone is the bound, no assignment can help: repartition it"
        if end.heaviest <= goal.edge:
            return f"{what}: within the band, {above}"
        return f"{what}: no further move or swap relieves the heaviest member; {above}"

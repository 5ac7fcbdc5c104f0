"""Costs of records if consumers do not report them, inferred from reading speeds.

Belongs here: distinguishing slow consumers from expensive partitions, from the reading speed while
records wait. Belongs elsewhere: finding consumers with a backlog (`commits`), and costs from
reported work (`costs`).

A consumer at its limit spends all its time on its records. Let c be the costs of the partitions'
records, and v the speed of the consumer in cost-weighted records a second. If the consumer reads n
records of each partition in a stretch of t seconds, then sum(c n) = v t. Each stretch gives such an
equation. The equations can be solved because they differ: at times a client reads more of one
partition than of another, and plans move partitions. The priors are those of `costs`: most
deviations are small, and a few are large.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.capacities import intervals
from fairlead.domain.analysis.commits import Commits
from fairlead.domain.analysis.costs import (
    COST,
    FREEDOM,
    NEAR,
    ROUNDS,
    SPEED,
    TOPIC,
    Costs,
    weighted_median,
)
from fairlead.domain.analysis.sample_series import Float64, Places, SampleSeries
from fairlead.domain.analysis.thresholds import AUTO_COMMIT_S

#: Seconds. Minimum length of a stretch: in a shorter one, the exact times of commits would matter.
STRETCH_S: Final = 180.0
#: Maximum number of equations. Each consumer gets the same number, at least one, from its newest
#: stretches.
_MOST: Final = 300
#: Relative error of an equation, without the error from unknown commit times (`AUTO_COMMIT_S`).
_OFF: Final = 0.03
#: Prior standard deviation of the logarithm of the usual speed: large, because nothing is known
#: about this speed.
_ANY: Final = 10.0
#: Maximum change of a logarithm in an iteration, so that the iterations converge.
_STEP: Final = 1.0


def inferred_costs(
    series: SampleSeries,
    commits: Commits,
    topic_of: npt.NDArray[np.integer],
    rates: Float64,
    before: Costs,
) -> Costs:
    """Return the costs of P partitions; the parameters are those of `costs.reported_costs`.

    The logarithms of costs are found by Newton's method. Each iteration reweights the priors to
    approximate Student's t distributions. Time per iteration: O(E² (P + M)), for E equations and
    M consumers.
    """
    member, seconds, records = _stretches(series, commits)
    if not member.size:
        return before
    read = np.flatnonzero(records.any(axis=0))
    members, member = np.unique(member, return_inverse=True)
    topics, topic = np.unique(topic_of[read], return_inverse=True)
    records = records[:, read]
    # The unknowns are the deviations of partitions, topics and consumers, and the usual speed.
    columns = read.size + np.arange(topics.size + members.size)
    kind_of = (read.size, topics.size, members.size, 1)
    spread = np.repeat((COST, TOPIC, SPEED, _ANY), kind_of) ** 2
    noise, wider = _OFF**2 + (AUTO_COMMIT_S / seconds) ** 2, 1.0
    own = np.zeros((read.size, spread.size))
    own[np.arange(read.size), np.arange(read.size)] = 1.0
    own[np.arange(read.size), columns[topic]] = 1.0
    speed = -np.hstack((np.eye(members.size)[member], np.ones((member.size, 1))))
    # Each remembered cost adds an equation.
    settled = np.isfinite(before.deviation[read]) & (before.at[read] < series.at[0])
    known, error = np.log(before.estimate[read[settled]]), before.deviation[read[settled]]
    solution = np.zeros(spread.size)
    solution[: read.size][settled] = known
    solution[-1] = np.median(np.log(records.sum(axis=1) / seconds))
    for _ in range(ROUNDS):
        last, free = solution, spread + solution**2 / FREEDOM
        work = records * np.exp(own @ solution)
        shares = work / work.sum(axis=1)[:, None]
        kinds = np.zeros((member.size, topics.size))
        np.add.at(kinds.T, topic, shares.T)
        matrix = np.vstack((np.hstack((shares, kinds, speed)), own[settled]))
        off = np.log(work.sum(axis=1) / seconds) + speed @ solution[read.size + topics.size :]
        apart = own[settled] @ solution - known
        wider = max(1.0, float(np.mean(off**2 / noise)))
        variance = np.concatenate((noise * wider, error**2 + apart**2 / FREEDOM))
        square = (matrix * free) @ matrix.T + np.diag(variance)
        side = matrix @ solution - np.concatenate((off, apart))
        step = free * (matrix.T @ np.linalg.solve(square, side)) - solution
        solution = solution + np.clip(step, -_STEP, _STEP)
        if np.abs(solution - last).max() < NEAR:
            break
    # Divide by the usual cost, a median over all partitions, including those without an equation.
    weights = np.maximum(rates, 1e-9) / np.maximum(rates, 1e-9).sum()
    logarithm, usual = own @ solution, np.zeros(rates.size)
    usual[read] = logarithm
    logarithm -= weighted_median(usual, weights)
    own -= weights[read] @ own
    # Compute the precision of costs as if nothing were known about the speeds of consumers.
    free[read.size + topics.size :] = _ANY**2
    square = (matrix * free) @ matrix.T + np.diag(variance)
    gain = np.linalg.solve(square, matrix * free)
    variance = own**2 @ free - ((own * free) @ matrix.T * (own @ gain.T)).sum(axis=1)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return before.with_estimates(read, logarithm, deviation, series)


def _stretches(series: SampleSeries, commits: Commits) -> tuple[Places, Float64, Float64]:
    """Return the stretches of time in which consumers were at their limit.

    For each stretch: the consumer, intp of shape (E,); its seconds, float64 of shape (E,); and the
    records read of each partition, float64 of shape (E, P).
    """
    total = np.vstack((np.zeros((1, series.partitions)), commits.taken.cumsum(axis=0)))
    members = np.flatnonzero((commits.marked & commits.busy).any(axis=0)).tolist()
    member_of: list[int] = []
    seconds_of, records_of = [np.zeros(0)], [np.zeros((0, series.partitions))]
    for member in members:
        bounds = _at_limit(series, commits, member)[-max(_MOST // len(members), 1) :]
        first, last = np.array(bounds, np.intp).reshape(-1, 2).T
        member_of += [member] * len(bounds)
        seconds_of.append(series.at[last] - series.at[first])
        records_of.append(np.where(series.owner[last] == member, total[last] - total[first], 0.0))
    records = np.concatenate(records_of)
    read = records.any(axis=1)
    return np.array(member_of, np.intp)[read], np.concatenate(seconds_of)[read], records[read]


def _at_limit(series: SampleSeries, commits: Commits, member: int) -> list[tuple[int, int]]:
    """Return the first and the last sample of each stretch in which a member was at its limit."""
    firsts, lasts, limited = intervals(commits, member, by_commit=True)
    stretches, start, end = [], -1, -1
    for first, last in zip(firsts[limited].tolist(), lasts[limited].tolist(), strict=True):
        start = first if start < 0 or first != end else start
        end = last
        if series.at[end] - series.at[start] >= STRETCH_S:
            stretches.append((start, end))
            start = -1
    return stretches

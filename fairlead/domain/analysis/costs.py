"""Costs: processing time of a partition's records, as multiples of the group's usual time.

Belongs here: distinguishing slow consumers from expensive partitions by the seconds per record that
consumers report. Belongs elsewhere: measuring the seconds (`reported_work`), and speeds
(`capacities`).

The model: the logarithm of the seconds per record is the group's usual value plus three deviations,
one each for the topic, the partition and the consumer. Most deviations are small and a few are
large, so their priors are Student's t distributions. The model is solved by iteratively reweighted
least squares: each prior is a normal distribution whose variance grows with the deviation found in
the last iteration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from assignors.problem import Problem
from fairlead.domain.analysis.reported_work import MeasuredWork
from fairlead.domain.analysis.sample_series import Float64, Mask, Places, SampleSeries
from fairlead.domain.analysis.thresholds import NINE_IN_TEN, WEEK_S

#: Three numbers by topic and partition, as returned by `Costs.intervals` or by `Costs.rows`.
CostRows = Mapping[str, Mapping[str, Sequence[float]]]

#: A cost is used in decisions only if it differs from the usual cost by at least this factor,
#: because a smaller difference changes no plan.
DEVIATES: Final = 1.5
#: A cost is used in decisions only if it differs from 1 by at least this many standard errors.
SURE: Final = 3.0
#: A cost is known if the standard deviation of its logarithm is at most this: a 90 % interval of
#: ±25 %.
KNOWN: Final = 0.135
#: Prior standard deviation of the logarithm of a partition's cost, compared with its topic; a
#: larger value is used if most partitions deviate by more.
COST: Final = 0.25
#: Prior standard deviation of the logarithm of a topic's cost.
TOPIC: Final = 0.5
#: Prior standard deviation, over consumers, of the logarithm of seconds per record. It is small,
#: since most consumers of a group run on equal machines.
SPEED: Final = 0.12
#: Degrees of freedom of the priors: about one deviation in twelve exceeds four standard deviations.
FREEDOM: Final = 1.5
#: Ratio of the standard deviation of a normal distribution to its median absolute deviation.
MEDIAN_TO_DEVIATION: Final = 1.4826
#: Bounds of a cost and of its deviation. A remembered cost outside these bounds is invalid.
_LEAST: Final = 1e-6
_MOST: Final = 1e6
#: Maximum number of iterations.
ROUNDS: Final = 30
#: Iterations end when no logarithm changes by more than this.
NEAR: Final = 1e-3
#: Tolerance of `weighted_median` for rounding errors, as a share of the total weight. Without
#: it, rounding could select the upper of two values in the middle.
_EQUAL: Final = 0.003


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of P partitions, as multiples of the usual cost, float64 of shape (P,)."""

    #: The cost that decisions use: 1, unless the estimate surely differs from 1 (`DEVIATES`,
    #: `SURE`).
    value: Float64
    #: The most likely cost, and the standard deviation of its logarithm, which is infinite if the
    #: cost is unknown.
    estimate: Float64
    deviation: Float64
    #: Time of the newest sample that the estimate uses, seconds since the epoch.
    at: Float64

    @classmethod
    def usual(cls, partitions: int) -> "Costs":
        """Return the costs of partitions whose costs are unknown: decisions use the cost 1."""
        usual = np.ones(partitions)
        return cls(usual, usual, np.full(partitions, np.inf), np.zeros(partitions))

    @classmethod
    def of(cls, estimate: Float64, deviation: Float64, at: Float64) -> "Costs":
        """Return costs from estimates; `value` is 1 unless an estimate surely differs from 1."""
        apart = np.abs(np.log(estimate))
        surely = (apart > np.log(DEVIATES)) & (apart > SURE * deviation)
        return cls(np.where(surely, estimate, 1.0), estimate, deviation, at)

    def with_estimates(
        self,
        partitions: Places,
        logarithm: Float64,
        deviation: Float64,
        series: SampleSeries,
        *,
        reported: bool = False,
    ) -> "Costs":
        """Return these remembered costs, updated by new estimates for some partitions.

        New estimates are computed with the help of remembered costs. So a remembered cost that is
        older than all samples of `series` is kept, unless the new estimate contradicts it. In all
        other cases, the new estimate replaces the cost if the cost is unknown, if the estimate is
        precise enough, or if the estimate is from reports and surely contradicts the cost.
        """
        old = self.deviation[partitions]
        apart = np.abs(logarithm - np.log(self.estimate[partitions]))
        settled = (self.at[partitions] < series.at[0]) & (apart <= SURE * old)
        better = ~np.isfinite(old) | (~settled & (deviation <= np.maximum(old, KNOWN)))
        better |= reported & (apart > SURE * np.hypot(np.minimum(old, _MOST), deviation))
        chosen = partitions[better]
        estimate, error, at = self.estimate.copy(), self.deviation.copy(), self.at.copy()
        estimate[chosen] = np.exp(logarithm[better]).clip(_LEAST, _MOST)
        error[chosen] = deviation[better].clip(_LEAST, _MOST)
        at[chosen] = series.now
        return Costs.of(estimate, error, at)

    def known(self) -> Float64:
        """Return the 90 % interval of each cost: lower end, estimate and upper end, (P, 3).

        A row is NaN if the cost is not known precisely enough.
        """
        width = np.exp(NINE_IN_TEN * self.deviation)
        rows = np.stack((self.estimate / width, self.estimate, self.estimate * width), axis=1)
        rows[self.deviation > KNOWN] = np.nan
        return rows

    def intervals(self, problem: Problem) -> CostRows:
        """Return the 90 % interval of each known cost, by topic and partition (see `known`)."""
        return _by_topic(problem, self.deviation <= KNOWN, self.known())

    def rows(self, problem: Problem) -> CostRows:
        """Return costs as rows, to be remembered and read by `of_rows` in the next analysis.

        A row has the estimate, its deviation and its time. There are rows only for costs that are
        known (see `known`), or that surely differ from the usual cost.
        """
        values = np.stack((self.estimate, self.deviation, self.at), axis=1)
        return _by_topic(problem, (self.deviation <= KNOWN) | (self.value != 1.0), values)

    @classmethod
    def of_rows(cls, rows: CostRows, problem: Problem, now: float) -> "Costs":
        """Return remembered costs, except costs of deleted partitions and costs older than a week.

        Raises `ValueError`, `TypeError` or `AttributeError` if a value is not a cost.
        """
        usual = cls.usual(problem.partition_total)
        estimate, deviation, at = usual.estimate.copy(), usual.deviation.copy(), usual.at.copy()
        places = {topic: number for number, topic in enumerate(problem.topics)}
        for topic, partitions in rows.items():
            first, end = problem.topic_offsets[places[topic] :][:2] if topic in places else (0, 0)
            for partition, (cost, error, seen) in partitions.items():
                if not (_LEAST <= cost <= _MOST and _LEAST <= error <= _MOST):
                    raise ValueError(f"costs.{topic}.{partition}: out of range: {cost}, {error}")
                if 0 <= int(partition) < end - first and now - WEEK_S <= seen:
                    place = first + int(partition)
                    estimate[place], deviation[place], at[place] = cost, error, min(seen, now)
        return cls.of(estimate, deviation, at)

    @property
    def equal(self) -> bool:
        """Whether decisions use the cost 1 for all partitions."""
        return bool((self.value == 1.0).all())


def _by_topic(problem: Problem, chosen: Mask, values: Float64) -> CostRows:
    """Return the chosen rows of `values` (P, 3) by topic and partition, rounded."""
    rows: dict[str, dict[str, list[float]]] = {}
    for place in np.flatnonzero(chosen).tolist():
        topic, partition = problem.partition_name(place)
        digits = [float(f"{value:.5g}") for value in values[place, :2].tolist()]
        rows.setdefault(topic, {})[str(partition)] = [*digits, round(float(values[place, 2]), 4)]
    return rows


def reported_costs(
    work: MeasuredWork,
    series: SampleSeries,
    topic_of: npt.NDArray[np.integer],
    rates: Float64,
    before: Costs,
) -> Costs:
    """Return the costs of P partitions, estimated from reported work.

    Each iteration solves one linear system for the deviations of topics and consumers, after the
    deviations of partitions were eliminated. Time: O(P (T + M)²) for T topics and M consumers.

    Parameters
    ----------
    work, series
        The reported work, and the samples with the reports. The mean seconds per record of at least
        one partition must be known.
    topic_of
        Topic of each partition, an integer of shape (P,).
    rates
        Arrivals in records a second, float64 of shape (P,). The usual cost is a median with these
        weights.
    before
        Costs remembered from earlier analyses.
    """
    known = work.known
    read, pair = np.unique(work.partition[known], return_inverse=True)
    topics, topic = np.unique(topic_of[read], return_inverse=True)
    members, member = np.unique(work.member[known], return_inverse=True)
    # Seconds per offset: arrival rates count offsets, too.
    logarithm = np.log(work.mean_s[known] / work.offsets_per_record[known])
    error = work.error[known]
    per_s = np.maximum(rates[read], 1e-9)
    logarithm -= weighted_median(logarithm, per_s[pair])
    # A remembered cost is used like a report from a consumer of the usual speed.
    settled = np.flatnonzero(np.isfinite(before.deviation[read]) & (before.at[read] < series.at[0]))
    pair = np.concatenate((pair, settled))
    member = np.concatenate((member, np.full(settled.size, members.size)))
    logarithm = np.concatenate((logarithm, np.log(before.estimate[read[settled]])))
    weight = np.concatenate((error, before.deviation[read[settled]])) ** -2.0
    # The unknowns are the deviations of topics, then those of consumers.
    kinds, count = topics.size, topics.size + members.size + 1
    columns = np.stack((topic[pair], kinds + member))
    sums, square = np.zeros((read.size, count)), np.zeros((count, count))
    np.add.at(sums, (pair, columns), weight)
    np.add.at(square, (columns[:, None], columns[None]), weight)
    total = np.bincount(pair, weight)
    spread = np.repeat((TOPIC, SPEED, NEAR), (kinds, members.size, 1)) ** 2
    data = np.bincount(pair, weight * logarithm)
    side = np.bincount(columns.ravel(), np.tile(weight * logarithm, 2), count)
    own, common = np.zeros(read.size), np.zeros(count)
    for _ in range(ROUNDS):
        last, prior = common, 1.0 / (spread + common**2 / FREEDOM)
        # `share` is the variance of a partition's own deviation, given its prior and the reports
        # about it.
        wide = max(COST, MEDIAN_TO_DEVIATION * float(np.median(np.abs(own))))
        share = 1.0 / (total + 1.0 / (wide**2 + own**2 / FREEDOM))
        reduced = square - sums.T @ (sums * share[:, None])
        common = np.linalg.solve(reduced + np.diag(prior), side - sums.T @ (share * data))
        own = share * (data - sums @ common)
        if np.abs(common - last).max() < NEAR:
            break
    speed = common[kinds:]
    relative = (data - np.bincount(pair, weight * speed[member])) / total
    relative -= weighted_median(relative, per_s)
    # Compute how precisely reports show the speed of each consumer, relative to the usual speed.
    # The prior of speeds is left out.
    free = np.repeat((False, True, False), (kinds, members.size, 1))
    covariance = np.linalg.inv(reduced + np.diag(np.where(free, NEAR, prior)))
    covariance = covariance[kinds:, kinds:]
    work_of = np.bincount(member, per_s[pair] * (member < members.size), members.size + 1)
    usual = covariance @ (work_of / work_of.sum())
    variance = covariance.diagonal() - 2.0 * usual + float(usual @ (work_of / work_of.sum()))
    variance[-1] = 0.0
    deviation = np.sqrt((1.0 + np.bincount(pair, weight * variance[member])) / total)
    return before.with_estimates(read, relative, deviation, series, reported=True)


def weighted_median(values: Float64, weights: Float64) -> float:
    """Return the weighted median: the values up to this value have half of the total weight."""
    order = values.argsort(kind="stable")
    place = weights[order].cumsum().searchsorted((0.5 - _EQUAL) * weights.sum())
    return float(values[order][min(int(place), values.size - 1)])

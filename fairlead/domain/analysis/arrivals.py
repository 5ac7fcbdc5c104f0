"""Arrival rates of partitions.

Belongs here: arrival rates and their uncertainty, from end offsets. Belongs elsewhere: capacities
of members (`capacities`).

The rate of a partition is a mean over the most recent time in which the rate seems constant, at
most an hour. This time is found by going back step by step (a step is the time between two
samples), until the earlier arrivals differ from the later ones by more than chance (Lepski's method
for choosing a bandwidth). The number of arrivals in a step is assumed to have the variance of
Poisson's law, multiplied by the partition's measured scatter. The scatter exceeds 1 if, for
example, producers send batches.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.sample_series import NONE, Float64, Mask, SampleSeries
from fairlead.domain.analysis.thresholds import DEVIATIONS

#: Boundaries of the periods whose rates are compared, in steps before the last sample.
STRETCHES: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
#: Median of the square of a standard normal variable.
_MEDIAN_CHI2: Final = 0.4549


@dataclass(frozen=True, eq=False)
class Rates:
    """Arrival rates of P partitions, arrays of shape (P,)."""

    #: Mean records a second, and the standard deviation of this mean, float64; both are 0 if
    #: unknown.
    per_s: Float64
    deviation: Float64
    #: Whether the arrivals of at least one step are known, bool.
    known: Mask
    #: Number of seconds over which the rate was averaged, float64.
    seconds: Float64


def arrival_rates(series: SampleSeries) -> Rates:
    """Estimate the present arrival rate of each partition, from samples of about the last hour.

    If a rate rises or falls by half, the change is noticed after about the time in which 64 records
    arrived at the earlier rate.

    Examples
    --------
    >>> at = np.arange(0.0, 660.0, 60.0)
    >>> end = np.where(at < 400, at, 400 + 10 * (at - 400)).astype(np.int64)[:, None]
    >>> none, owner = np.full((11, 1), -1), np.zeros((11, 1), np.int32)
    >>> rates = arrival_rates(SampleSeries(at, none, end, none, ("a",), owner))
    >>> rates.per_s.tolist(), rates.seconds.tolist()
    ([10.0], [180.0])
    """
    partitions, steps = series.partitions, len(series) - 1
    count, span = np.zeros(partitions), np.zeros(partitions)
    known = series.in_one_log
    if steps < 1:
        return Rates(count, count, np.zeros(partitions, np.bool_), span)
    scatter = _scatter(series)
    growing = np.ones(partitions, dtype=bool)
    stretches = np.array([0, *[length for length in STRETCHES if length < steps], steps])
    starts, middles = steps - stretches[1:], steps - stretches[:-1]
    rings = np.where(known[starts], series.end[middles] - series.end[starts], 0)
    ring_spans = series.at[middles] - series.at[starts]
    for place, (ring, ring_span) in enumerate(zip(rings, ring_spans.tolist(), strict=True)):
        growing &= known[starts[place]]
        if place:
            growing &= ~_differs(count, span, ring, ring_span, scatter)
        count = np.where(growing, count + ring, count)
        span = np.where(growing, span + ring_span, span)
        if not growing.any():
            break
    counted = span > 0
    lasted = np.where(counted, span, 1.0)
    return Rates(
        per_s=count / lasted,
        deviation=np.where(counted, np.sqrt(scatter * np.maximum(count, 1.0)) / lasted, 0.0),
        known=counted,
        seconds=span,
    )


def with_common_change(rates: Rates, series: SampleSeries, kind: npt.NDArray[np.integer]) -> Rates:
    """Return rates, corrected for slow changes that all partitions of a topic share.

    A change with the time of day, for example, is too small to be noticed in a single partition,
    but not in the sum over a topic. Only partitions whose own rate seems constant are corrected.
    `kind`: topic of each partition, shape (P,).
    """
    steady = rates.known & (rates.seconds >= series.now - series.at[0])
    if not steady.any():
        return rates
    sums = np.zeros((len(series), int(kind.max()) + 1), np.int64)
    np.add.at(sums.T, kind[steady], (series.end - series.end[0])[:, steady].T)
    none = np.full_like(sums, NONE)
    common = arrival_rates(SampleSeries(series.at, none, sums, none, (), none.astype(np.int32)))
    usual = sums[-1] / (series.now - series.at[0])
    factor = np.where(usual > 0, common.per_s / np.maximum(usual, 1e-9), 1.0)
    return replace(rates, per_s=np.where(steady, rates.per_s * factor[kind], rates.per_s))


def _differs(
    count: Float64, span: Float64, ring: Float64, ring_span: float, scatter: Float64
) -> Mask:
    """Return whether earlier and later arrival rates differ by more than chance.

    Two consecutive periods are compared: `ring` records arrived in `ring_span` seconds, and then
    `count` records in `span` seconds.
    """
    inner = np.maximum(span, 1e-9)
    difference = np.abs(count / inner - ring / ring_span)
    # The variance if both rates are equal. One record is added, because otherwise the variance
    # could be 0.
    together = (count + ring + 1.0) / (inner + ring_span)
    variance = scatter * together * (1.0 / inner + 1.0 / ring_span)
    return difference > DEVIATIONS * np.sqrt(variance)


def _scatter(series: SampleSeries) -> Float64:
    """Return the variance of arrivals as a multiple of that of Poisson's law, at least 1, (P,).

    Two estimates are made from the changes of the rate from step to step, and the lower one is
    used. The first is the median of the squared changes, which a few large changes do not affect.
    The second uses products of two consecutive changes. A change by chance is usually followed by
    a change in the opposite direction, which gives a negative product.
    """
    ones = np.ones(series.partitions)
    least = 8
    if len(series) <= least:
        return ones
    per_s = series.arrived / series.seconds[:, None]
    change = np.diff(per_s, axis=0)
    spans = 1.0 / series.seconds[1:] + 1.0 / series.seconds[:-1]
    expected = (per_s[1:] + per_s[:-1]) / 2 * spans[:, None]
    usable = expected > 0
    ratio = np.divide(change**2, expected, out=np.full_like(change, np.inf), where=usable)
    # Ignore steps without arrivals, because producers may send one batch in ten steps.
    middle = np.maximum(usable.sum(axis=0) - 1, 0) // 2
    by_size = np.sort(ratio, axis=0)[middle, np.arange(series.partitions)] / _MEDIAN_CHI2
    undone = -2.0 * (change[1:] * change[:-1]).sum(axis=0)
    by_return = undone / np.maximum(expected[1:].sum(axis=0), 1e-12)
    scatter: Float64 = np.maximum(np.minimum(by_size, by_return), 1.0)
    return scatter

"""Costs of records in a group whose consumers all report their work.

Belongs here: distinguishing slow consumers from expensive partitions. Does not: reports
(`reported_work`), nor groups in which only some consumers report (`cost_solver`).

The logarithm of the seconds per record is modelled as a usual value plus deviations of the topic,
the partition and the consumer. Most deviations are small and a few are large: the priors are those
of `cost_solver`. If each partition has one consumer, the most likely deviations are weighted means,
computed alternately for topics and consumers.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.judgement.cost_equations import Costs
from fairlead.domain.judgement.cost_solver import (
    COST,
    DEVIATES,
    FREEDOM,
    SPEED,
    SURE,
    TOPIC,
    weighted_median,
)
from fairlead.domain.judgement.looks import Float64
from fairlead.domain.judgement.reported_work import MeasuredWork

Places = npt.NDArray[np.intp]

_ROUNDS: Final = 30
_NEAR: Final = 1e-3


def reported_costs(
    work: MeasuredWork, topic_of: npt.NDArray[np.integer], rates: Float64
) -> Costs | None:
    """Return the costs of P partitions; None if several consumers have read the same partition.

    Parameters
    ----------
    work
        Reported work.
    topic_of
        Topic of each partition, an integer of shape (P,).
    rates
        Arrivals in records a second, float64 of shape (P,); weights of the usual cost.
    """
    partition, member = work.partition[work.known], work.member[work.known]
    costs = Costs(np.ones(topic_of.size), np.ones(topic_of.size), np.full(topic_of.size, np.inf))
    if np.unique(partition).size < partition.size:
        return None
    if not partition.size:
        return costs
    logarithm, error = np.log(work.mean_s[work.known]), work.error[work.known]
    weight = np.maximum(rates[partition], 1e-9)
    usual = weighted_median(logarithm, weight)
    topic = topic_of[partition].astype(np.intp)
    of_topic, speed = np.zeros(int(topic.max()) + 1), np.zeros(int(member.max()) + 1)
    for _ in range(_ROUNDS):
        own = logarithm - usual - of_topic[topic] - speed[member]
        counted = 1.0 / (error**2 + COST**2 + own**2 / FREEDOM)
        before = speed
        of_topic, _ = _means(own + of_topic[topic], counted, topic, of_topic, TOPIC)
        own = logarithm - usual - of_topic[topic] - speed[member]
        speed, variance = _means(own + speed[member], counted, member, speed, SPEED)
        if np.abs(speed - before).max() < _NEAR:
            break
    found = logarithm - speed[member]
    found -= weighted_median(found, weight)
    deviation = np.sqrt(error**2 + variance[member])
    told = (np.abs(found) > np.log(DEVIATES)) & (np.abs(found) > SURE * deviation)
    costs.value[partition] = np.where(told, np.exp(found), 1.0)
    costs.estimate[partition], costs.deviation[partition] = np.exp(found), deviation
    return costs


def _means(
    values: Float64, weights: Float64, kind: Places, before: Float64, spread: float
) -> tuple[Float64, Float64]:
    """Return the most likely deviation of each topic or consumer, and its variance without a prior.

    Parameters
    ----------
    values, weights, kind
        Deviation, weight, and topic or consumer of K pairs.
    before
        The deviations from the last round: the prior is weaker for large ones.
    spread
        Standard deviation of the prior.
    """
    total = np.bincount(kind, weights, before.size)
    prior = 1.0 / (spread**2 + before**2 / FREEDOM)
    variance = 1.0 / np.maximum(total, 1e-9)
    return np.bincount(kind, weights * values, before.size) / (total + prior), variance

"""Second step of the analysis: estimates for partitions and consumers, from observations.

Belongs here: combining arrival rates, costs, speeds and backlogs into one result. Belongs
elsewhere: reading samples (`read`), each of the estimates (`arrivals`, `costs`, `capacities`), and
the forecast (`forecast`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fairlead.domain.analysis.arrivals import Rates, with_common_change
from fairlead.domain.analysis.capacities import (
    Capacity,
    Speeds,
    observed_capacities,
    remembered,
    speeds,
)
from fairlead.domain.analysis.commits import Commits
from fairlead.domain.analysis.costs import Costs, reported_costs
from fairlead.domain.analysis.inferred_costs import inferred_costs
from fairlead.domain.analysis.peers import Peers
from fairlead.domain.analysis.per_member import of_owner, sum_by_owner
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.read import Observations
from fairlead.domain.analysis.sample_series import Float64, Mask


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of the present rates, costs, speeds and backlogs of P partitions and M members."""

    #: Arrival rates, records a second. A new partition gets the mean of its topic.
    rates: Rates
    #: Cost of each partition's records, as a multiple of the group's usual cost.
    costs: Costs
    #: Findings from commits; `consumed` is weighted by costs.
    commits: Commits
    #: Member name to capacity, in cost-weighted records a second, to be remembered for the next
    #: analysis.
    known: Mapping[str, Capacity]
    #: Assumed capacity of each member, in cost-weighted records a second.
    speeds: Speeds
    #: Records that wait to be read, float64 of shape (P,); 0 for partitions that are `held` or that
    #: no member subscribes to.
    backlog: Float64
    #: Members that commit nothing, or own a partition whose commit is beyond the end of its log;
    #: bool of shape (M,).
    silent: Mask
    #: Partitions that `sticky-lag-aware` must not move, bool of shape (P,): stuck partitions,
    #: throttled partitions, and those of silent members.
    held: Mask
    peers: Peers


def estimate(question: Question, observations: Observations) -> Estimates:
    """Estimate rates, costs, speeds and backlogs from observations and remembered values."""
    problem = question.problem
    unsubscribed = ~problem.assignable & problem.assignable.any()
    rates = _rates(question, observations, unsubscribed)
    commits = observations.commits
    series, work, topic_of = observations.recent, observations.work, problem.topic_of
    before = Costs.of_rows(question.costs, problem, series.now)
    if work is not None and work.known.any():
        costs = reported_costs(work, series, topic_of, rates.per_s, before)
    else:
        costs = inferred_costs(series, commits, topic_of, rates.per_s, before)
    if not costs.equal:
        commits = commits.in_work(costs.value)
    silent = commits.silent[: len(problem.members)]
    held = commits.stuck | commits.throttled | of_owner(silent, problem.owner, none=False)
    peers = Peers.of(problem)
    known = _capacities(question, observations, commits, costs)
    return Estimates(
        rates=rates,
        costs=costs,
        commits=commits,
        known=known,
        speeds=_speeds(question, known, commits, rates.per_s * costs.value, peers),
        backlog=np.where(held | unsubscribed, 0.0, commits.backlog),
        silent=silent,
        held=held,
        peers=peers,
    )


def _rates(question: Question, observations: Observations, unsubscribed: Mask) -> Rates:
    """Return arrival rates. A partition without known arrivals gets the mean rate of its topic.

    The rate of a topic without a subscriber is set to 0, unless no topic has a subscriber.
    """
    rates, topic_of = observations.rates, question.problem.topic_of
    if observations.work is not None:
        rates = with_common_change(rates, observations.recent, topic_of)
    per_s = np.where(unsubscribed, 0.0, rates.per_s)
    if rates.known.any() and not rates.known.all():
        topics, known = len(question.problem.topics), rates.known
        total = np.bincount(topic_of[known], per_s[known], topics)
        counted = np.bincount(topic_of[known], minlength=topics)
        per_s = np.where(known, per_s, (total / np.maximum(counted, 1))[topic_of])
    return replace(rates, per_s=per_s)


def _capacities(
    question: Question, observations: Observations, commits: Commits, costs: Costs
) -> dict[str, Capacity]:
    """Return capacities by member, in cost-weighted records a second.

    They are reported, else measured, else remembered; a higher lower bound found later replaces
    them.
    """
    capacities, now = observed_capacities(observations.recent, commits), question.series.now
    if observations.work is not None:
        per_s = observations.work.speeds(costs.value)
        capacities |= {
            observations.series.members[place]: Capacity(float(per_s[place]), measured=True, at=now)
            for place in np.flatnonzero(np.isfinite(per_s)).tolist()
        }
    return remembered(question.capacities, capacities, now)


def _speeds(
    question: Question,
    known: Mapping[str, Capacity],
    commits: Commits,
    work_per_s: Float64,
    peers: Peers,
) -> Speeds:
    """Return assumed capacities; 0 if a member commits nothing, so that it gets no partitions."""
    problem, count = question.problem, len(question.problem.members)
    arrivals = sum_by_owner(work_per_s, problem.owner, count)
    at_rest = sum_by_owner(commits.backlog > 0, problem.owner, count) == 0
    now, reads = question.series.now, ~commits.silent[:count]
    assumed = speeds(problem.members, known, arrivals, at_rest, now, reader_set=peers.reader_set)
    return Speeds(
        assumed.per_s * reads,
        assumed.measured & reads,
        assumed.at_most * reads,
        assumed.surely_at_most * reads,
    )

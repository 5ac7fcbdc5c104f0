"""How far ahead the work of members is weighed, and what a plan comes to by then.

Belongs here: what candidates are computed from, and what is told of it by set of members that share
topics. Does not: the candidates (`candidates`), nor choosing between them (`decision`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from assignors.problem import Problem
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.looks import Float64, Int32, Mask
from fairlead.domain.analysis.peers import Peers
from fairlead.domain.analysis.racks import RackTraffic
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.thresholds import CLEARLY, NEGLIGIBLE

#: A plan that cannot bring members within their objective must make them less late by this share.
BETTER: Final = 0.1
#: Further than so many horizons nobody looks.
FURTHEST: Final = 20.0


@dataclass(frozen=True, eq=False)
class CandidateInputs:
    """What candidates are computed from: P partitions, M members.

    Parameters
    ----------
    problem
        As in `decision.Question`.
    outlook
        The forecast's figures.
    held
        Partitions that must stay where they are, bool of shape (P,): stuck ones, which whoever
        takes them reads again, and those of members that commit nothing.
    rules
        Of the policy.
    peers
        Which members share topics.
    at_most
        What members could turn out to do, records a second, float64 of shape (M,), as `Speeds`
        has it; None: what the outlook says they can.
    traffic
        Between racks; None: there can be none, or it does not count.
    calm
        Whether nothing is to be moved but for racks: the group is within its objective.
    """

    problem: Problem
    outlook: Outlook
    held: Mask
    rules: Rules
    peers: Peers
    at_most: Float64 | None = None
    traffic: RackTraffic | None = None
    calm: bool = False

    @cached_property
    def horizons_s(self) -> Float64:
        """How far ahead the work of each member is weighed, in seconds, float64 of shape (M,).

        Far enough that all that waits can have been read by then: else members would be filled with
        backlog alone, and fall behind again once that is gone. What others have that share no
        topics does not count.
        """
        outlook, rules, peers = self.outlook, self.rules, self.peers
        set_of = peers.topics[self.problem.topic_of]
        mine, count = set_of >= 0, peers.linked.size
        waits, arrives = (
            np.bincount(set_of[mine], amounts[mine], count)
            for amounts in (outlook.backlog, outlook.arrivals)
        )
        spare = np.bincount(peers.linked, outlook.capacities, count) - arrives
        drained = np.where(spare > 0, waits / np.where(spare > 0, spare, 1.0), 0.0)
        longest = FURTHEST * rules.horizon_s
        found: Float64 = np.clip(CLEARLY * drained, rules.horizon_s, longest)[peers.linked]
        return found

    @property
    def horizon_s(self) -> float:
        """The furthest of these, in seconds."""
        return float(self.horizons_s.max(initial=self.rules.horizon_s))


class Gain(NamedTuple):
    """What a plan comes to for the members that it changes: seconds.

    Parameters
    ----------
    members
        How many these are.
    late_s, planned_s
        How late the latest of them is at the horizon, as it is and as planned.
    avoided_s
        By how much less late they are once what waits can have been read, summed over partitions.
    slight
        Whether that is hardly anything, and they are not within the objective for it.
    """

    members: int
    late_s: float
    planned_s: float
    avoided_s: float
    slight: bool


def gain(inputs: CandidateInputs, owner: Int32) -> Gain:
    """Hold a plan that takes no partition from nobody against what is."""
    outlook, rules, now = inputs.outlook, inputs.rules, inputs.problem.owner
    changed = owner != now
    members = np.union1d(now[changed], owner[changed])
    spans = inputs.horizons_s
    before_s, then_s = (
        float(outlook.lateness_in_all(owners, spans)[members].sum()) for owners in (now, owner)
    )
    late_s, planned_s = (
        float(outlook.lateness(owners, rules.horizon_s)[members].max(initial=0.0))
        for owners in (now, owner)
    )
    avoided_s = before_s - then_s
    slight = planned_s > rules.objective_s and avoided_s < BETTER * before_s
    return Gain(members.size, late_s, planned_s, avoided_s, slight)


def behind(inputs: CandidateInputs) -> Mask:
    """Return who shares topics with somebody late, where not all are about to catch up, bool (M,).

    They catch up if all that waits is read about as soon as any assignment could have it read.
    """
    outlook, rules, linked = inputs.outlook, inputs.rules, inputs.peers.linked
    owner, spans = inputs.problem.owner, inputs.horizons_s
    close_s = np.maximum(rules.objective_s, NEGLIGIBLE * (spans - rules.horizon_s))
    late = outlook.lateness(owner, rules.horizon_s) > rules.objective_s
    slow = outlook.lateness(owner, spans) > close_s
    found: Mask = np.isin(linked, np.intersect1d(linked[late], linked[slow]))
    return found

"""Sentences about the reported work of a group.

Belongs here: naming expensive partitions and slow consumers. Belongs elsewhere: computing the
figures (`reported_work`, `costs`).
"""

from typing import Final

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import milliseconds
from fairlead.domain.analysis.costs import Costs
from fairlead.domain.analysis.peers import Peers
from fairlead.domain.analysis.reported_work import MeasuredWork
from fairlead.domain.analysis.sample_series import Float64
from fairlead.domain.analysis.thresholds import CLEARLY, NAMED

#: If a consumer is slow, and this many or more of its partitions have the usual cost, the consumer
#: is the cause, not its records.
_USUAL: Final = 6


def work_sentences(work: MeasuredWork, costs: Costs, problem: Problem, peers: Peers) -> list[str]:
    """Return sentences about slow consumers and expensive partitions, the most important first."""
    sentences = []
    if work.slower > 1.0:
        sentences.append(
            f"Records take {work.slower:.2g} times as long as before on all consumers: something "
            "that they share has become slower, such as a database."
        )
    per_record = work.seconds_per_usual_record(costs.value)
    known = np.isfinite(per_record)
    if not known.any() or not work.dense_alike:  # costs are then per offset, not per record
        return sentences
    seconds = work.seconds_per_record(problem.owner)[:, 1]
    unusual = np.flatnonzero((costs.value != 1.0) & np.isfinite(seconds))
    unusual = unusual[np.argsort(-np.abs(np.log(costs.value[unusual])), kind="stable")]
    for place in unusual[:NAMED].tolist():
        owner = int(problem.owner[place])
        share = work.share(place, owner)
        of_time = (
            f"; the partition takes {share:.0%} of {problem.members[owner]}'s time"
            if np.isfinite(share)
            else ""
        )
        sentences.append(
            f"A record of {problem.partition_label(place)} takes "
            f"{milliseconds(seconds[place])}, {costs.value[place]:.2g} times as long as usual"
            f"{of_time}."
        )
    ratios = _ratios_to_peers(per_record[: len(problem.members)], peers)
    slow = np.flatnonzero(ratios > CLEARLY)
    for member in slow[np.argsort(-ratios[slow], kind="stable")][:NAMED].tolist():
        partitions = work.partition[work.known & (work.member == member)]
        usual = partitions[costs.value[partitions] == 1.0]
        doubt = ""
        if usual.size < _USUAL:
            names = ", ".join(problem.partition_label(place) for place in usual[:NAMED].tolist())
            records = f"records of {names}" if names else "its records"
            doubt = f": either it is slow, or {records} are expensive"
        sentences.append(
            f"{problem.members[member]} takes {milliseconds(per_record[member])} for a usual "
            f"record, {ratios[member]:.2g} times as long as the others{doubt}."
        )
    return sentences


def _ratios_to_peers(seconds: Float64, peers: Peers) -> Float64:
    """Divide each member's seconds per record by the median of its peers, (M,); 1: unknown."""
    known, ratios = np.isfinite(seconds), np.ones(seconds.size)
    for member in np.flatnonzero(known).tolist():
        others = peers.of_member(member, known)
        if others.size:
            ratios[member] = seconds[member] / np.median(seconds[others])
    return ratios

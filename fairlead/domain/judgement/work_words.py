"""What reports of work say of a group, in sentences.

Belongs here: naming expensive partitions, slow consumers, and what slows all of them. Does not: the
figures (`reported_work`, `cost_equations`).
"""

from typing import Final

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import plural
from fairlead.domain.judgement.cost_equations import Costs
from fairlead.domain.judgement.looks import Float64
from fairlead.domain.judgement.reported_work import MeasuredWork

#: A consumer is slow that takes so many times as long as is usual for the same records.
SLOW: Final = 1.25
#: Partitions of the usual kind that it takes to say that a consumer is slow, and not its records.
_USUAL: Final = 6
#: So many partitions are named.
_NAMED: Final = 3


def work_sentences(work: MeasuredWork, costs: Costs, problem: Problem) -> list[str]:
    """Return what there is to say, the most important first; nothing where all is as usual."""
    said = []
    if work.slower > 1.0:
        said.append(
            f"Records take {work.slower:.2g} times as long as before on all consumers: something "
            "that they share has become slower, such as a database."
        )
    per_record = _seconds_by_member(work, costs)
    known = np.isfinite(per_record)
    if not known.any():
        return said
    usual_s = float(np.median(per_record[known]))
    seconds = work.seconds_per_record(problem.owner)[:, 1]
    furthest = np.argsort(-np.abs(np.log(costs.value)), kind="stable")
    named = [
        place
        for place in furthest.tolist()
        if costs.value[place] != 1.0 and np.isfinite(seconds[place])
    ]
    for place in named[:_NAMED]:
        owner = int(problem.owner[place])
        share = work.share(place, owner)
        of_time = f": {share:.0%} of {problem.members[owner]}'s time" if np.isfinite(share) else ""
        said.append(
            f"A record of {'{}-{}'.format(*problem.partition_name(place))} takes "
            f"{milliseconds(seconds[place])}, {costs.value[place]:.2g} times as long as usual"
            f"{of_time}."
        )
    if len(named) > _NAMED:
        said.append(f"So do those of {plural(len(named) - _NAMED, 'other partition')}.")
    for member in np.flatnonzero(known & (per_record > SLOW * usual_s)).tolist():
        if member >= len(problem.members):
            continue
        name, ratio = problem.members[member], per_record[member] / usual_s
        mine = work.partition[work.known & (work.member == member)]
        alike = mine[costs.value[mine] == 1.0]
        if alike.size >= _USUAL:
            said.append(f"{name} takes {ratio:.2g} times as long as the others for such records.")
        else:
            names = ", ".join(
                "{}-{}".format(*problem.partition_name(place)) for place in alike[:_NAMED].tolist()
            )
            said.append(
                f"{name} takes {ratio:.2g} times as long for a record as the others: either it is "
                f"slow, or records of {names} are expensive."
            )
    return said


def milliseconds(seconds: float) -> str:
    """Write a duration of milliseconds.

    Examples
    --------
    >>> [milliseconds(seconds) for seconds in (0.00012, 0.0041, 0.04125, 3.2)]
    ['0.12 ms', '4.1 ms', '41 ms', '3,200 ms']
    """
    value = 1e3 * seconds
    digits = 2 if value < 1 else 1 if value < 10 else 0  # noqa: PLR2004 - two digits
    return f"{value:,.{digits}f} ms"


def _seconds_by_member(work: MeasuredWork, costs: Costs) -> Float64:
    """Return the seconds that each consumer takes for a usual record, (M,); NaN: not known."""
    known, count = work.known, work.busy.size
    member, records = work.member[known], work.records[known]
    usual_records = np.bincount(member, records * costs.value[work.partition[known]], count)
    seconds = np.bincount(member, records * work.mean_s[known], count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(usual_records > 0, seconds / usual_records, np.nan)

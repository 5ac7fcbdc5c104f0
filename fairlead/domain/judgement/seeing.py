"""What the looks at many groups say, computed side by side: arrivals and commits.

Belongs here: laying groups that were looked at together side by side, and giving each its part.
Does not: what is computed (`arrivals`, `commits`), nor what is judged of one group (`decision`).

Partitions and members do not know of their neighbours: a group's figures are the same by itself and
in any company. In company they cost a tenth: a small array takes numpy as long as a large one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final

import numpy as np

from fairlead.domain.judgement.arrivals import Rates, arrival_rates
from fairlead.domain.judgement.capacities import INTERVALS, STEPS
from fairlead.domain.judgement.commits import Commits, read_commits, usually_brought
from fairlead.domain.judgement.looks import Float64, Int64, Looks

#: How far back rates and commits are looked at, and how many looks at least.
HISTORY_S: Final = 3600.0
LEAST_LOOKS: Final = STEPS + 4
#: Partitions that are computed together, or few more: what is computed on the way stays small.
_AT_ONCE: Final = 2_000


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of a group.

    Parameters
    ----------
    looks, recent
        All looks, and those of the last hour, as they are judged.
    rates
        Arrivals by partition, in records.
    commits
        What commits say, in records.
    """

    looks: Looks
    recent: Looks
    rates: Rates
    commits: Commits


def see(groups: Sequence[Looks]) -> list[Seen]:
    """Return what was seen of groups, each by itself; those with looks at the same times together.

    Examples
    --------
    >>> at, owner = np.arange(0.0, 600.0, 60.0), np.zeros((10, 1), np.int32)
    >>> groups = [Looks(at, *(3 * [n * at.astype(int)[:, None]]), ("a",), owner) for n in (1, 2)]
    >>> [seen.rates.per_s.tolist() for seen in see(groups)]
    [[1.0], [2.0]]
    """
    whole = [looks.bridged().spaced() for looks in groups]
    recent = [looks.last(HISTORY_S, LEAST_LOOKS) for looks in whole]
    together: dict[tuple[bytes, bool], list[list[int]]] = {}
    for place, looks in enumerate(recent):
        portions = together.setdefault((looks.at.tobytes(), looks.latest), [[]])
        if sum(recent[chosen].partitions for chosen in portions[-1]) >= _AT_ONCE:
            portions.append([])
        portions[-1].append(place)
    seen: dict[int, Seen] = {}
    for portion in (part for portions in together.values() for part in portions):
        seen |= zip(
            portion, _beside([(whole[chosen], recent[chosen]) for chosen in portion]), strict=True
        )
    return [seen[place] for place in range(len(groups))]


def _beside(groups: Sequence[tuple[Looks, Looks]]) -> list[Seen]:
    """See groups of which the recent looks are at the same times."""
    everything = Looks.beside([recent for _, recent in groups])
    counts = [max(len(recent.members), 1) for _, recent in groups]
    oldest: Int64 = np.concatenate([looks.end[0] for looks, _ in groups])
    rates = arrival_rates(everything)
    brought = np.concatenate([_brought(looks, recent) for looks, recent in groups])
    team_of = np.repeat(np.arange(len(counts)), counts)
    commits = read_commits(everything, oldest, team_of=team_of, brought=brought)
    members = pairwise(accumulate(counts, initial=0))
    partitions = pairwise(accumulate((recent.partitions for _, recent in groups), initial=0))
    return [
        _lengthened(
            Seen(
                looks,
                everything.part(recent, mine := slice(*of)),
                rates.of(mine),
                commits.of(mine, slice(*by)),
            )
        )
        for (looks, recent), of, by in zip(groups, partitions, members, strict=True)
    ]


def _lengthened(seen: Seen) -> Seen:
    """Return what all looks say of commits, if the last hour has too few of some member."""
    looks, commits = seen.looks, seen.commits
    few = commits.marked.sum(axis=0) <= INTERVALS
    rare = commits.late | ~np.isfinite(commits.interval_s)
    if len(looks) == len(seen.recent) or not (few & rare).any():
        return seen
    return replace(seen, recent=looks, commits=read_commits(looks, looks.end[0]))


def _brought(looks: Looks, recent: Looks) -> Float64:
    """Return what commits usually bring, as the last hour shows; what it does not, as all looks."""
    lately = usually_brought(recent)
    return lately if lately.all() else np.where(lately > 0, lately, usually_brought(looks))

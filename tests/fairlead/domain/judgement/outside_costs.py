"""The outside checker's loop with records that take their own time, and members of three kinds.

Belongs here: what records take, how a member shares its time where it cannot do all, and memory
that comes back with the next question. Does not: the rest of the loop (`outside`).
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tests.fairlead.domain.judgement.outside import Floats, Group, Ints, Loop

Sharing = Literal["in proportion", "in turns", "in chunks"]


class CostlyLoop(Loop):
    """A group whose members share their time over what waits.

    In proportion to what waits; equally many records of each partition in turn; or one chunk after
    the other, each of all that waits as it is fetched, and of `chunk` records at most.

    Parameters
    ----------
    costs
        Second to what a record of each partition takes, of shape (P,): a member does as many
        records of 1 a second as its speed says.
    """

    def __init__(
        self,
        group: Group,
        costs: Callable[[float], Floats],
        sharing: Sharing,
        *,
        chunk: float = 1000.0,
        **options: Any,
    ) -> None:
        super().__init__(group, **options)
        self.costs, self.sharing, self.chunk = costs, sharing, chunk
        self.memory: dict[str, Any] | None = None
        #: Of each member: partitions in the order in which their chunks are read, and their ends.
        self.fetched: list[list[tuple[int, float]]] = [[] for _ in self.names]

    def question(self) -> dict[str, Any]:
        """Return the line, with what the last answer wanted remembered."""
        line = super().question()
        if self.memory is not None:
            line["memory"] = self.memory
            del line["capacities"]
        return line

    def _decide(self, now: float) -> None:
        super()._decide(now)
        self.memory = self.course.answers[-1][1]["memory"]

    def _pass(self, now: float) -> None:
        rates = np.where(self.exists, self.group.rates(now), 0.0)
        self.end += self.rng.poisson(rates * self.step_s)
        before, costs = self.position.copy(), self.costs(now)
        budgets = np.where(self.there, self.group.speeds(now), 0.0) * self.step_s
        for member, budget in enumerate(budgets.tolist()):
            mine = np.flatnonzero((self.owner == member) & (self.still_until < now))
            waits = self.end[mine] - self.position[mine]
            if float(waits @ costs[mine]) <= budget:
                self.position[mine], self.fetched[member] = self.end[mine], []
            elif self.sharing == "in proportion":
                self.position[mine] += waits * (budget / float(waits @ costs[mine]))
            elif self.sharing == "in turns":
                self.position[mine] += _equally(waits, costs[mine], budget)
            else:
                self._read_chunks(member, mine, costs, budget)
        self._commit(now, before)

    def _read_chunks(self, member: int, mine: Ints, costs: Floats, budget: float) -> None:
        there = set(mine.tolist())
        chunks = [(place, end) for place, end in self.fetched[member] if place in there]
        fetched = {place for place, _ in chunks}
        chunks += [self._fetch(place) for place in mine.tolist() if place not in fetched]
        while budget > 0 and chunks:
            place, end = chunks.pop(0)
            read = min(end - self.position[place], budget / costs[place])
            self.position[place] += read
            budget -= read * costs[place]
            if self.position[place] < end - 1e-9:
                chunks.insert(0, (place, end))
                break
            if self.end[place] > self.position[place]:
                chunks.append(self._fetch(place))
        self.fetched[member] = chunks

    def _fetch(self, place: int) -> tuple[int, float]:
        return place, float(min(self.end[place], self.position[place] + self.chunk))


def _equally(waits: Floats, costs: Floats, budget: float) -> Floats:
    """Return what is read where each partition gives as many records as any, or all it has."""
    order = np.argsort(waits)
    levels = waits[order]
    # Up to a level, all below it are read to their ends and each other one up to it.
    done = np.concatenate(([0.0], np.cumsum(levels * costs[order])[:-1]))
    others = costs[order][::-1].cumsum()[::-1]
    last = int(np.argmax(done + levels * others >= budget))
    read: Floats = np.minimum(waits, (budget - done[last]) / others[last])
    return read

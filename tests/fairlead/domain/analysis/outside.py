"""A second model of a consumer group, analysed only through input lines of `fairlead decide`.

It shares no code with `benchmarks.simulation`, so that a mistake in one model is not hidden by the
same mistake in the other. Each partition is a queue whose length is a real number. A member reads
the same share of the unread records from each of its partitions. `Loop` carries out each plan that
`fairlead decide` makes.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.domain.decide_json.lines import answer_question

Floats = npt.NDArray[np.float64]

HOUR = 3600.0
START = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
#: Seconds. A partition that is further behind exceeds the objective.
OBJECTIVE_S = 60.0
#: Seconds for which a moved partition is not read.
DOWNTIME_S = 10.0


@dataclass(frozen=True)
class Group:
    """A group: P partitions, in the order of topics, and M members, in the order of their names.

    Parameters
    ----------
    rates
        Function of the time in seconds: arrival rate of each partition, records/s, shape (P,).
    speeds
        Function of the time: records/s that each member can read, shape (M,).
    topics
        Number of partitions, by topic.
    reads
        Subscriptions, by member; None: ten members that read all topics.
    commit_s
        Seconds between commits, for all members or for each, shape (M,).
    by_count
        A partition is committed after this number of records; 0: every `commit_s` seconds.
    uncommitted
        Function of the time: partitions that are read but not committed.
    silent
        Function of the time: members that do not commit.
    present
        Function of the time: whether each member is in the group, shape (M,); None: all are.
    backlog
        Unread records at the start, shape (P,).
    batch_s
        Seconds between the batches of producers; 0: records arrive evenly.
    markers
        Whether the last offset of each log is the marker of a transaction.
    owner
        Owners at the start, shape (P,); None: as the assignor `range` assigns.
    """

    rates: Callable[[float], Floats]
    speeds: Callable[[float], Floats]
    topics: Mapping[str, int] = field(default_factory=lambda: {"t": 100})
    reads: Mapping[str, tuple[str, ...]] | None = None
    commit_s: float | Floats = 5.0
    by_count: int = 0
    uncommitted: Callable[[float], tuple[int, ...]] = lambda _: ()
    silent: Callable[[float], tuple[int, ...]] = lambda _: ()
    present: Callable[[float], npt.NDArray[np.bool_]] | None = None
    backlog: Floats | None = None
    batch_s: float = 0.0
    markers: bool = False
    owner: npt.NDArray[np.int64] | None = None

    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Return the subscriptions of each member."""
        return dict(self.reads or {f"m{n:02d}": tuple(self.topics) for n in range(10)})


@dataclass
class Course:
    """The results of a simulated closed loop.

    Parameters
    ----------
    over_objective
        Partitions that exceed the objective, summed over the minutes after `since_h` of `Loop`.
    plans
        Hour, moves, diagnosis and reason of each plan.
    diagnoses
        (diagnosis, names in it) -> number of decisions from `since_h` on.
    answers
        Hour and answer of each decision.
    """

    over_objective: int = 0
    plans: list[tuple[float, int, str, str]] = field(default_factory=list)
    diagnoses: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    answers: list[tuple[float, dict[str, Any]]] = field(default_factory=list)


class Loop:
    """The closed loop of a simulated group: it takes samples, decides, and adopts plans."""

    def __init__(
        self,
        group: Group,
        *,
        seed: int = 1,
        step_s: float = 10.0,
        sample_s: float = 60.0,
        decide_s: float = 900.0,
        since_h: float = 6.0,
    ) -> None:
        self.group, self.rng = group, np.random.default_rng(seed)
        self.step_s, self.sample_s, self.decide_s = step_s, sample_s, decide_s
        self.since_s = since_h * HOUR
        self.topics = dict(group.topics)
        self.reads = group.subscriptions()
        self.names = list(self.reads)
        self.topic_of = np.repeat(np.arange(len(self.topics)), list(self.topics.values()))
        size = self.topic_of.size
        self.may = np.array(
            [[topic in self.reads[name] for topic in self.topics] for name in self.names]
        )[:, self.topic_of]
        self.end = np.zeros(size) + (0 if group.backlog is None else group.backlog)
        self.base = np.full(size, 1000.0)
        self.position, self.committed = np.zeros(size), np.zeros(size)
        self.sent = np.zeros(size)
        self.still_until = np.zeros(size)
        self.phase = self.rng.uniform(0, group.commit_s, len(self.names))
        self.there = self._present(0.0)
        self.owner = self._range() if group.owner is None else group.owner.copy()
        self.series: list[tuple[float, dict[str, Any]]] = []
        self.capacities: dict[str, Any] | None = None
        self.changed_at: float | None = None
        self.history: list[tuple[float, Floats]] = []
        self.course = Course()

    def run(self, hours: float) -> Course:
        """Simulate this many hours; return the results."""
        ends = round(hours * HOUR / self.step_s)
        sample_every = round(self.sample_s / self.step_s)
        decide_every = round(self.decide_s / self.step_s)
        for step in range(ends + 1):
            now = step * self.step_s
            self._change(now)
            if step:
                self._advance(now)
            if step % round(60 / self.step_s) == 0 and now > self.since_s:
                self.course.over_objective += self._behind_objective(now)
            if step % sample_every == 0:
                self._sample(now)
            if step and step % decide_every == 0:
                self._decide(now)
        return self.course

    def _present(self, now: float) -> npt.NDArray[np.bool_]:
        if self.group.present is None:
            return np.ones(len(self.names), dtype=bool)
        return np.asarray(self.group.present(now), dtype=bool)

    def _range(self) -> npt.NDArray[np.int64]:
        owner = np.full(self.topic_of.size, -1)
        for topic in range(len(self.topics)):
            places = np.flatnonzero(self.topic_of == topic)
            readers = np.flatnonzero(self.may[:, places[0]] & self.there)
            if readers.size:
                for reader, part in zip(readers, np.array_split(places, readers.size), strict=True):
                    owner[part] = reader
        return owner

    def _change(self, now: float) -> None:
        there = self._present(now)
        if (there != self.there).any():
            self.there = there
            self._rebalance(now)

    def _rebalance(self, now: float) -> None:
        """Assign as cooperative-sticky does: move partitions until counts differ by at most 1."""
        owner = np.where((self.owner >= 0) & self.there[self.owner], self.owner, -1)
        counts = np.bincount(owner[owner >= 0], minlength=len(self.names))
        for place in np.flatnonzero(owner < 0):
            readers = np.flatnonzero(self.may[:, place] & self.there)
            if readers.size:
                owner[place] = readers[counts[readers].argmin()]
                counts[owner[place]] += 1
        while True:
            readers = np.flatnonzero(self.there & self.may.any(axis=1))
            most, least = readers[counts[readers].argmax()], readers[counts[readers].argmin()]
            gives = np.flatnonzero((owner == most) & self.may[least])
            if counts[most] - counts[least] < 2 or not gives.size:
                break
            owner[gives[-1]] = least
            counts[most] -= 1
            counts[least] += 1
        self._adopt(owner, now)

    def _adopt(self, owner: npt.NDArray[np.int64], now: float) -> None:
        """Move partitions; first commit each unless it is `uncommitted` or its owner `silent`."""
        moved = owner != self.owner
        commits = moved.copy()
        commits[list(self.group.uncommitted(now))] = False
        commits[np.isin(self.owner, self.group.silent(now))] = False
        self.committed[commits] = self.position[commits]
        self.position[moved] = self.committed[moved]
        self.still_until[moved] = now + DOWNTIME_S
        self.owner = owner

    def _advance(self, now: float) -> None:
        step = self.step_s
        rates = self.group.rates(now)
        arrived = self.rng.poisson(rates * step).astype(float)
        if self.group.batch_s:
            self.sent += arrived
            due = ((now + np.arange(rates.size) * 7) % self.group.batch_s) < step
            arrived = np.where(due, self.sent, 0.0)
            self.sent = np.where(due, 0.0, self.sent)
        before = self.position.copy()
        self.end += arrived
        waits = np.where(
            (self.owner >= 0) & (now > self.still_until), self.end - self.position, 0.0
        )
        total = np.bincount(np.maximum(self.owner, 0), waits, len(self.names))
        can = np.where(self.there, self.group.speeds(now), 0.0) * step
        share = np.minimum(1.0, can / np.maximum(total, 1e-9))
        self.position += waits * share[np.maximum(self.owner, 0)]
        self._commit(now, before)

    def _commit(self, now: float, before: Floats) -> None:
        if self.group.by_count:
            count = self.group.by_count
            new = np.where(
                self.position - self.committed >= count,
                self.committed + np.floor((self.position - self.committed) / count) * count,
                self.committed,
            )
        else:
            # Seconds since each member's last commit: less than a step if it commits in this step.
            age = (now - self.phase) % self.group.commit_s
            reached = (
                self.position
                - (self.position - before)
                * (np.minimum(age, self.step_s) / self.step_s)[np.maximum(self.owner, 0)]
            )
            did = (age < self.step_s)[np.maximum(self.owner, 0)] & (self.owner >= 0)
            new = np.where(did, np.maximum(reached, self.committed), self.committed)
        held = np.isin(self.owner, self.group.silent(now))
        held[list(self.group.uncommitted(now))] = True
        self.committed = np.where(held, self.committed, new)

    def _behind_objective(self, now: float) -> int:
        while len(self.history) > 1 and self.history[1][0] <= now - OBJECTIVE_S:
            self.history.pop(0)
        old = (
            self.history[0][1] if self.history and self.history[0][0] <= now - OBJECTIVE_S else None
        )
        return 0 if old is None else int((self.position < np.floor(old) - 1e-6).sum())

    def _by_topic(self, values: list[Any]) -> dict[str, list[Any]]:
        first = np.searchsorted(self.topic_of, range(len(self.topics) + 1)).tolist()
        return {
            topic: values[first[number] : first[number + 1]]
            for number, topic in enumerate(self.topics)
        }

    def _sample(self, now: float) -> None:
        self.history.append((now, self.end.copy()))
        marker = 1.0 if self.group.markers else 0.0
        end = (self.base + np.floor(self.end) + marker).astype(int).tolist()
        committed = (self.base + np.floor(self.committed)).astype(int).tolist()
        owners = [self.names[owner] if owner >= 0 else None for owner in self.owner]
        sample = {
            "at": written(now),
            "begin": self._by_topic(self.base.astype(int).tolist()),
            "end": self._by_topic(end),
            "committed": self._by_topic(committed),
            "owners": self._by_topic(owners),
        }
        self.series.append((now, sample))
        # Keep all samples of the last hour, and one per quarter of an hour before that.
        self.series = [
            (at, taken)
            for at, taken in self.series
            if at >= now - HOUR or (at % 900 == 0 and at >= now - 6 * HOUR)
        ]

    def question(self) -> dict[str, Any]:
        """Return the input line of `fairlead decide`."""
        line: dict[str, Any] = {
            "topics": dict(self.topics),
            "members": {
                name: {"topics": list(self.reads[name])}
                for name, there in zip(self.names, self.there, strict=True)
                if there
            },
            "snapshots": [sample for _, sample in self.series],
            "changed_at": None if self.changed_at is None else written(self.changed_at),
        }
        if self.capacities is not None:
            line["capacities"] = self.capacities
        return line

    def _decide(self, now: float) -> None:
        answer = answer_question(self.question())
        hour = now / HOUR
        self.course.answers.append((hour, answer))
        self.capacities = answer["capacities"]
        if now > self.since_s:
            self.course.diagnoses[answer["diagnosis"], tuple(answer["names"])] += 1
        if answer["outcome"] == "plan":
            self.course.plans.append((hour, answer["moved"], answer["diagnosis"], answer["reason"]))
            self._adopt(self._planned(answer["assignment"]), now)
            self.changed_at = now

    def _planned(self, assignment: Mapping[str, Mapping[str, list[int]]]) -> Any:
        owner = np.full(self.topic_of.size, -1)
        first = dict(zip(self.topics, np.searchsorted(self.topic_of, range(99)), strict=False))
        for name, topics in assignment.items():
            for topic, partitions in topics.items():
                owner[int(first[topic]) + np.array(partitions, int)] = self.names.index(name)
        return owner


def answer_after(group: Group, hours: float = 1.0) -> dict[str, Any]:
    """Simulate a group for this many hours without a plan; return the answer at the end."""
    loop = Loop(group, decide_s=1e9)
    loop.run(hours)
    return answer_question(loop.question())


def written(now: float) -> str:
    """Format seconds since `START` as an ISO time."""
    return datetime.fromtimestamp(START + now, UTC).isoformat()


def zipf(count: int, exponent: float, used: float, capacity: float, seed: int = 0) -> Floats:
    """Return shuffled arrival rates that follow Zipf's law; their sum is `used * capacity`."""
    shares = np.arange(1, count + 1, dtype=float) ** -exponent
    shuffled = np.random.default_rng(seed).permutation(shares)
    rates: Floats = shuffled / shuffled.sum() * used * capacity
    return rates


def steady(values: Floats) -> Callable[[float], Floats]:
    """Return a function of the time that always returns the same values."""
    return lambda _: values


def by_day(values: Floats, low: float, high: float) -> Callable[[float], Floats]:
    """Return a function of the time: `values` times `low` at midnight and times `high` at noon."""
    return lambda now: (
        values * (low + (high - low) * 0.5 * (1 - np.cos(2 * np.pi * now / (24 * HOUR))))
    )

"""A simulated consumer group, minute by minute, as input for `fairlead decide`.

Belongs here: how records arrive, and are read, committed and deleted. Belongs elsewhere: the
stories (`reported`, `collected`), the right answers (`answers`).
"""

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from benchmarks.stories.answers import Right, Story

_GITHUB: Final = "https://github.com/"
_START: Final = datetime(2026, 3, 2, tzinfo=UTC)
#: Minutes between two automatic commits: the default of `auto.commit.interval.ms`.
_AUTO_COMMIT: Final = 5.0 / 60.0
#: Relative standard deviation of the records that a busy consumer reads per minute.
_UNSTEADY: Final = 0.02


@dataclass
class Partition:
    """A partition, and how its consumer reads and commits it. Rates are records per minute.

    Parameters
    ----------
    owner
        The member that reads the partition; None: no member.
    arrives, reads
        Mean number of records that arrive per minute, and maximum number that are read.
    begin, end, position
        First and end offset of the log, and the offset of the next record to read.
    committed
        The group's committed offset; None: no commit.
    commits
        Whether the consumer commits at all.
    commit_every, commit_by
        Minutes between commits, or number of records between commits. If both are 0, commits are
        automatic.
    behind_end
        Number of offsets without records at the end of the log: transaction markers.
    stable
        The last stable offset while a transaction is open; None: no transaction is open.
    keeps
        Number of newest records that retention keeps; None: all.
    delay
        Minimum age, in minutes, of records that the consumer reads.
    unseen
        Number of records that arrive while a sample is taken: after the end offset was read, but
        before the commit was read.
    seconds
        Seconds that a record takes, for reports.
    exists, readable
        Whether the partition exists, and whether its offsets can be read.
    """

    owner: str | None = None
    arrives: float = 0.0
    reads: float = 1e9
    begin: int = 0
    end: int = 50_000
    position: int = 50_000
    committed: int | None = 50_000
    commits: bool = True
    commit_every: int = 0
    commit_by: int = 0
    behind_end: int = 0
    stable: int | None = None
    keeps: int | None = None
    delay: int = 0
    unseen: int = 0
    seconds: float = 0.0
    exists: bool = True
    readable: bool = True
    ends: list[int] = field(default_factory=list)

    def seek(self, offset: int) -> None:
        """Set position and committed offset, as an operator or a restarted consumer would."""
        self.position = self.committed = offset

    def step(self, minute: int, rng: np.random.Generator) -> None:
        """Simulate one minute."""
        if not self.exists:
            return
        self.end += int(rng.poisson(self.arrives))
        self.ends.append(self.end)
        if self.keeps is not None:
            self.begin = max(self.begin, self.end - self.keeps)
        if self.owner is None or self.reads == 0:
            return
        self.position = max(self.position, self.begin)  # as with auto.offset.reset=earliest
        last = self.end if self.stable is None else self.stable
        if self.delay:
            last = self.ends[max(len(self.ends) - 1 - self.delay, 0)]
        most = max(self.reads * (1.0 + _UNSTEADY * rng.standard_normal()), 0.0)
        read = max(min(round(most), last - self.position), 0)
        self.position += read
        if self.commits:
            self._commit(minute, round(read * rng.uniform(0.0, _AUTO_COMMIT)))

    def _commit(self, minute: int, missed: int) -> None:
        if self.commit_every:
            if minute % self.commit_every == 0:
                self.committed = self.position
        elif self.commit_by:
            since = self.begin if self.committed is None else self.committed
            self.committed = since + (self.position - since) // self.commit_by * self.commit_by
        elif self.committed is not None or self.position > self.begin:
            end = self.position - missed
            self.committed = min(end, self.end - self.behind_end)


@dataclass
class Reporter:
    """Counts the work that a consumer has done since it started, for reports in its commits.

    Parameters
    ----------
    token
        Identifies the run of the consumer: it changes at each start, when counters return to 0.
    since
        The minute in which the consumer started.
    ahead_s
        Seconds by which the consumer's clock is ahead.
    records
        Number of records processed, by partition.
    busy
        Seconds spent on these records, by partition.
    """

    token: str
    since: int
    ahead_s: float = 0.0
    records: dict[str, int] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)

    def take(self, name: str, partition: Partition, records: int) -> dict[str, Any]:
        """Count processed records; return the report to commit with the partition's offset."""
        self.records[name] = self.records.get(name, 0) + records
        self.busy[name] = self.busy.get(name, 0.0) + records * partition.seconds
        return {
            "consumer": partition.owner,
            "records": self.records[name],
            "busy_s": self.busy[name],
            "busy_squares_s2": 1.2 * self.busy[name] * partition.seconds,
        }

    def report(self, minute: int) -> dict[str, Any]:
        """Return the part of the report that is about the consumer as a whole."""
        elapsed, handler = 60.0 * (minute - self.since), sum(self.busy.values())
        return {
            "token": self.token,
            "elapsed_s": elapsed,
            "waiting_s": 0.98 * max(elapsed - handler, 0.0),
            "handler_s": handler,
            "calls": sum(self.records.values()) // 20,
            "at": (_START + timedelta(minutes=minute, seconds=self.ahead_s)).isoformat(),
        }


class Scene:
    """A group that is simulated minute by minute.

    Parameters
    ----------
    topics
        Map from topic to its number of partitions.
    members
        Map from member to its topics, separated by blanks.
    every
        Minutes between two samples.
    policy
        Keys of the policy that differ from the defaults.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        members: Mapping[str, str],
        *,
        every: int = 1,
        policy: Mapping[str, Any] | None = None,
    ) -> None:
        self._topics = dict(topics)
        self._members = {
            name: {"topics": subscribed.split()} for name, subscribed in members.items()
        }
        self._every, self._policy = every, policy
        self._minute, self._rng = 0, np.random.default_rng(1)
        self._partitions = {
            f"{topic}-{number}": Partition()
            for topic, count in topics.items()
            for number in range(count)
        }
        self._samples: list[dict[str, Any]] = []
        self._reports: dict[str, dict[str, Any]] = {}
        self.reporters: dict[str, Reporter] = {}
        self.commits_readable = self.owners_shown = True

    def __getitem__(self, name: str) -> Partition:
        """Return a partition, such as `t-0`."""
        return self._partitions[name]

    def matching(self, patterns: str) -> Iterator[Partition]:
        """Yield the partitions that match one of the patterns, such as `t-0 mail-*`."""
        for name, partition in self._partitions.items():
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split()):
                yield partition

    def set(self, patterns: str, **values: Any) -> "Scene":
        """Set attributes of the partitions that match one of the patterns."""
        for partition in self.matching(patterns):
            for attribute, value in values.items():
                if not hasattr(partition, attribute):
                    raise AttributeError(attribute)
                setattr(partition, attribute, value)
        return self

    def own(self, owners: Mapping[str, str]) -> "Scene":
        """Give each member the partitions that match its patterns."""
        for member, patterns in owners.items():
            self.set(patterns, owner=member)
        return self

    def report(self, members: str) -> "Scene":
        """Let members report their work from now on, with counters that start at 0."""
        for member in members.split():
            token = f"{member}{self._minute}"
            self.reporters[member] = Reporter(token, self._minute)
        return self

    def behind(self, patterns: str, records: int) -> "Scene":
        """Set the group's lag on the matching partitions, in records."""
        for partition in self.matching(patterns):
            partition.seek(partition.end - records)
        return self

    def run(self, minutes: int, *, sampled: bool = True) -> "Scene":
        """Simulate minutes, and take a sample whenever one is due, unless `sampled` is false."""
        if not self._samples:
            self._sample()
        for _ in range(minutes):
            self._minute += 1
            for name, partition in self._partitions.items():
                before = partition.committed
                partition.step(self._minute, self._rng)
                read = (partition.committed or 0) - (before or 0)
                if read > 0 and partition.owner in self.reporters:
                    reporter = self.reporters[partition.owner]
                    self._reports[name] = reporter.take(name, partition, read)
            if sampled and self._minute % self._every == 0:
                self._sample()
        return self

    def question(self) -> dict[str, Any]:
        """Return the input for `fairlead decide`."""
        question = {"topics": self._topics, "members": self._members, "snapshots": self._samples}
        return question if self._policy is None else {"policy": dict(self._policy), **question}

    def _sample(self) -> None:
        known = [part if part.exists and part.readable else None for part in self._all()]
        columns: dict[str, Sequence[Any]] = {
            "begin": [part and part.begin for part in known],
            "end": [part and part.end - part.unseen for part in known],
            "committed": [
                part.committed if part.exists and self.commits_readable else None
                for part in self._all()
            ],
            "owners": [
                part.owner if part.exists and self.owners_shown else None for part in self._all()
            ],
        }
        if any(part.stable is not None for part in self._all()):
            columns["stable_end"] = [part.stable for part in self._all()]
        at = (_START + timedelta(minutes=self._minute)).isoformat()
        sample: dict[str, Any] = {"at": at}
        sample |= {name: self._by_topic(values) for name, values in columns.items()}
        if self.reporters:
            sample["reports"] = {
                "partitions": self._by_topic(
                    [self._reports.get(name) for name in self._partitions]
                ),
                "consumers": {
                    member: reporter.report(self._minute)
                    for member, reporter in self.reporters.items()
                },
            }
        self._samples.append(sample)

    def _all(self) -> list[Partition]:
        return list(self._partitions.values())

    def _by_topic(self, values: Sequence[Any]) -> dict[str, list[Any]]:
        rest = iter(values)
        return {topic: [next(rest) for _ in range(count)] for topic, count in self._topics.items()}


def stories_of(
    stories: list[Story],
) -> Callable[[str, str, Right], Callable[[Callable[[], Scene]], Callable[[], Scene]]]:
    """Return a decorator that appends a scene to `stories`, with source, text and right answer.

    A source that is not a full URL is a path on github.com.
    """

    def story(
        source: str, text: str, right: Right
    ) -> Callable[[Callable[[], Scene]], Callable[[], Scene]]:
        def add(play: Callable[[], Scene]) -> Callable[[], Scene]:
            name = play.__name__.strip("_").replace("_", "-")
            address = source if source.startswith("https:") else _GITHUB + source
            stories.append(Story(name, address, text, right, lambda: play().question()))
            return play

        return add

    return story

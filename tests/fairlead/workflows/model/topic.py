"""The plan topic as a broker keeps it: transactions, fencing, compaction.

Belongs here: what a broker promises. Does not: who uses it, and when (`lives`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Self

from fairlead.errors import KafkaUnavailableError
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.kafka.plan_channel import Outgoing
from fairlead.kafka.plan_topic import Graves, Position, Record
from fairlead.wire.record import Origin

PARTITIONS: Final = 2
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)

#: Is told where a publisher is; comes back when it may go on, or raises what kills it.
Reach = Callable[[str], None]


@dataclass
class ModelTopic:
    """Two partitions, of which everybody reads what is committed.

    Attributes
    ----------
    logs
        Committed records of each partition, in the order of their offsets.
    epochs
        How often each partition's transactional id was opened: of whom the newest speaks.
    too_large
        Groups whose records the broker refuses.
    passed
        The end of each partition when a run last began that has compared all groups and said again
        whatever was to be.
    """

    reach: Reach
    logs: list[list[PlanRecord]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    ends: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    epochs: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    too_large: set[str] = field(default_factory=set)
    passed: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    name: str = "plans"
    origin: Origin = field(default_factory=lambda: Origin("plans", "cluster", "log"))

    def partition_for_key(self, group: str) -> int:
        """Return the partition of a group's key."""
        return int(group.removeprefix("g")) % PARTITIONS

    def open(self, partition: int) -> "ModelChannel":
        """Fence whoever had the partition, whose open transaction is aborted."""
        self.reach("before init")
        self.epochs[partition] += 1
        channel = ModelChannel(self, partition, self.epochs[partition])
        self.reach("after init")
        return channel

    def held_up(self, partition: int, offset: int) -> None:
        """Nobody else sends transactions."""

    def newest(
        self,
        partition: int,
        groups: Sequence[str],
        only: Callable[[Record], bool] | None = None,
    ) -> dict[str, Record]:
        """Return the newest record of each of some groups."""
        self.reach("before reading")
        newest, graves = {}, Graves()
        for log in self.logs[partition]:
            group = (log.key or b"").decode()
            if group in groups:
                headers = [(name, value or b"") for name, value in log.headers]
                record = Record(group, log.value, headers, Position(partition, log.offset), _AT)
                record = graves.take(record)
                if only is None or only(record):
                    newest[group] = record
        return newest

    def append(self, partition: int, record: Outgoing) -> int:
        """Commit a record; returns its offset."""
        offset = self.ends[partition]
        self.ends[partition] += 1
        self.logs[partition].append(
            PlanRecord(offset, record.group.encode(), record.value, tuple(record.headers))
        )
        return offset

    def compact(self) -> None:
        """Keep the newest record of each key, of those that are older than the last pass.

        Segments of the last hour are not looked at, and passes come more often than that.
        """
        for partition, log in enumerate(self.logs):
            passed = self.passed[partition]
            newest = {record.key: record for record in log if record.offset < passed}
            self.logs[partition] = [
                record for record in log if record.offset >= passed or newest[record.key] is record
            ]


@dataclass
class ModelChannel:
    """One opening of a partition's transactional id."""

    topic: ModelTopic
    partition: int
    epoch: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Leave what is open to whoever opens the partition next."""

    def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
        """Send all that the broker takes in one transaction."""
        self.topic.reach("before the send")
        self._require_living()
        self.topic.reach("in the transaction")
        self._require_living()
        answers: dict[str, int | str] = {}
        for record in records:
            large = record.group in self.topic.too_large
            answers[record.group] = (
                "too large" if large else self.topic.append(self.partition, record)
            )
        self.topic.reach("after the commit")
        return answers

    def _require_living(self) -> None:
        if self.epoch != self.topic.epochs[self.partition]:
            raise KafkaUnavailableError("fenced")

"""The number of reported records never grows by more than the committed offset does."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.followers.core.progress import Progress

Record = int  # a record is represented by its offset


def offset_of(record: Record) -> int:
    return record


@dataclass
class Partition:
    """A partition, and the batches and commits of an application that reads the partition."""

    progress: Progress = field(default_factory=Progress)
    position: int = 0
    batch: list[Record] = field(default_factory=list)
    taken: int = 0
    busy: float = 0.0

    def next_batch(self, size: int, gap: int) -> None:
        """Read the next records; some offsets have no record, as after compaction."""
        self.progress.end_batch()
        offsets = [self.position + at * (1 + gap) for at in range(size)]
        self.batch, self.taken, self.position = offsets, 0, offsets[-1] + 1
        self.progress.begin_batch(offsets, 0, size, offset_of)

    def work(self, count: int) -> None:
        """Process records of the batch, the first separately and the others together."""
        records = self.batch[self.taken : self.taken + count]
        if records:
            self.progress.take(records[0])
            self.progress.take_all(records[1:], offset_of)
            self.progress.spend(float(len(records)), len(records))
        self.taken += len(records)

    def go_to(self, offset: int) -> None:
        """Continue at another offset: after a seek, or as a new owner."""
        self.progress.end_batch()
        self.batch, self.position = [], max(0, offset)

    @property
    def worked_off(self) -> int:
        """Return the offset after the processed records."""
        rest = self.batch[self.taken : self.taken + 1]
        return rest[0] if rest else self.position

    def commit(self, offset: int) -> tuple[int, int]:
        """Commit an offset; return the offset and the number of records reported with it."""
        self.progress.commit(offset, self.progress.busy, self.progress.squares)
        return offset, self.progress.reported.records


STEPS = st.one_of(
    st.tuples(st.just("batch"), st.integers(1, 40), st.integers(0, 2)),
    st.tuples(st.just("work"), st.integers(1, 20)),
    st.tuples(st.just("commit"), st.sampled_from(["position", "done", "behind"])),
    st.tuples(st.just("go"), st.integers(-60, 60)),
    st.tuples(st.just("restart")),
)


#: Record 1 is read first; then record 0 is read, and committed before it is processed.
READ_AGAIN: list[tuple[Any, ...]] = [
    *[("go", 1), ("commit", "position"), ("batch", 1, 0), ("commit", "behind"), ("restart",)],
    *[("batch", 1, 0), ("commit", "position"), ("work", 1), ("commit", "position")],
]


@given(st.lists(STEPS, max_size=60))
@example(READ_AGAIN)
@settings(max_examples=400)
def test_records_grow_by_no_more_than_offsets(steps: list[tuple[str, ...]]) -> None:
    """Between two commits, the record count grows at most as much as the committed offset.

    Commits may be behind or ahead of the work. There is no limit if committed offsets decrease.
    """
    partition = Partition()
    commits: list[tuple[int, int]] = []
    for name, *arguments in steps:
        if name == "batch":
            partition.next_batch(*arguments)  # type: ignore[arg-type] # as in STEPS
        elif name == "work":
            partition.work(*arguments)  # type: ignore[arg-type] # as in STEPS
        elif name == "go":
            partition.go_to(partition.position + int(arguments[0]))
        elif name == "restart":  # continue at the last commit, as after a rebalance
            partition.go_to(commits[-1][0] if commits else 0)
        else:
            done = partition.worked_off
            offsets = {"position": partition.position, "done": done, "behind": max(0, done - 7)}
            commits.append(partition.commit(offsets[arguments[0]]))
    for (offset, records), (later, more) in itertools.pairwise(commits):
        assert records <= more
        assert later < offset or more - records <= later - offset


def test_records_in_step_are_reported_in_full() -> None:
    """Each record is reported with the commit that covers it; no delay accumulates."""
    partition = Partition()
    for size in (10, 1, 30):
        partition.next_batch(size, gap=0)
        partition.work(size)
        assert partition.commit(partition.position) == (partition.position, partition.position)


def test_commits_ahead_report_the_work_of_earlier_commits() -> None:
    """If offsets are committed before processing, reports are at most one batch behind."""
    partition = Partition()
    for _ in range(50):
        partition.next_batch(100, gap=0)
        for _ in range(4):
            partition.work(25)
            partition.commit(partition.position)
            reported = partition.progress.reported
            assert partition.progress.records - reported.records <= 100
            assert abs(reported.busy - reported.records) <= 1e-6


def test_records_count_again_only_after_a_reset() -> None:
    """Records that are read twice are counted twice only if the committed offset was reset."""
    partition = Partition()
    partition.next_batch(100, gap=0)
    partition.work(100)
    partition.commit(60)
    partition.go_to(60)  # after a rebalance, continue at the commit
    partition.next_batch(100, gap=0)
    partition.work(100)
    assert partition.commit(160) == (160, 160)
    partition.go_to(0)  # an operator has reset the committed offset
    partition.next_batch(10, gap=0)
    partition.work(10)
    partition.commit(10)
    partition.next_batch(50, gap=0)
    partition.work(50)
    assert partition.commit(60) == (60, 210)


def test_records_of_other_owners_do_not_delay_reports() -> None:
    """After other members have read many offsets, all later records of this member are reported."""
    partition = Partition()
    partition.next_batch(10, gap=0)
    partition.work(10)
    partition.commit(10)
    partition.go_to(10_000)
    partition.commit(10_000)
    partition.next_batch(10, gap=0)
    partition.commit(10_010)
    partition.work(5)
    partition.commit(10_010)
    partition.work(5)
    partition.next_batch(10, gap=0)
    partition.work(10)
    _, records = partition.commit(10_020)
    assert records == 20


def test_memory_is_bounded_if_commits_stay_behind() -> None:
    """If commits stay behind, at most 64 states are stored; a later commit reports all records."""
    partition = Partition()
    for _ in range(1000):
        partition.next_batch(10, gap=0)
        partition.work(10)
        partition.commit(5)
    assert len(partition.progress._states) <= 64  # noqa: SLF001 - nothing public tells
    assert partition.commit(partition.position) == (10_000, 10_000)

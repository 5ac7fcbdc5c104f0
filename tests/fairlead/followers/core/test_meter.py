"""The meter, which times how long an application processes records, on a simulated clock."""

import copy
import math
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition

from fairlead.followers.core.meter import Meter, has_metadata, reported
from fairlead.wire.work_report import TIMES_UNKNOWN, WorkReport

TOPIC = "orders"
MAX_S = 300.0
#: Seconds that the application takes for a usual, expensive or quick record, and for a flush.
USUAL, EXPENSIVE, QUICK, FLUSH = 4e-3, 40e-3, 10e-6, 80e-3
#: Seconds to hand a record to another thread: normally, and if interrupted by other processes.
PASSED_ON, INTERRUPTED = 50e-6, 10e-3


@dataclass(frozen=True)
class Record:
    """A record as clients return it."""

    partition: int
    offset: int


@dataclass
class Application:
    """A simulated application that reads records, works, and reports."""

    now: float = 0.0
    ends: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.meter = Meter(MAX_S, lambda: self.now, lambda: 0.0)

    def work(self, seconds: float) -> None:
        """Move the clock forward by the time that the application works."""
        self.now += seconds

    def wait(self, seconds: float) -> None:
        """Wait for records."""
        self.meter.asked()
        self.meter.waits()
        self.now += seconds
        self.meter.waited()

    def records(self, partition: int, count: int) -> list[Record]:
        """Return the next records of a partition."""
        first = self.ends.get(partition, 0)
        self.ends[partition] = first + count
        return [Record(partition, offset) for offset in range(first, first + count)]

    def poll(self, counts: dict[int, int]) -> dict[TopicPartition, list[Record]]:
        """Take a batch, as kafka-python's poll() and aiokafka's getmany() return it."""
        self.meter.asked()
        return self.meter.took(
            {TopicPartition(TOPIC, p): self.records(p, count) for p, count in counts.items()}
        )

    def consume(self, partitions: Sequence[int]) -> list[Record]:
        """Take a list with one record of each given partition, like confluent-kafka's consume()."""
        self.meter.asked()
        records = [record for p in partitions for record in self.records(p, 1)]
        runs = [(self.meter.progress_of((TOPIC, p)), 1) for p in partitions]
        return self.meter.took_list(records, runs, lambda record: record.offset)

    def next(self, partition: int) -> Record:
        """Take one record, as iterating over a consumer does."""
        self.meter.asked()
        (record,) = self.records(partition, 1)
        self.meter.took_one(TOPIC, partition, record.offset)
        return record

    def report(self, partition: int, offset: int | None = None) -> WorkReport:
        """Return the report in a commit of `offset`; by default, all read records are committed."""
        end = self.ends.get(partition, 0) if offset is None else offset
        return self.meter.report((TOPIC, partition), end)


def interval(now: WorkReport, before: WorkReport | None = None) -> tuple[float, float]:
    """Return bounds of the mean seconds per record since `before`, as the planner computes them."""
    records, busy, squares = (
        after - earlier
        for after, earlier in zip(
            (now.records, now.busy_ms, now.busy_squares_ms2),
            (before.records, before.busy_ms, before.busy_squares_ms2) if before else (0, 0, 0),
            strict=True,
        )
    )
    mean = busy / records
    spread = max(0.0, squares - busy**2 / records) / (records - 1)
    half = 1.64 * math.sqrt(spread / records)
    return (mean - half) / 1e3, (mean + half) / 1e3


def is_known(bounds: tuple[float, float]) -> bool:
    return bounds[0] > 0 and bounds[1] <= 2 * bounds[0]


def is_right_or_wide(bounds: tuple[float, float], truth_s: float) -> bool:
    """Return whether an interval is wide, or its middle is within 25 % of the true mean."""
    middle = sum(bounds) / 2
    return not is_known(bounds) or abs(middle / truth_s - 1) <= 0.25


@pytest.fixture
def app() -> Application:
    return Application()


@pytest.mark.parametrize("takes", [USUAL, QUICK, 99e-6, 101e-6])
def test_iterated_records_count_for_their_partition(app: Application, takes: float) -> None:
    """A record's time counts for its partition, even if quick records are timed in groups."""
    for _ in range(40):
        for partition, records in app.poll({0: 250, 1: 250}).items():
            for _record in records:
                app.work(takes * (1 + 9 * partition.partition))
    for partition, cost in ((0, takes), (1, 10 * takes)):
        app.meter.asked()
        bounds = interval(app.report(partition))
        assert is_known(bounds)
        assert sum(bounds) / 2 == pytest.approx(cost, rel=0.01)


def test_slow_record_among_quick_ones_widens_the_interval(app: Application) -> None:
    """Quick records are timed in groups; the extra time of a slow group counts for one record."""
    for records in app.poll({0: 2000}).values():
        for record in records:
            app.work(5.0 if record.offset == 1000 else QUICK)
    app.meter.asked()
    report = app.report(0)
    assert report.busy_ms == pytest.approx(5000 + 2000 * QUICK * 1e3, rel=0.01)
    assert report.busy_squares_ms2 == pytest.approx(5000**2, rel=0.05)
    assert not is_known(interval(report))


@pytest.mark.parametrize("stops_after", [1, 7, 30])
def test_interrupted_batch_counts_all_its_records(app: Application, stops_after: int) -> None:
    """If the application stops iterating, all records of the batch and all time are reported."""
    for records in app.poll({0: 100}).values():
        for _record in records:
            app.work(USUAL)
            if not (stops_after := stops_after - 1):
                break
    app.work(1.0)
    app.meter.asked()
    report = app.report(0)
    assert (report.records, report.busy_ms) == (100, report.handler_ms)
    assert not is_known(interval(report))


def by_index(records: list[Record]) -> Iterator[Record]:
    for at in range(len(records)):
        yield records[at]


def popped(records: list[Record]) -> Iterator[Record]:
    while records:
        yield records.pop(0)


WAYS = {
    "index": by_index,
    "slice": lambda records: records[:],
    "list": list,
    "reversed": reversed,
    "pop": popped,
    "pandas": lambda records: pd.DataFrame(records).to_dict("records"),
    "in place": lambda records: (records.reverse(), records)[1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("partitions", [1, 2])
def test_reads_without_iterating_are_right_or_wide(
    app: Application, way: str, partitions: int
) -> None:
    """If a batch is read without iterating, the mean is right or its interval is wide."""
    for _ in range(200):
        for partition, records in app.poll(dict.fromkeys(range(partitions), 50)).items():
            for _record in WAYS[way](records):
                app.work(EXPENSIVE if partition.partition else USUAL)
    app.meter.asked()
    for partition, takes in list(enumerate([USUAL, EXPENSIVE]))[:partitions]:
        report = app.report(partition)
        assert report.records == 200 * 50
        assert is_right_or_wide(interval(report), takes)
        assert report.handler_ms == round(200 * 50 * sum([USUAL, EXPENSIVE][:partitions]) * 1e3)


@pytest.mark.parametrize("collect_s", [QUICK, 1e-3, USUAL])
@pytest.mark.parametrize("partitions", [1, 12])
@pytest.mark.parametrize("take", ["poll", "consume"])
def test_flush_after_a_batch_is_right_or_wide(
    app: Application, take: str, partitions: int, collect_s: float
) -> None:
    """If the application flushes after each batch, the mean is right or its interval is wide."""
    before: dict[int, WorkReport] = {}
    share = 96 // partitions
    for number in range(150):
        if take == "poll":
            lists: list[list[Record]] = [
                *app.poll(dict.fromkeys(range(partitions), share)).values()
            ]
        else:
            lists = [app.consume([*range(partitions)] * share)]
        for records in lists:
            for _record in records:
                app.work(collect_s)
        app.work(FLUSH)
        if number in {0, 10}:
            before = {p: app.report(p) for p in range(partitions)}
    app.meter.asked()
    truth = collect_s + FLUSH / 96
    for partition in range(partitions):
        for since in (None, before[partition]):
            bounds = interval(app.report(partition), since)
            assert is_right_or_wide(bounds, truth)
            assert partitions > 1 or is_known(bounds)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["next", "next", "next", "poll", "seek"]),
            st.integers(0, 2),
            st.sampled_from([QUICK, 1.0, 2 * MAX_S]),
        ),
        max_size=40,
    )
)
def test_time_and_calls_add_up(steps: list[tuple[str, int, float]]) -> None:
    """In any order of reads and seeks, reports have the number of reads and all working time."""
    app = Application()
    calls, worked = 0, 0.0
    for step, partition, takes in steps:
        if step == "seek":
            app.ends[partition] = max(0, app.ends.get(partition, 0) + (5 if takes < 1 else -3))
            continue
        if step == "next":
            app.next(partition)
        else:
            app.poll({partition: 2, partition + 1: 1})
        app.work(takes)
        calls, worked = calls + 1, worked + takes
        report = app.report(partition)
        assert (report.calls, report.handler_ms) == (calls, round(worked * 1e3))
    app.meter.asked()
    report = app.report(0)
    assert (report.calls, report.handler_ms) == (calls, round(worked * 1e3))
    assert sum(app.report(p).busy_ms for p in range(4)) <= report.handler_ms + 2


@pytest.mark.parametrize("batch", [False, True])
def test_record_counts_for_no_more_than_the_poll_interval(app: Application, *, batch: bool) -> None:
    """The time of a record, finished or not, is counted up to the poll interval at most."""
    if batch:
        records = iter(next(iter(app.poll({0: 1}).values())))
        next(records)
    else:
        app.next(0)
    app.work(10 * MAX_S)
    assert app.report(0).busy_ms == MAX_S * 1e3
    app.meter.asked()
    report = app.report(0)
    assert (report.busy_ms, report.busy_squares_ms2) == (MAX_S * 1e3, (MAX_S * 1e3) ** 2)
    assert report.handler_ms == 10 * MAX_S * 1e3


def test_exception_in_a_handler_loses_nothing(app: Application) -> None:
    """After an exception within a batch, all records of the batch and all time are counted."""
    kept = []
    for _ in range(10):
        with suppress(LookupError):
            for records in app.poll({0: 10}).values():
                for record in records:
                    app.work(USUAL)
                    if record.offset % 10 == 4:
                        kept.append(LookupError(record))
                        raise kept[-1]
        app.work(1.0)
    app.meter.asked()
    report = app.report(0)
    assert (report.records, report.handler_ms) == (100, round((50 * USUAL + 10) * 1e3))


def test_timed_list_is_a_list(app: Application) -> None:
    """A timed list compares, copies, pickles, sorts and slices like a list."""
    (records,) = app.poll({0: 40}).values()
    plain = [Record(0, offset) for offset in range(40)]
    assert isinstance(records, list)
    for same in (records, copy.copy(records), copy.deepcopy(records), records[:], records.copy()):
        assert same == plain
    again = pickle.loads(pickle.dumps(records))  # noqa: S301 - its own
    assert (again, type(again)) == (plain, list)
    assert [*reversed(records)] == sorted(records, key=lambda record: -record.offset)
    records.append(Record(0, 99))
    assert [*records] == [*plain, Record(0, 99)]
    del records[5:]
    assert [*records] == plain[:5]


def test_reported_counters_never_decrease(app: Application) -> None:
    """No counter decreases, even in reports that are made while the application works or waits."""
    rng = random.Random(1)  # the same sequence in each run
    cpu = [0.0]
    app.meter = Meter(MAX_S, lambda: app.now, lambda: cpu[0])
    before = (0,) * 7
    for _ in range(300):
        app.meter.asked()
        app.meter.waits()
        app.work(rng.random())
        reports = [app.report(0)]
        cpu[0] += rng.random() / 2
        app.meter.waited()
        reports.append(app.report(0))
        for records in app.poll({0: rng.randrange(1, 40), 1: 5}).values():
            for record in records:
                app.work(rng.choice([QUICK, QUICK, QUICK, 1.0]))
                if rng.random() < 0.2:
                    reports.append(app.report(0, record.offset if not record.partition else None))
        reports += [app.report(0)]
        for report in reports:
            counters = (
                *(report.elapsed_ms, report.waiting_ms, report.handler_ms, report.calls),
                *(report.records, report.busy_ms, report.busy_squares_ms2),
            )
            assert all(old <= new for old, new in zip(before, counters, strict=True))
            before = counters
    assert before[1] + before[2] <= before[0] + 1


def test_waiting_is_idle_time_of_the_thread(app: Application) -> None:
    """CPU time that the client or other tasks use during a wait does not count as waiting."""
    cpu = [0.0]
    app.meter = Meter(MAX_S, lambda: app.now, lambda: cpu[0])
    app.meter.waits()
    app.work(10.0)
    cpu[0] = 4.0
    app.meter.waited()
    app.work(10.0)
    assert app.report(0).waiting_ms == 6000
    assert app.meter.reported_work().busy_share == pytest.approx(0.7)


def test_several_tasks_end_the_counting_of_times(app: Application) -> None:
    """Once several tasks take records, no further record is timed, and the report shows why."""
    app.next(0)
    app.work(USUAL)
    app.meter.asked()
    assert app.report(0).records == 1
    app.meter.give_up()
    app.next(0)
    app.work(USUAL)
    app.meter.asked()
    report = app.report(0)
    assert (report.records, report.busy_ms, report.paused) == (1, 4, TIMES_UNKNOWN)
    assert "several tasks take records" in str(app.meter.reported_work())


def test_only_empty_metadata_is_replaced(app: Application) -> None:
    """A report replaces empty metadata and older reports, but not metadata of the application."""
    assert [has_metadata(text) for text in (None, "", "fairlead1 c=x", "mine")] == [
        *(False, False, False),
        True,
    ]
    assert reported({}, app.meter, "member", paused=0) == {}


def take_next(app: Application) -> int:
    app.next(0)
    return 1


def take_batch(app: Application) -> int:
    return sum(1 for records in app.poll({0: 2, 1: 1}).values() for _ in records)


def take_list(app: Application) -> int:
    return len(app.consume([0, 1, 0])[:])


@pytest.mark.parametrize("take", [take_next, take_batch, take_list])
def test_records_passed_on_have_no_times_on_any_machine(
    app: Application, take: Callable[[Application], int]
) -> None:
    """If records are passed to other threads, reports mark processing times as unknown."""
    for number in range(400):
        app.wait(0.1)  # clock: simulated
        records = take(app)
        app.work(INTERRUPTED if number % 20 == 0 else records * PASSED_ON)
    report = app.report(0)
    assert report.handler_ms > 0.2 * sum(app.ends.values())
    assert report.paused == TIMES_UNKNOWN
    assert "threads or tasks process records" in str(app.meter.reported_work())


HONEST: dict[str, Callable[[int], float]] = {
    "quick": lambda _: 0.3e-3,
    "skips most records": lambda number: 0.0 if number % 10 else 0.4,
    "inserts after every 500th record": lambda number: QUICK if number % 500 else 20.0,
}


@pytest.mark.parametrize("takes", HONEST.values(), ids=HONEST)
def test_records_of_honest_applications_have_times(
    app: Application, takes: Callable[[int], float]
) -> None:
    """Processing times are known even if handlers are quick, or only few records need work."""
    for number in range(1, 2000):
        app.wait(0.1)  # clock: simulated
        app.next(0)
        app.work(takes(number))
    assert app.report(0).paused == 0


def work_for_days(
    app: Application, days: float, wait_s: float, takes: Callable[[int], float]
) -> int:
    """Let an application take records one by one; return the last report's field `paused`."""
    end, number, paused = app.now + days * 86_400, 0, -1
    while app.now < end:
        number += 1
        app.wait(wait_s)
        app.next(0)
        app.work(takes(number))
        paused = app.report(0).paused if number % 100 == 0 else paused
    return paused


def test_full_queue_does_not_look_like_work(app: Application) -> None:
    """Times stay unknown if a full queue blocks an application that passes records on."""
    assert work_for_days(app, 1.5, 60.0, lambda _: PASSED_ON) == TIMES_UNKNOWN
    assert work_for_days(app, 0.2, 0.1, lambda _: 20.0) == TIMES_UNKNOWN


def test_times_are_known_again_after_days_with_more_work(app: Application) -> None:
    """After days of little work, the application seems to pass records on; more work ends this."""
    skips = HONEST["skips most records"]
    assert work_for_days(app, 3.0, 60.0, skips) == TIMES_UNKNOWN
    assert work_for_days(app, 3.0, 10.0, lambda number: 100 * skips(number)) == 0


def test_threads_may_commit_at_the_same_time(app: Application) -> None:
    """If several threads commit while another takes records, no commit fails."""
    taken, usual = Event(), sys.getswitchinterval()

    def commit() -> int:
        while not taken.is_set():
            records = app.report(0, max(app.ends.get(0, 0) - 1, 0)).records
        return records

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as pool:
            commits = [pool.submit(commit) for _ in range(3)]
            for _ in range(20_000):
                app.next(0)
            taken.set()
            assert [done.result() <= 20_000 for done in commits] == [True] * 3
    finally:
        sys.setswitchinterval(usual)


def test_end_of_a_partition_is_no_quick_record(app: Application) -> None:
    """Messages that are no records (end of a partition) are not taken for quick records."""
    for _ in range(100):
        app.wait(1.0)  # clock: simulated
        app.meter.asked()
        app.meter.took_list(["end"], [(None, 1)], len)
    for _ in range(20):
        app.wait(1.0)  # clock: simulated
        app.consume([0])
        app.work(0.01)
    assert app.report(0).paused != TIMES_UNKNOWN

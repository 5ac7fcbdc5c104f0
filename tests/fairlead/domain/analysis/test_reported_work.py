"""How `fairlead decide` uses the work that consumers report, and which reports it ignores."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.flawed_reports import SEED
from benchmarks.random_scenarios import REPORTED_CAUSES, random_reports, random_scenario
from benchmarks.scoring import mark
from fairlead.domain.analysis.decide import decide
from fairlead.domain.decide_json.lines import _question, answer_question
from fairlead.domain.policy import Policy

Float64 = npt.NDArray[np.float64]
Line = dict[str, Any]
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@dataclass
class Team:
    """Consumers that report their work on partitions with equal arrival rates.

    Parameters
    ----------
    seconds
        Seconds that a consumer takes for a record, unless `times` or `slow` increase them.
    times
        Partition -> factor by which its records take longer.
    slow
        Number of a consumer -> factor by which it takes longer for each record.
    utilisation
        Utilisation of the most utilised consumer.
    spread
        Coefficient of variation of the time per record.
    """

    seed: int = 0
    consumers: int = 3
    partitions: int = 18
    seconds: float = 0.004
    times: Mapping[int, float] = field(default_factory=dict)
    slow: Mapping[int, float] = field(default_factory=dict)
    utilisation: float = 0.3
    spread: float = 0.3

    def __post_init__(self) -> None:
        self.owner = np.arange(self.partitions) * self.consumers // self.partitions
        by_record = self.seconds * np.array(
            [self.times.get(p, 1.0) for p in range(self.partitions)]
        )
        self.truth: Float64 = by_record * [self.slow.get(int(c), 1.0) for c in self.owner]
        busiest = np.bincount(self.owner, self.truth, self.consumers).max()
        self.rate = self.utilisation / busiest

    def line(self, samples: int, factor: Callable[[int], float] = lambda _: 1.0) -> Line:
        """Return an input line with one sample a minute, the first after ten minutes of work.

        `factor` maps the number of a sample to a factor of the time per record before that sample.
        """
        rng, size = np.random.default_rng(self.seed), self.partitions
        records, busy, squares = np.zeros((3, size))
        elapsed, snapshots = 0.0, []
        names = [f"c{number}" for number in range(self.consumers)]
        for number in range(samples):
            seconds = 60.0 if number else 600.0
            arrived = rng.poisson(self.rate * seconds, size)
            for place, count in enumerate(arrived.tolist()):
                mean = self.truth[place] * factor(number)
                took = rng.gamma(self.spread**-2, mean * self.spread**2, count)
                busy[place] += took.sum()
                squares[place] += np.square(took).sum()
            records += arrived
            elapsed += seconds
            offsets = (1000 + records).astype(int).tolist()
            handled = np.bincount(self.owner, busy, self.consumers)
            at = NOON + timedelta(minutes=number)
            snapshots.append(
                {
                    "at": at.isoformat(),
                    "end": {"t": offsets},
                    "committed": {"t": offsets},
                    "owners": {"t": [names[owner] for owner in self.owner]},
                    "reports": {
                        "partitions": {
                            "t": [
                                {
                                    "consumer": names[owner],
                                    "records": int(records[place]),
                                    "busy_s": round(busy[place], 3),
                                    "busy_squares_s2": round(squares[place], 6),
                                }
                                for place, owner in enumerate(self.owner)
                            ]
                        },
                        "consumers": {
                            name: {
                                "token": "a",
                                "elapsed_s": elapsed,
                                "waiting_s": elapsed - handled[place],
                                "handler_s": handled[place],
                                "calls": int(records[self.owner == place].sum()),
                                "at": at.isoformat(),
                            }
                            for place, name in enumerate(names)
                        },
                    },
                }
            )
        members = {name: {"topics": ["t"]} for name in names}
        return {"topics": {"t": size}, "members": members, "snapshots": snapshots}


UNEVEN = {"times": {5: 10.0, 9: 3.0}, "slow": {2: 1.5}}


def busy_shares(line: Line) -> Mapping[str, float | None]:
    """Return the share of time for which each consumer is busy; None: unknown."""
    question = _question(line, Policy())
    work = decide(question).work
    assert work is not None
    shares: Mapping[str, float | None] = work.row(question.problem)["consumers"]
    return shares


def reports(line: Line, number: int) -> Any:
    return line["snapshots"][number]["reports"]


def flush(line: Line, team: Team) -> None:
    """Change reports so that one record in 500 (a flush) takes all of a consumer's time."""
    rng, each_s = np.random.default_rng(0), 500 * team.seconds
    flushed = np.zeros(team.partitions)
    done = np.zeros(team.consumers)
    for number in range(len(line["snapshots"])):
        rows = reports(line, number)["partitions"]["t"]
        counts = np.bincount(team.owner, [row["records"] for row in rows])
        for consumer in range(team.consumers):
            while counts[consumer] - done[consumer] >= 500:
                flushed[rng.choice(np.flatnonzero(team.owner == consumer))] += 1
                done[consumer] += 500
        for row, flushes in zip(rows, flushed.tolist(), strict=True):
            row["busy_s"], row["busy_squares_s2"] = flushes * each_s, flushes * each_s**2


@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_intervals_contain_the_true_mean_nine_times_in_ten(spread: float) -> None:
    """After two samples, 85 to 95 % of the intervals contain the true mean time per record.

    Partitions with too few records have no interval yet.
    """
    contained = []
    for seed in range(60):
        team = Team(seed=seed, utilisation=0.5, spread=spread, **UNEVEN)  # type: ignore[arg-type]
        known = answer_question(team.line(2))["seconds_per_record"]["t"]
        contained += [
            low <= truth <= high
            for truth, (low, _, high) in (
                (truth, its) for truth, its in zip(team.truth, known, strict=True) if its
            )
        ]
    assert len(contained) > 200
    assert 0.85 <= np.mean(contained) <= 0.95


def test_expensive_partitions_and_a_slow_consumer_are_named_early() -> None:
    """After two samples, the evidence names the expensive partitions and the slow consumer."""
    answer = answer_question(Team(**UNEVEN).line(2))  # type: ignore[arg-type]
    assert answer["outcome"] == "no change"
    assert re.search(r"of t-5 takes (39|40|41) ms, (9\.\d|10) times", answer["evidence"])
    assert re.search(r"of t-9 takes (11|12|13) ms, (2\.[89]|3|3\.[12]) times", answer["evidence"])
    assert "1.5 times as long as the others" in answer["evidence"]
    assert "c0 takes" not in answer["evidence"]


def test_at_most_three_slow_consumers_are_named() -> None:
    team = Team(consumers=12, partitions=84, slow=dict.fromkeys(range(5), 2.0))
    evidence = answer_question(team.line(10))["evidence"]
    assert evidence.count("times as long as the others") == 3


def test_with_few_usual_partitions_both_explanations_are_named() -> None:
    """The evidence states that either a consumer is slow or its two partitions are expensive."""
    team = Team(consumers=4, partitions=8, slow={3: 1.5})
    assert (
        "either it is slow, or records of t-6, t-7 are expensive"
        in (answer_question(team.line(4))["evidence"])
    )


def test_capacities_are_known_from_reports_without_lag() -> None:
    """Reports show the capacity of members that have no lag, here at 60 % utilisation."""
    answer = answer_question(Team(utilisation=0.6).line(10))
    speeds = {name: row["records_per_s"] for name, row in answer["capacities"].items()}
    assert speeds == pytest.approx(dict.fromkeys(["c0", "c1", "c2"], 250.0), rel=0.05)
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "healthy")
    assert answer["forecast"]["kept"]["utilisation"] == pytest.approx(0.6, rel=0.1)


def test_capacities_are_known_although_consumers_flush() -> None:
    """Reports show capacities even if all time is spent on one record in 500."""
    team = Team(utilisation=0.6, seconds=0.02)
    line = team.line(30)
    flush(line, team)
    speeds = [row["records_per_s"] for row in answer_question(line)["capacities"].values()]
    assert speeds == pytest.approx([50.0] * 3, rel=0.25)


def test_capacities_are_known_although_every_other_partition_has_no_report() -> None:
    """A capacity is computed from the partitions with reports, and half of the busy time."""
    line = Team(utilisation=0.6).line(10)
    for number in range(len(line["snapshots"])):
        reports(line, number)["partitions"]["t"][::2] = [None] * 9
    speeds = [row["records_per_s"] for row in answer_question(line)["capacities"].values()]
    assert speeds == pytest.approx([250.0] * 3, rel=0.1)


def test_capacities_count_offsets_but_no_skipped_ones() -> None:
    """Capacities are in offsets a second: offsets without a record count, skipped records do not.

    In the test, nine of ten offsets have no record, and the backlog of one partition is skipped.
    """
    team = Team()
    dense, sparse = team.line(10), team.line(10)
    for number, sample in enumerate(sparse["snapshots"]):
        for name in ("end", "committed"):
            sample[name]["t"] = [10 * offset for offset in sample[name]["t"]]
            sample[name]["t"][0] += 5_000_000 * (number >= 5)
    known, counted = answer_question(dense), answer_question(sparse)
    assert counted["seconds_per_record"] == known["seconds_per_record"]
    for name, capacity in known["capacities"].items():
        ratio = counted["capacities"][name]["records_per_s"] / capacity["records_per_s"]
        assert ratio == pytest.approx(10.0, rel=0.01)


def test_all_consumers_slower_at_once_is_a_shared_cause() -> None:
    """If all consumers become slower at once, the evidence states this, and no plan is made.

    For example, a database may be slow.
    """
    team = Team(utilisation=0.45)
    answer = answer_question(team.line(20, lambda sample: 2.0 if sample >= 14 else 1.0))
    assert "times as long as before on all consumers" in answer["evidence"]
    assert answer["outcome"] == "no change"


@pytest.mark.parametrize("ago", [3, 5, 8, 12, 20, 24, 32])
@pytest.mark.parametrize("factor", [0.3, 2.0])
def test_mean_time_counts_from_its_last_change(ago: int, factor: float) -> None:
    """After processing times have changed, the mean covers nearly only the new times."""
    team = Team(utilisation=0.4)
    known = answer_question(team.line(60, lambda number: factor if number >= 60 - ago else 1.0))
    values = [value for _, value, _ in known["seconds_per_record"]["t"]]
    assert values == pytest.approx([0.004 * factor] * 18, rel=0.1)


@pytest.mark.parametrize("ago", [4, 12, 20])
def test_a_slow_time_that_has_ended_does_not_count(ago: int) -> None:
    """Once twenty minutes at half speed are over, capacities are as before."""
    line = Team(utilisation=0.4).line(60, lambda n: 2.0 if 40 - ago <= n < 60 - ago else 1.0)
    speeds = [row["records_per_s"] for row in answer_question(line)["capacities"].values()]
    assert speeds == pytest.approx([250.0] * 3, rel=0.1)


@pytest.mark.parametrize("factor", [1e-6, 1e-5, 1e-3])
def test_records_that_take_no_time_do_not_hide_the_others(factor: float) -> None:
    """If the records of partition 0 take almost no time, only this partition's time is unknown."""
    team = Team(times={0: factor})
    known = answer_question(team.line(20))["seconds_per_record"]["t"]
    assert [its is not None for its in known] == [False] + [True] * 17


def test_share_of_time_is_right_although_an_application_skips_records() -> None:
    """If the position of a partition jumps, its share of the consumer's time stays below 1."""
    line = Team(times={0: 3.0}).line(20)
    for number in range(10, 20):
        for name in ("end", "committed"):
            line["snapshots"][number][name]["t"][0] += 5_000_000
    shares = re.findall(r"takes (\d+)% of", answer_question(line)["evidence"])
    assert [int(share) <= 100 for share in shares] == [True]


@pytest.mark.parametrize("last", [0.4, 1.6])
def test_interval_covers_times_that_change_every_minute(last: float) -> None:
    """If the time per record changes every minute, the mean is not just that of the last minute.

    The interval contains the mean over all minutes, or the mean is unknown.
    """
    line = Team(utilisation=0.4).line(30, lambda number: (last, 2.0 - last)[number % 2 == 0])
    known = answer_question(line)["seconds_per_record"]["t"]
    assert [its for its in known if its and not its[0] <= 0.004 <= its[2]] == []


@pytest.mark.parametrize("number", [10, 19, 108, 540, 836])
def test_no_consumer_is_slow_by_chance(number: int) -> None:
    """Diagnoses are right even if consumers flush, times vary, or reports are false or outdated.

    Of the five groups, two are healthy, two are unbalanced, and one has an expensive partition.
    """
    labelled = random_scenario(number, real=True, causes=REPORTED_CAUSES)
    scenario = replace(labelled.scenario, reports=random_reports(number))
    marks = mark(replace(labelled, scenario=scenario), plans=False, seed=SEED, reports=True)
    assert [marked.diagnosed for marked in marks if not marked.right] == []


def spoil_records(line: Line) -> None:
    """Report more records than the committed offsets have advanced."""
    for number in range(5, len(line["snapshots"])):
        reports(line, number)["partitions"]["t"][5]["records"] += 1_000_000


def spoil_time(line: Line) -> None:
    """Report more busy seconds than have passed."""
    for number in range(5, len(line["snapshots"])):
        reports(line, number)["partitions"]["t"][5]["busy_s"] += 600.0


def spoil_counter(line: Line) -> None:
    """Let a counter decrease although its token (one per run of a consumer) is unchanged."""
    reports(line, 5)["partitions"]["t"][5]["busy_s"] = 0.0


def spoil_numbers(line: Line) -> None:
    """Report numbers that are negative or not finite."""
    row = reports(line, 5)["partitions"]["t"][5]
    row.update(records=-1, busy_s=float("nan"), busy_squares_s2=float("inf"))


@pytest.mark.parametrize("spoil", [spoil_records, spoil_time, spoil_counter, spoil_numbers])
def test_impossible_reports_are_ignored_and_mentioned(spoil: Callable[[Line], None]) -> None:
    """If a report is impossible, the evidence mentions this, and all other reports are used."""
    team = Team(utilisation=0.6, **UNEVEN)  # type: ignore[arg-type]
    line = team.line(12)
    spoil(line)
    answer = answer_question(line)
    assert answer["evidence"].count("with impossible values") == 1
    known = answer["seconds_per_record"]["t"]
    assert [value for _, value, _ in known] == pytest.approx(team.truth, rel=0.1)
    assert answer["outcome"] == "no change"


def report_rarely(line: Line) -> None:
    """Let consumers commit, and thereby report, only every five minutes."""
    snapshots = line["snapshots"]
    for number in range(len(snapshots)):
        written = snapshots[max(0, 5 * ((number + 4) // 5) - 4)]
        snapshots[number].update({key: written[key] for key in ("committed", "reports")})
    for its in reports(line, 0)["consumers"].values():
        its.update(elapsed_s=its["elapsed_s"] - 240.0, waiting_s=its["waiting_s"] - 240.0)


def report_records_under_way(line: Line) -> None:
    """In samples 0, 2, 4, ..., report the time spent so far on a record in progress."""
    for number in range(len(line["snapshots"])):
        for row in reports(line, number)["partitions"]["t"]:
            rest_s = 0.1 * (1 - number % 2)
            row["busy_s"] -= rest_s
            row["busy_squares_s2"] -= rest_s**2


def report_rests_of_batches(line: Line) -> None:
    """Report batches of one record each; work at the end of a batch takes as long as the record."""
    for number in range(len(line["snapshots"])):
        for row in reports(line, number)["partitions"]["t"]:
            row["busy_squares_s2"] /= 2.0


@pytest.mark.parametrize(
    "change", [report_rarely, report_records_under_way, report_rests_of_batches]
)
def test_honest_reports_are_not_ignored(change: Callable[[Line], None]) -> None:
    """Reports are used even if they are rare, or include a record in progress or other work."""
    team = Team(seconds=0.1, utilisation=0.2, spread=0.001)
    line = team.line(16)
    change(line)
    answer = answer_question(line)
    assert "ignored" not in answer["evidence"]
    known = answer["seconds_per_record"]["t"]
    assert [value for _, value, _ in known] == pytest.approx(team.truth, rel=0.05)


def test_random_reports_cause_no_error_and_no_plan() -> None:
    """If a tenth of the reported values is replaced by odd ones, the answer is "no change"."""
    rng = random.Random(0)
    odd = (0, -1, 1, 1e-9, 1e300, 2**70, float("nan"), float("inf"))
    for seed in range(60):
        team = Team(seed=seed, utilisation=0.6, **UNEVEN)  # type: ignore[arg-type]
        line = team.line(rng.randint(2, 12))
        for number in range(len(line["snapshots"])):
            report = reports(line, number)
            for row in (*report["partitions"]["t"], *report["consumers"].values()):
                for key in row:
                    if rng.random() < 0.1:
                        row[key] = {"consumer": "c1", "token": "b", "at": NOON.isoformat()}.get(
                            key, rng.choice(odd)
                        )
            if rng.random() < 0.1:
                del line["snapshots"][number]["reports"]["consumers"]["c0"]
        assert answer_question(line)["outcome"] == "no change"


def test_reports_across_a_restart_or_by_a_former_owner_do_not_count() -> None:
    line = Team(utilisation=0.6).line(2)
    for row in reports(line, 1)["consumers"].values():
        row["token"] = "b"  # noqa: S105 - of a restart
    assert answer_question(line)["seconds_per_record"]["t"] == [None] * 18
    line = Team(utilisation=0.6).line(2)
    line["snapshots"][-1]["owners"]["t"] = ["c1"] * 18
    known = answer_question(line)["seconds_per_record"]["t"]
    assert [value is not None for value in known] == [6 <= place < 12 for place in range(18)]
    assert "impossible" not in answer_question(line)["evidence"]


def test_utilisation_of_a_consumer_with_paused_partitions_is_unknown() -> None:
    """If a consumer has paused partitions, its utilisation is unknown, but not its time per record.

    A consumer that pauses partitions works outside the calls whose time it reports.
    """
    line = Team(**UNEVEN).line(4)  # type: ignore[arg-type]
    for number in range(4):
        for row in reports(line, number)["consumers"].values():
            row["paused"] = 2
    evidence = answer_question(line)["evidence"]
    assert "of t-9 takes 12 ms" in evidence
    assert "%" not in evidence


def test_times_are_unknown_if_the_newest_report_says_so() -> None:
    """A consumer's times are unknown only if its newest report states that they are unknown."""
    line = Team().line(4)
    reports(line, 0)["consumers"]["c0"]["paused"] = None
    reports(line, 3)["consumers"]["c1"]["paused"] = None
    answer = answer_question(line)
    known = [seconds is not None for seconds in answer["seconds_per_record"]["t"]]
    assert known == [not 6 <= place < 12 for place in range(18)]
    assert [share is None for share in busy_shares(line).values()] == [False, True, False]
    assert "ignored" not in answer["evidence"]


def test_records_that_are_only_queued_have_no_known_cost() -> None:
    """If consumers only put records into a queue (4 µs each), times and costs are unknown."""
    line = Team(seconds=4e-6, utilisation=0.01).line(8)
    answer = answer_question(line)
    assert answer["seconds_per_record"]["t"] == [None] * 18
    assert answer["costs"]["t"] == [None] * 18
    assert busy_shares(line) == {"c0": None, "c1": None, "c2": None}


def test_consumers_that_flush_are_as_busy_as_they_report() -> None:
    """Flushes are part of a consumer's busy time, but not of its time per record."""
    line = Team(seconds=4e-6, utilisation=0.01).line(8)
    for number in range(8):
        for its in reports(line, number)["consumers"].values():
            its["handler_s"] += 0.3 * its["elapsed_s"]
            its["waiting_s"] -= 0.3 * its["elapsed_s"]
    assert list(busy_shares(line).values()) == pytest.approx([0.3] * 3, abs=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda its: its.update(partitions=[1]), r"reports\.partitions: "),
        (lambda its: its["partitions"].update(t=7), r"reports\.partitions\.t: 7 is not a list"),
        (lambda its: its["partitions"]["t"].insert(0, {"records": 1}), r"t\[0\]\.?.*consumer"),
        (lambda its: its["consumers"]["c0"].update(token=7), r"consumers\.c0\.token: 7"),
        (
            lambda its: its["consumers"]["c0"].update(elapsed_s="x"),
            r"c0\.elapsed_s: .* not a number",
        ),
        (lambda its: its["consumers"]["c0"].update(at="noon"), r"consumers\.c0\.at"),
        (lambda its: its.update(more={}), r"more"),
    ],
)
def test_an_invalid_report_is_an_error(change: Callable[[Any], None], message: str) -> None:
    line = Team().line(2)
    change(reports(line, 1))
    with pytest.raises(ValueError, match=message):
        answer_question(line)

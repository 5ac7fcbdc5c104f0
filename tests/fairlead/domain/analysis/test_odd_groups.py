"""Unusual groups: missing samples, different subscriptions, odd commits, transactions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fairlead.domain.decide_json.lines import answer_question
from tests.fairlead.domain.analysis.outside import (
    HOUR,
    Floats,
    Group,
    Loop,
    answer_after,
    steady,
    written,
)
from tests.fairlead.domain.analysis.questions import (
    FRESH,
    PER_STEP,
    arriving,
    behind,
    halves,
    prompt,
    question,
    skewed,
)


def names(count: int) -> Mapping[str, tuple[str, ...]]:
    """Return subscriptions to topic `t` for this many members."""
    return {f"m{number}": ("t",) for number in range(count)}


def catching_up() -> dict[str, Any]:
    """Return an input line about three equal members that have read a backlog for an hour."""
    group = Group(
        steady(np.full(9, 80.0 / 3)),
        steady(np.full(3, 100.0)),
        topics={"t": 9},
        reads=names(3),
        backlog=np.full(9, 80_000.0),
    )
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    return loop.question()


@pytest.mark.parametrize("ago", [1, 2, 3, 4, 7])
def test_a_partition_missing_in_a_sample_makes_no_member_slow(ago: int) -> None:
    """The member keeps its measured capacity although a sample lacks two of its partitions."""
    line = catching_up()
    whole = answer_question(line)
    assert whole["diagnosis"] == "recovering"
    for partition in (0, 1):
        line["snapshots"][-ago]["end"]["t"][partition] = None
    answer = answer_question(line)
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "recovering")
    speed = answer["capacities"]["m0"]["records_per_s"]
    assert speed == pytest.approx(whole["capacities"]["m0"]["records_per_s"], rel=0.05)


@pytest.mark.parametrize("samples", range(1, 8))
def test_a_group_is_unknown_until_there_are_six_samples(samples: int) -> None:
    """The diagnosis is "unknown" before the sixth sample, and then "unbalanced"."""
    answer = answer_question(question(samples, end=skewed, committed=behind))
    assert answer["diagnosis"] == ("unbalanced" if samples >= 6 else "unknown")


def test_the_smaller_of_two_move_limits_applies() -> None:
    for rules, option in ((1, 3), (3, 1)):
        policy = {"max_moves": rules, "options": {"sticky-lag-aware": {"max_moves": option}}}
        answer = answer_question(question(end=skewed, committed=behind, policy=policy))
        assert (answer["outcome"], answer["moved"]) == ("plan", 1)


def test_a_move_limit_does_not_end_the_cooldown() -> None:
    policy = {"cooldown": "PT2H", "options": {"sticky-lag-aware": {"max_moves": 3}}}

    def owner(partition: int, step: int) -> str | None:
        return None if partition == 7 else halves(partition, step)

    answer = answer_question(
        question(
            end=skewed, committed=behind, owner=owner, policy=policy, changed_at=written(-900.0)
        )
    )
    assert (answer["outcome"], answer["moved"]) == ("plan", 0)


def test_readers_of_other_topics_are_no_peers() -> None:
    """The fast readers of another topic do not raise the assumed capacity of three slow members.

    Three members read 50 records a second, the others 5,000.
    """
    heavy, light = {f"a{n}": ("heavy",) for n in range(3)}, {f"b{n}": ("light",) for n in range(3)}
    rates = np.concatenate((np.full(8, 15.0), np.full(6, 1500.0)))
    backlog = np.concatenate((np.zeros(8), np.full(6, 1_500_000.0)))
    group = Group(
        steady(rates),
        steady(np.array([50.0] * 3 + [5_000.0] * 3)),
        topics={"heavy": 8, "light": 6},
        reads={**heavy, **light},
        backlog=backlog,
        owner=np.array([0, 0, 0, 0, 1, 1, 1, 2, 3, 3, 4, 4, 5, 5]),
    )
    answer = answer_after(group)
    assert answer["outcome"] == "plan"
    assert answer["diagnosis"] == "unbalanced"
    assert all(len(answer["assignment"][name]["heavy"]) <= 3 for name in heavy)


@pytest.mark.parametrize(
    ("rates", "backlog"),
    [([75.0, 75.0, 75.0, 75.0], 0.0), ([25.0, 25.0, 25.0, 25.0], 200_000.0)],
)
def test_readers_of_other_topics_prevent_no_plan(rates: list[float], backlog: float) -> None:
    """One move relieves the readers of topic a although readers of topic b are at their limit."""
    group = Group(
        steady(np.array([60.0, 60.0, 10.0, *rates])),
        steady(np.full(4, 100.0)),
        topics={"a": 3, "b": 4},
        reads={"a0": ("a",), "a1": ("a",), "b0": ("b",), "b1": ("b",)},
        backlog=np.array([0.0] * 3 + [backlog] * 4),
        owner=np.array([0, 0, 1, 2, 2, 3, 3]),
    )
    answer = answer_after(group)
    assert (answer["outcome"], answer["moved"]) == ("plan", 1)
    assert len(answer["assignment"]["a1"]["a"]) == 2


def test_moves_are_limited_over_all_topics() -> None:
    """Two topics need one move each; if the policy allows one move, only one partition moves."""
    rates = np.array([60.0, 60.0, 10.0, 90.0, 90.0, 10.0])
    group = Group(
        steady(rates),
        steady(np.full(4, 100.0)),
        topics={"a": 3, "b": 3},
        reads={"a0": ("a",), "a1": ("a",), "b0": ("b",), "b1": ("b",)},
        owner=np.array([0, 0, 1, 2, 2, 3]),
    )
    loop = Loop(group, decide_s=1e9)
    loop.run(1.0)
    assert answer_question(loop.question())["moved"] == 2
    answer = answer_question(loop.question() | {"policy": {"max_moves": 1}})
    assert answer["moved"] == 1
    assert len(answer["assignment"]["b1"]["b"]) == 2


def test_a_group_whose_owners_change_all_the_time_is_unknown() -> None:
    """If owners change at each sample, no capacity can be measured: the group is unknown."""
    line = question(
        12,
        end=lambda _, step: 10_000 + 3_600 * step,
        committed=lambda _, step: 1_800 * step,
        owner=lambda place, step: "ab"[(place + step) % 2],
    )
    assert answer_question(line)["diagnosis"] == "unknown"


def test_a_partition_is_stuck_beside_others_that_are_not_read_to_their_end() -> None:
    """An unread partition is stuck, even if its owner reads only 90 % of its other partitions."""
    line = question(
        30,
        end=lambda _, step: 10_000 + 3_600 * step,
        committed=lambda place, step: (
            10_000 + (3_600 * step if place >= 4 else 3_240 * step if place else 0)
        ),
    )
    answer = answer_question(line)
    assert (answer["diagnosis"], answer["names"]) == ("stuck partition", ["t-0"])


@pytest.mark.parametrize("committed", [None, 0])
def test_a_topic_without_readers_changes_no_answer(committed: int | None) -> None:
    """A topic that no member reads does not affect the answer, however many records it gets."""
    alone, beside = (question(end=skewed, committed=behind) for _ in range(2))
    beside["topics"]["u"] = 2
    for step, snapshot in enumerate(beside["snapshots"]):
        snapshot["end"]["u"] = [100_000 * step] * 2
        snapshot["committed"]["u"] = [committed] * 2
    expected, answer = answer_question(alone), answer_question(beside)
    assert expected["outcome"] == "plan"
    for figure in ("costs", "seconds_per_record"):
        assert answer.pop(figure) == expected.pop(figure) | {"u": [None, None]}
    assert answer.pop("memory")["members"] == expected.pop("memory")["members"]
    assert answer == expected


def test_a_silent_member_keeps_its_partitions_and_blocks_no_plan() -> None:
    """A plan relieves an overloaded member; the partition of a member that hangs is not moved."""
    owner = np.array([0] * 8 + [member for member in range(1, 9) for _ in range(2)] + [9])
    rates = np.array([18.0] * 24 + [5.0])
    speeds = np.array([100.0] * 9 + [0.0])
    reads = {f"m{number}": ("t",) for number in range(10)}
    group = Group(steady(rates), steady(speeds), topics={"t": 25}, reads=reads, owner=owner)
    answer = answer_after(group)
    assert (answer["outcome"], answer["diagnosis"]) == ("plan", "unbalanced")
    assert "m9 has committed nothing" in answer["evidence"]
    assert answer["assignment"]["m9"] == {"t": [24]}
    assert len(answer["assignment"]["m0"]["t"]) <= 5


def test_a_group_recovers_although_a_member_hangs() -> None:
    """After an outage, the diagnosis is "recovering" even if one of ten members still hangs."""

    def speeds(now: float) -> Floats:
        return np.append(np.full(9, 0.0 if HOUR <= now < 3 * HOUR else 100.0), 0.0)

    group = Group(
        steady(np.full(30, 10.0)),
        speeds,
        topics={"t": 30},
        reads={f"m{number}": ("t",) for number in range(10)},
        owner=np.repeat(np.arange(10), 3),
    )
    answer = answer_after(group, 3.3)
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "recovering")
    assert "m9 has committed nothing" in answer["evidence"]


def test_a_group_with_constant_replacements_is_planned() -> None:
    """The group gets a plan although one of its sixty members is replaced every two minutes."""
    members, step_s = 60, 120.0
    spare = 40

    def present(now: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        gone = int(now // step_s) % spare
        there = np.ones(members + spare, dtype=bool)
        there[10 : 10 + gone] = False
        there[members + gone :] = False
        return there

    rates = np.where(np.arange(2 * members) < 8, 80.0, 20.0)
    group = Group(
        steady(rates),
        steady(np.full(members + spare, 100.0)),
        topics={"t": 2 * members},
        reads={f"m{number:03d}": ("t",) for number in range(members + spare)},
        present=present,
        owner=np.repeat(np.arange(members), 2),
    )
    answer = answer_after(group)
    assert answer["outcome"] == "plan"
    assert answer["diagnosis"] == "unbalanced"


def test_a_sample_without_owners_is_no_rebalance() -> None:
    """If one recent sample lacks owners, the plan is the same as if the sample had them."""
    line = question(end=skewed, committed=behind)
    whole = answer_question(line)
    line["snapshots"][-3]["owners"]["t"] = [None] * 8
    answer = answer_question(line)
    assert (answer["outcome"], answer["moved"]) == (whole["outcome"], whole["moved"])


def of_both(_: int, step: int) -> int:
    """Return a partition's end offset if two records arrive a second."""
    return 100_000 + 2 * PER_STEP * step


def test_a_member_overtaken_by_retention_is_not_silent() -> None:
    """A member that commits is not silent, even if the log starts beyond the committed offsets."""
    line = question(61, end=of_both, committed=lambda p, step: of_both(p, step) - 600 * (p < 4))
    for step, snapshot in enumerate(line["snapshots"]):
        snapshot["begin"]["t"] = [of_both(p, step) - 500 for p in range(8)]
    answer = answer_question(line)
    assert answer["diagnosis"] != "unknown", answer["evidence"]


def test_deleted_records_do_not_count_as_read() -> None:
    """Records that retention deleted before a member read them do not raise its capacity.

    Committed offsets advance by 8/s; three quarters of these records were deleted.
    """

    def left(partition: int, step: int) -> int:
        return of_both(partition, step) - (900 if partition < 4 else FRESH)

    line = question(61, end=of_both, committed=left)
    for step, snapshot in enumerate(line["snapshots"]):
        begin = [left(p, step) - PER_STEP // 2 if p < 4 else 0 for p in range(8)]
        snapshot["begin"]["t"] = begin
    answer = answer_question(line)
    assert answer["capacities"]["a"]["records_per_s"] == pytest.approx(2.0)


@pytest.mark.parametrize("beyond", [300, 1_000_000])
def test_commits_beyond_the_log_are_unknown(beyond: int) -> None:
    """The group is unknown if its commits, copied from another cluster, exceed the end offsets."""

    def copied(partition: int, step: int) -> int:
        return arriving(partition, 20) + beyond if partition < 4 else prompt(partition, step)

    answer = answer_question(question(committed=copied))
    assert (answer["diagnosis"], answer["names"]) == ("unknown", ["a"])
    assert "created again" in answer["evidence"]


def test_a_group_without_commits_that_starts_at_the_end_is_unknown() -> None:
    """With `latest` and no commits, a group with arrivals is unknown, and an idle one healthy."""
    line = question(20, committed=lambda _, __: None, policy={"auto_offset_reset": "latest"})
    answer = answer_question(line)
    assert (answer["diagnosis"], answer["names"]) == ("unknown", ["a", "b"])
    quiet = question(20, end=lambda p, _: p, committed=lambda _, __: None, policy=line["policy"])
    assert answer_question(quiet)["diagnosis"] == "healthy"


@pytest.mark.parametrize("reset", ["none", "by_duration:P1DT6H", "by_duration:PT0.5S"])
def test_partition_without_a_commit_is_unread_unless_reset_is_latest(reset: str) -> None:
    """For `none` and `by_duration`, the whole log is lag, as for `earliest`."""

    def answer_with(policy: str) -> dict[str, Any]:
        def committed(partition: int, step: int) -> int | None:
            return None if partition == 1 else prompt(partition, step)

        line = question(committed=committed, policy={"auto_offset_reset": policy})
        return answer_question(line)

    assert answer_with(reset) == answer_with("earliest") != answer_with("latest")


@pytest.mark.parametrize("after_s", [1, 2, 5])
def test_short_steps_between_samples_have_little_weight(after_s: int) -> None:
    """Samples that are a few seconds apart do not distort capacities if commits are 5 s apart.

    Such samples occur because a planning run takes its sample seconds after a regular sample.
    """
    group = Group(
        steady(np.full(6, 10.0)), steady(np.full(2, 100.0)), topics={"t": 6}, reads=names(2)
    )
    every = [60.0 * step + after for step in range(61) for after in (0.0, after_s)]

    def read(now: float, partition: int) -> int:
        """Return the last committed offset, if a commit is made every 5 s."""
        return int(10 * 5 * ((now + partition) // 5))

    line = Loop(group, decide_s=1e9)
    line.run(0.1)
    question = line.question()
    owners = {"t": [f"m{partition % 2}" for partition in range(6)]}
    question["snapshots"] = [
        {
            "at": written(now),
            "begin": {"t": [0] * 6},
            "end": {"t": [int(10 * now) + 100] * 6},
            "committed": {"t": [read(now, partition) for partition in range(6)]},
            "owners": owners,
        }
        for now in every
    ]
    answer = answer_question(question)
    for name in ("m0", "m1"):
        assert answer["capacities"][name]["records_per_s"] == pytest.approx(30.0, rel=0.05)
        assert not answer["capacities"][name]["measured"]


@pytest.mark.parametrize("minutes", range(57, 64))
def test_a_partition_stays_stuck_for_more_than_an_hour(minutes: int) -> None:
    """A partition stays stuck even if its last commit is older than the hour of samples."""
    series = 90

    def still(partition: int, step: int) -> int:
        return prompt(partition, min(step, series - 1 - minutes) if partition == 1 else step)

    answer = answer_question(question(series, committed=still))
    assert (answer["diagnosis"], answer["names"]) == ("stuck partition", ["t-1"])


def test_a_partition_that_waits_for_its_turn_is_not_stuck() -> None:
    """If members read their partitions' backlogs one after the other, no partition is stuck."""
    minutes, backlog = 6, 50_000

    def filling(partition: int, step: int) -> int:
        return backlog + arriving(partition, step)

    def in_turn(partition: int, step: int) -> int:
        done = np.clip(step - partition % 4 * minutes, 0, minutes) / minutes
        return int(filling(partition, 0) - backlog * (1 - done))

    for series in range(4, 4 * minutes + 1):
        answer = answer_question(question(series, end=filling, committed=in_turn))
        assert answer["diagnosis"] != "stuck partition", (series, answer["evidence"])


def slowly(share: float, others: int = 3) -> dict[str, Any]:
    """Return an input line in which only a share of the arrivals of partition t-0 is read.

    The owner of t-0 has almost no lag in some other partitions; `others` is their number.
    """
    series = 30

    def throttled(partition: int, step: int) -> int:
        if partition == 0:
            return arriving(0, 0) + int(share * PER_STEP * step)
        return prompt(partition, step) - (5 * PER_STEP if others < partition < 4 else 0)

    return question(series, committed=throttled)


def test_a_throttled_partition_gets_no_plan() -> None:
    """A partition is throttled if its owner keeps up with the other partitions; no plan is made."""
    answer = answer_question(slowly(0.5))
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "throttled partition")
    assert answer["names"] == ["t-0"]
    assert "1/s arrive, 0.5/s are read" in answer["evidence"]
    assert answer["forecast"]["kept"]["time_lag_s"] < 60.0
    assert answer["capacities"]["a"]["records_per_s"] < 4.0
    assert not answer["capacities"]["a"]["measured"]


@pytest.mark.parametrize(("share", "others"), [(0.5, 1), (0.9, 3)])
def test_little_evidence_shows_no_throttled_partition(share: float, others: int) -> None:
    """A partition is not "throttled" if 90 % of it is read, or if most others lag, too."""
    assert answer_question(slowly(share, others))["diagnosis"] != "throttled partition"


def test_an_overload_beside_a_throttled_partition_is_planned() -> None:
    """A plan relieves the overloaded member a, and member b keeps its throttled partition."""

    def both(partition: int, step: int) -> int:
        if partition == 7:
            return 1000 + PER_STEP * step // 3
        return behind(partition, step)

    answer = answer_question(question(30, end=skewed, committed=both))
    assert (answer["outcome"], answer["diagnosis"]) == ("plan", "throttled partition")
    assert 7 in answer["assignment"]["b"]["t"]
    assert answer["moved"] > 0


#: Number of the sample at which `held` opens a transaction, which blocks later records.
OPEN = 8


def held(
    partitions: int = 1, *, until: int = 99, short: int = 0, marker: int = 0, series: int = 20
) -> dict[str, Any]:
    """Return an input line about partitions that are blocked by an open transaction.

    Parameters
    ----------
    partitions
        How many of the eight partitions are blocked.
    until
        Number of the first sample after the end of the transaction.
    short
        Number of unread records before the transaction.
    marker
        Number of offsets taken by the marker of the previous transaction.
    """

    def blocked(partition: int, step: int) -> bool:
        return partition < partitions and step > OPEN

    def committed(partition: int, step: int) -> int:
        stood = arriving(partition, OPEN) - short - marker
        return stood if blocked(partition, step) else prompt(partition, step)

    def stable_end(partition: int, step: int) -> int | None:
        if not blocked(partition, step):
            return None
        return arriving(partition, step if step >= until else OPEN)

    return question(series, committed=committed, stable_end=stable_end)


@pytest.mark.parametrize("partitions", [1, 4, 8])
@pytest.mark.parametrize("marker", [0, 1])
def test_records_behind_an_open_transaction_are_not_stuck(partitions: int, marker: int) -> None:
    """If a transaction stays open, the group is healthy, and the evidence has the opening time."""
    answer = answer_question(held(partitions, marker=marker))
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "healthy")
    assert "A transaction has been open on t-0" in answer["evidence"]
    assert " since 2026-03-02 00:08 UTC (11 min)" in answer["evidence"]
    assert ("Transactions are also open on" in answer["evidence"]) == (partitions > 1)
    assert answer["forecast"]["kept"]["time_lag_s"] == 0.0


def test_a_transaction_may_be_older_than_all_samples() -> None:
    line = held()
    line["snapshots"] = line["snapshots"][OPEN + 3 :]
    since = "on t-0 since before 2026-03-02 00:11 UTC (8 min)"
    assert since in answer_question(line)["evidence"]


def test_readable_records_before_a_transaction_may_be_stuck() -> None:
    """If 30 records before an open transaction are not read, the partition is stuck."""
    answer = answer_question(held(short=30))
    assert (answer["diagnosis"], answer["names"]) == ("stuck partition", ["t-0"])
    assert "transaction" not in answer["evidence"]


def test_a_reader_beyond_the_stable_end_reads_uncommitted() -> None:
    """If a group has committed beyond the last stable offset, lag is measured to the log end."""

    def committed(partition: int, step: int) -> int:
        return min(arriving(partition, step), 2000) if partition == 0 else prompt(partition, step)

    stable = question(committed=committed, stable_end=lambda p, _: 1500 if p == 0 else None)
    assert answer_question(stable) == answer_question(question(committed=committed))

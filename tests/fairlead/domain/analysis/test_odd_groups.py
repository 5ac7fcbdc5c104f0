"""Unusual groups: missing samples, different subscriptions, odd commits, transactions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fairlead.domain.decide_json.lines import answer_question
from tests.fairlead.domain.analysis.outside import Group, Loop, answer_after, steady, written
from tests.fairlead.domain.analysis.questions import (
    FRESH,
    PER_STEP,
    Owner,
    arriving,
    behind,
    halves,
    prompt,
    question,
    skewed,
)


def names(count: int) -> Mapping[str, tuple[str, ...]]:
    """Return subscriptions of this many members to the topic t."""
    return {f"m{number}": ("t",) for number in range(count)}


def catching_up() -> dict[str, Any]:
    """Return a line about three equal members, an hour into reading a backlog."""
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
    """The last or an earlier sample lacks two partitions of a member."""
    line = catching_up()
    whole = answer_question(line)
    assert whole["diagnosis"] == "recovering"
    for partition in (0, 1):
        line["snapshots"][-ago]["end"]["t"][partition] = None
    answer = answer_question(line)
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "recovering")
    speed = answer["capacities"]["m0"]["records_per_s"]
    assert speed == pytest.approx(whole["capacities"]["m0"]["records_per_s"], rel=0.05)


@pytest.mark.parametrize("members", [2, 3])
def test_a_slow_member_among_idle_ones_is_relieved(members: int) -> None:
    """A member reads 15 of 40/s; its peers are at 40 % and were never at their limit."""
    speeds = np.full(members, 100.0)
    speeds[0] = 15.0
    topics = {"t": 2 * members}
    rates = steady(np.full(2 * members, 20.0))
    group = Group(rates, steady(speeds), topics=topics, reads=names(members))
    loop = Loop(group, decide_s=900.0, since_h=2.0)
    course = loop.run(3.0)
    assert course.plans
    assert course.over_objective == 0


def test_of_two_budgets_of_moves_the_smaller_counts() -> None:
    for rules, option in ((1, 3), (3, 1)):
        policy = {"max_moves": rules, "options": {"sticky-lag-aware": {"max_moves": option}}}
        answer = answer_question(question(end=skewed, committed=behind, policy=policy))
        assert (answer["outcome"], answer["moved"]) == ("plan", 1)


def test_a_budget_of_moves_lifts_no_cooldown() -> None:
    policy = {"cooldown": "PT2H", "options": {"sticky-lag-aware": {"max_moves": 3}}}

    def nobodys(partition: int, look: int) -> str | None:
        return None if partition == 7 else halves(partition, look)

    answer = answer_question(
        question(
            end=skewed,
            committed=behind,
            owner=nobodys,
            policy=policy,
            changed_at=written(-900.0),
        )
    )
    assert (answer["outcome"], answer["moved"]) == ("plan", 0)


def test_readers_of_other_topics_are_no_peers() -> None:
    """Three read heavy records, 50/s; three others read light ones, 5,000/s, and had a backlog."""
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
    ("rates", "diagnosis", "words"),
    [
        ([60.0, 20.0], "hot partition", "the fastest member can process 50/s"),
        ([30.0] * 4, "overloaded", "the 2 members that read these topics can process 100/s"),
    ],
)
def test_readers_of_other_topics_cannot_help(
    rates: list[float], diagnosis: str, words: str
) -> None:
    """Two members of 50/s get too much; two of 500/s with room read another topic."""
    count = len(rates)
    group = Group(
        steady(np.array([*rates, *[20.0] * 4])),
        steady(np.array([50.0, 50.0, 500.0, 500.0])),
        topics={"a": count, "b": 4},
        reads={"a1": ("a",), "a2": ("a",), "b1": ("b",), "b2": ("b",)},
    )
    answer = answer_after(group)
    assert answer["diagnosis"] == diagnosis
    assert words in answer["evidence"]


@pytest.mark.parametrize("committed", [None, 0])
def test_a_topic_without_readers_changes_no_answer(committed: int | None) -> None:
    """A topic without readers gets ten times the group's capacity; the answer does not change."""
    alone, beside = (question(end=skewed, committed=behind) for _ in range(2))
    beside["topics"]["u"] = 2
    for look, snapshot in enumerate(beside["snapshots"]):
        snapshot["end"]["u"] = [100_000 * look] * 2
        snapshot["committed"]["u"] = [committed] * 2
    expected, answer = answer_question(alone), answer_question(beside)
    assert expected["outcome"] == "plan"
    for figure in ("costs", "seconds_per_record"):
        assert answer.pop(figure) == expected.pop(figure) | {"u": [None, None]}
    assert answer.pop("memory")["members"] == expected.pop("memory")["members"]
    assert answer == expected


def test_owners_of_several_hot_partitions_read_nothing_else() -> None:
    """Two members of 60/s own a partition of 200/s each; other members take everything else."""
    rates, speeds = np.full(30, 4.0), np.array([60.0, 60.0, 60.0, 160.0, 160.0])
    rates[[0, 6]] = 200.0
    reads = {f"m{number}": ("t",) for number in range(5)}
    owner = np.repeat(np.arange(5), 6)
    group = Group(steady(rates), steady(speeds), topics={"t": 30}, reads=reads, owner=owner)
    answer = answer_after(group)
    assert (answer["outcome"], answer["diagnosis"]) == ("plan", "hot partition")
    assert [answer["assignment"][name]["t"] for name in ("m0", "m1")] == [[0], [6]]


def test_large_partitions_go_to_different_members() -> None:
    """Two of 97/s are with a member of 100/s: more than is planned with, and no more than it does.

    Four others have room for one of them.
    """
    rates = np.full(30, 4.0)
    rates[:2] = 97.0
    owner = np.repeat(np.arange(5), 6)
    group = Group(
        steady(rates), steady(np.full(5, 100.0)), topics={"t": 30}, reads=names(5), owner=owner
    )
    answer = answer_after(group)
    assert (answer["outcome"], answer["diagnosis"]) == ("plan", "unbalanced")
    assert all(not {0, 1} <= set(reads["t"]) for reads in answer["assignment"].values())


def test_two_measured_members_do_not_say_that_a_group_is_overloaded() -> None:
    """The other two were never at their limit, so their capacity is unknown."""
    speeds, rates = np.array([249.0, 249.0, 249.0, 107.0]), np.full(34, 25.0)
    owner = np.array([0] * 10 + [1] * 9 + [2] * 9 + [3] * 6)
    group = Group(steady(rates), steady(speeds), topics={"t": 34}, reads=names(4), owner=owner)
    answer = answer_after(group)
    assert (answer["diagnosis"], answer["names"]) == ("slow member", ["m3"])
    assert "1 more would do, of 249/s each" in answer["consumers"]["why"]


def test_a_silent_member_keeps_its_partitions_and_blocks_no_plan() -> None:
    """The last of ten hangs at a record; the first gets 144/s of 100."""
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


@pytest.mark.long
@pytest.mark.parametrize(("count", "seed"), [(500, 29), (1300, 2)])
def test_a_healthy_group_that_commits_after_so_many_records_in_all_gets_no_plan(
    count: int, seed: int
) -> None:
    """Members with fewer records commit less often, or nearly as often as samples are taken."""
    rng = np.random.default_rng(seed)
    members = 12
    rates = np.exp(rng.normal(np.log(5.0), 0.5, 4 * members))
    used = rates.reshape(4, members).sum(axis=0).max() / 0.7
    group = Group(
        steady(rates),
        steady(np.full(members, used)),
        topics={"t": rates.size},
        reads=names(members),
        by_count=count,
        in_all=True,
    )
    course = Loop(group, seed=seed, since_h=0.0).run(4.0)
    assert not course.plans
    assert {name for name, _ in course.said} == {"healthy"}


@pytest.mark.parametrize("seldom_s", [120.0, 420.0])
def test_a_member_that_commits_less_often_than_others_is_no_reason_for_a_plan(
    seldom_s: float,
) -> None:
    """The timer of the member commits all its partitions at once."""
    rates = np.exp(np.random.default_rng(1).normal(np.log(5.0), 0.3, 24))
    group = Group(
        steady(rates),
        steady(np.full(6, 50.0)),
        topics={"t": 24},
        reads=names(6),
        commit_s=np.array([seldom_s] + [5.0] * 5),
    )
    course = Loop(group, since_h=1.0).run(5.0)
    assert not course.plans
    assert {name for name, _ in course.said} == {"healthy"}


def test_a_group_with_constant_replacements_is_planned() -> None:
    """At every other sample, one of sixty members is replaced by a new one."""
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
    """The coordinator did not answer at the sample two minutes ago."""
    line = question(end=skewed, committed=behind)
    whole = answer_question(line)
    line["snapshots"][-3]["owners"]["t"] = [None] * 8
    answer = answer_question(line)
    assert (answer["outcome"], answer["moved"]) == (whole["outcome"], whole["moved"])


def of_both(_: int, look: int) -> int:
    """Return the log end at two records a second."""
    return 100_000 + 2 * PER_STEP * look


def test_a_member_overtaken_by_retention_is_not_silent() -> None:
    """Retention is a minute ahead of each commit of a, which commits at every sample."""
    line = question(61, end=of_both, committed=lambda p, look: of_both(p, look) - 600 * (p < 4))
    for look, snapshot in enumerate(line["snapshots"]):
        snapshot["begin"]["t"] = [of_both(p, look) - 500 for p in range(8)]
    answer = answer_question(line)
    assert answer["diagnosis"] != "unknown", answer["evidence"]


def test_deleted_records_do_not_count_as_read() -> None:
    """Committed offsets of a advance by 4/s; retention skips 2/s of it."""

    def left(partition: int, look: int) -> int:
        return of_both(partition, look) - (900 if partition < 4 else FRESH)

    line = question(61, end=of_both, committed=left)
    for look, snapshot in enumerate(line["snapshots"]):
        begin = [left(p, look) - PER_STEP // 2 if p < 4 else 0 for p in range(8)]
        snapshot["begin"]["t"] = begin
    answer = answer_question(line)
    assert answer["capacities"]["a"]["records_per_s"] == pytest.approx(2.0)


@pytest.mark.parametrize("beyond", [300, 1_000_000])
def test_commits_beyond_the_log_are_unknown(beyond: int) -> None:
    """A mirror copied the commits of a's partitions; they lie beyond the log ends."""

    def copied(partition: int, look: int) -> int:
        return arriving(partition, 20) + beyond if partition < 4 else prompt(partition, look)

    answer = answer_question(question(committed=copied))
    assert (answer["diagnosis"], answer["names"]) == ("unknown", ["a"])
    assert "another log" in answer["evidence"]


def test_a_group_without_commits_that_starts_at_the_end_is_unknown() -> None:
    """Its offsets are kept elsewhere: there is no lag to see, and none is there for certain."""
    line = question(20, committed=lambda _, __: None, policy={"auto_offset_reset": "latest"})
    answer = answer_question(line)
    assert (answer["diagnosis"], answer["names"]) == ("unknown", ["a", "b"])
    quiet = question(20, end=lambda p, _: p, committed=lambda _, __: None, policy=line["policy"])
    assert answer_question(quiet)["diagnosis"] == "healthy"


@pytest.mark.parametrize("reset", ["none", "by_duration:P1DT6H", "by_duration:PT0.5S"])
def test_without_a_commit_all_may_be_unread_unless_consumers_begin_at_the_end(reset: str) -> None:
    """Consumers that fail have read nothing; where a duration begins is not known: the most."""

    def asked(policy: str) -> dict[str, Any]:
        def committed(partition: int, look: int) -> int | None:
            return None if partition == 1 else prompt(partition, look)

        line = question(committed=committed, policy={"auto_offset_reset": policy})
        return answer_question(line)

    assert asked(reset) == asked("earliest") != asked("latest")


@pytest.mark.parametrize("late", [1, 2, 5])
def test_steps_of_seconds_weigh_as_seconds(late: int) -> None:
    """A planning run takes samples seconds after the regular ones; clients commit every 5 s."""
    group = Group(
        steady(np.full(6, 10.0)), steady(np.full(2, 100.0)), topics={"t": 6}, reads=names(2)
    )
    every = [60.0 * look + after for look in range(61) for after in (0.0, late)]

    def read(now: float, partition: int) -> int:
        """Return the offset of the last commit; commits are 5 s apart."""
        return int(10 * 5 * ((now + partition) // 5))

    line = Loop(group, decide_s=1e9)
    line.run(0.1)
    asked = line.question()
    owners = {"t": [f"m{partition % 2}" for partition in range(6)]}
    asked["snapshots"] = [
        {
            "at": written(now),
            "begin": {"t": [0] * 6},
            "end": {"t": [int(10 * now) + 100] * 6},
            "committed": {"t": [read(now, partition) for partition in range(6)]},
            "owners": owners,
        }
        for now in every
    ]
    answer = answer_question(asked)
    for name in ("m0", "m1"):
        assert answer["capacities"][name]["records_per_s"] == pytest.approx(30.0, rel=0.05)
        assert not answer["capacities"][name]["measured"]


@pytest.mark.parametrize("minutes", range(57, 64))
def test_a_stuck_partition_stays_stuck_as_the_hour_passes(minutes: int) -> None:
    """Its last commit was this many minutes ago; its owner commits all other partitions."""
    series = 90

    def still(partition: int, look: int) -> int:
        return prompt(partition, min(look, series - 1 - minutes) if partition == 1 else look)

    answer = answer_question(question(series, committed=still))
    assert (answer["diagnosis"], answer["names"]) == ("stuck partition", ["t-1"])


@pytest.mark.parametrize(
    ("read", "diagnosis"), [(0.0, "stuck partition"), (0.5, "throttled partition")]
)
def test_a_stuck_or_throttled_partition_stays_so_under_new_owners(
    read: float, diagnosis: str
) -> None:
    """Its owner changes every four samples, too soon to decide by one owner; or changed once."""

    def throttled(partition: int, look: int) -> int:
        if partition == 0:
            return arriving(0, 0) + int(read * PER_STEP * look)
        return prompt(partition, look)

    def in_turns(since: int) -> Owner:
        def owner(partition: int, look: int) -> str:
            if partition == 0 and look >= since:
                return "ab"[look // 4 % 2]
            return halves(partition, look)

        return owner

    for series in (30, 31, 32, 33):
        for since in (28,) if diagnosis == "stuck partition" else (0, 28):
            line = question(series, committed=throttled, owner=in_turns(since))
            answer = answer_question(line)
            assert (answer["diagnosis"], answer["names"]) == (diagnosis, ["t-0"])


def test_a_partition_that_waits_for_its_turn_is_not_stuck() -> None:
    """After an outage members work off one fetched chunk after the other, six minutes each."""
    minutes, backlog = 6, 50_000

    def filling(partition: int, look: int) -> int:
        return backlog + arriving(partition, look)

    def in_turn(partition: int, look: int) -> int:
        done = np.clip(look - partition % 4 * minutes, 0, minutes) / minutes
        return int(filling(partition, 0) - backlog * (1 - done))

    for series in range(4, 4 * minutes + 1):
        answer = answer_question(question(series, end=filling, committed=in_turn))
        assert answer["diagnosis"] != "stuck partition", (series, answer["evidence"])


def replaying(share: float) -> dict[str, Any]:
    """Return a line about members that read old records; `share` is reads over arrivals."""
    series, old = 30, 10_000_000

    def filling(partition: int, look: int) -> int:
        return old + arriving(partition, look)

    def replayed(partition: int, look: int) -> int:
        return int(filling(partition, 0) - (series + 20 - look) * share * PER_STEP)

    return question(series, end=filling, committed=replayed)


def test_a_backlog_older_than_all_samples_measures_members() -> None:
    capacities = answer_question(replaying(2.0))["capacities"]
    assert [capacity["measured"] for capacity in capacities.values()] == [True, True]
    assert capacities["a"]["records_per_s"] == pytest.approx(8.0, rel=0.05)


def slowly(share: float, others: int = 3) -> dict[str, Any]:
    """Return a line about a partition of a that is read at a share of its arrivals."""
    series = 30

    def throttled(partition: int, look: int) -> int:
        if partition == 0:
            return arriving(0, 0) + int(share * PER_STEP * look)
        return prompt(partition, look) - (5 * PER_STEP if others < partition < 4 else 0)

    return question(series, committed=throttled)


def test_a_throttled_partition_gets_no_plan() -> None:
    """Half of its arrivals is read, though its owner keeps up with three others."""
    answer = answer_question(slowly(0.5))
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "throttled partition")
    assert answer["names"] == ["t-0"]
    assert "500/ks" in answer["evidence"] or "0.5/s of its 1/s" in answer["evidence"]
    assert answer["forecast"]["kept"]["time_lag_s"] < 60.0
    assert answer["capacities"]["a"]["records_per_s"] < 4.0
    assert not answer["capacities"]["a"]["measured"]


@pytest.mark.parametrize(("share", "others"), [(0.5, 1), (0.9, 3)])
def test_a_partition_is_not_certainly_throttled(share: float, others: int) -> None:
    """One other partition without lag is too little evidence; so is a small difference."""
    assert answer_question(slowly(share, others))["diagnosis"] != "throttled partition"


def test_an_overload_beside_a_throttled_partition_is_planned() -> None:
    """A partition of b is throttled; a is overloaded and gets a plan."""

    def both(partition: int, look: int) -> int:
        if partition == 7:
            return 1000 + PER_STEP * look // 3
        return behind(partition, look)

    answer = answer_question(question(30, end=skewed, committed=both))
    assert (answer["outcome"], answer["diagnosis"]) == ("plan", "throttled partition")
    assert 7 in answer["assignment"]["b"]["t"]
    assert answer["moved"] > 0


#: The sample at which the transaction of `held` opens.
OPEN = 8


def held(
    partitions: int = 1, *, until: int = 99, short: int = 0, marker: int = 0, series: int = 20
) -> dict[str, Any]:
    """Return a line about partitions that an open transaction blocks.

    Parameters
    ----------
    partitions
        How many of eight.
    until
        The sample by which the transaction has ended.
    short
        How many records that can be read have not been committed.
    marker
        How many offsets the marker of the transaction before takes.
    """

    def stands(partition: int, look: int) -> bool:
        return partition < partitions and look > OPEN

    def committed(partition: int, look: int) -> int:
        stood = arriving(partition, OPEN) - short - marker
        return stood if stands(partition, look) else prompt(partition, look)

    def stable_end(partition: int, look: int) -> int | None:
        if not stands(partition, look):
            return None
        return arriving(partition, look if look >= until else OPEN)

    return question(series, committed=committed, stable_end=stable_end)


@pytest.mark.parametrize("partitions", [1, 4, 8])
@pytest.mark.parametrize("marker", [0, 1])
def test_records_behind_an_open_transaction_are_not_stuck(partitions: int, marker: int) -> None:
    """The evidence has the start of the transaction; the group is healthy and gets no plan."""
    answer = answer_question(held(partitions, marker=marker))
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "healthy")
    assert (
        "A transaction has been open on t-0 since 2026-03-02 00:08 UTC (11 min)"
        in (answer["evidence"])
    )
    assert answer["forecast"]["kept"]["time_lag_s"] == 0.0


def test_a_transaction_may_be_older_than_all_samples() -> None:
    line = held()
    line["snapshots"] = line["snapshots"][OPEN + 3 :]
    since = "on t-0 since before 2026-03-02 00:11 UTC (8 min)"
    assert since in answer_question(line)["evidence"]


def test_readable_records_before_a_transaction_may_be_stuck() -> None:
    """Thirty records wait that consumers may read whatever their isolation level."""
    answer = answer_question(held(short=30))
    assert (answer["diagnosis"], answer["names"]) == ("stuck partition", ["t-0"])
    assert "transaction" not in answer["evidence"]


def test_a_reader_beyond_the_stable_end_reads_uncommitted() -> None:
    """Its lag counts up to the log end."""

    def committed(partition: int, look: int) -> int:
        return min(arriving(partition, look), 2000) if partition == 0 else prompt(partition, look)

    stable = question(committed=committed, stable_end=lambda p, _: 1500 if p == 0 else None)
    assert answer_question(stable) == answer_question(question(committed=committed))

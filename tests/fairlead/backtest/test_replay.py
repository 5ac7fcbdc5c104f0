"""Replays by hand: who is in charge decides when partitions move, and by what."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from assignors.problem import Member, Problem
from fairlead.backtest.replay import OBSERVED, Moment, Snapshot, replay
from fairlead.policy import Approval, Policy

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
FREE = Policy(options={"sticky-lag-aware": {"band": 0.0}})


def snapshots(
    *groups: tuple[Mapping[str, Sequence[int]], Sequence[int]],
) -> list[Snapshot]:
    """Return hourly snapshots of one topic: member to what it was seen with, then the lags."""
    return [
        Snapshot(
            NOON + timedelta(hours=hour),
            Problem.of(
                {"t": len(lags)},
                {name: Member(topics=["t"], owned={"t": owned}) for name, owned in members.items()},
                {"t": lags},
            ),
        )
        for hour, (members, lags) in enumerate(groups)
    ]


def moves(moments: Sequence[Moment]) -> list[int]:
    return [moment.moved for moment in moments]


def test_sticky_sticks_to_its_own_assignment_not_to_the_real_one() -> None:
    """The real group swaps everything; sticky in charge gives up one partition to who joins."""
    day = snapshots(
        ({"a": [0, 1], "b": [2, 3]}, [1, 1, 1, 1]),
        ({"a": [2, 3], "b": [0, 1]}, [1, 1, 1, 1]),
        ({"a": [2, 3], "b": [0], "c": [1]}, [1, 1, 1, 1]),
    )
    assert moves([*replay(day, OBSERVED, FREE)]) == [0, 4, 1]
    assert moves([*replay(day, "sticky", FREE)]) == [0, 0, 1]


def test_assignors_blind_to_lag_act_at_rebalances_alone() -> None:
    """Lag that shifts changes no mind; a member that leaves does."""
    day = snapshots(
        ({"a": [0, 1], "b": [2, 3]}, [9, 0, 9, 0]),
        ({"a": [0, 1], "b": [2, 3]}, [0, 9, 0, 9]),
        ({"a": [0, 1, 2, 3]}, [9, 9, 9, 9]),
    )
    moments = [*replay(day, "roundrobin", FREE)]
    assert moves(moments) == [2, 0, 0]  # it takes over with 0, 2 and 1, 3; then b's are orphans
    assert [moment.heaviest for moment in moments] == [18, 18, 36]
    assert not any(moment.published for moment in moments)


def test_a_plan_is_measured_by_the_lag_that_came_after_it() -> None:
    """What the first snapshot's plan gives b is light then, and too heavy an hour later."""
    day = snapshots(
        ({"a": [0, 1], "b": [2]}, [6, 4, 0]),
        ({"a": [0, 1], "b": [2]}, [6, 4, 9]),
    )
    first, second = replay(day, "sticky-lag-aware", FREE)
    assert (first.heaviest, first.published, first.moved) == (10, True, 1)
    assert (second.heaviest, second.lower_bound) == (15, 10)


def test_a_newcomer_takes_over_the_share_of_who_left() -> None:
    """Followers fit the plan: a restart under a new name neither moves nor plans anything."""
    day = snapshots(
        ({"a": [0, 1], "b": [2, 3]}, [4, 1, 4, 1]),
        ({"a": [0], "c": [1, 2, 3]}, [4, 1, 4, 1]),
    )
    moments = [*replay(day, "lag-aware", Policy())]
    assert moves(moments) == [0, 0]
    assert [moment.heaviest for moment in moments] == [5, 5]


def test_who_joins_without_a_share_waits_for_a_plan() -> None:
    """At the rebalance it owns nothing; the plan made then gives it something from then on."""
    day = snapshots(
        ({"a": [0, 1], "b": [2, 3]}, [4, 4, 4, 4]),
        ({"a": [0, 1], "b": [2, 3], "c": []}, [4, 4, 4, 0]),
        ({"a": [0, 1], "b": [2, 3], "c": []}, [4, 4, 4, 0]),
    )
    moments = [*replay(day, "sticky-lag-aware", FREE)]
    assert [moment.heaviest for moment in moments] == [8, 8, 4]
    assert [moment.published for moment in moments] == [False, True, False]


def test_partitions_that_a_topic_grows_by_are_placed_not_moved() -> None:
    """What was there stays where it was, whoever is in charge."""
    day = snapshots(
        ({"a": [0], "b": [1]}, [4, 4]),
        ({"a": [0], "b": [1]}, [4, 4, 4, 4]),
    )
    for assignor in ("sticky", "sticky-lag-aware"):
        moments = [*replay(day, assignor, FREE)]
        assert (moves(moments), moments[1].heaviest) == ([0, 0], 8)


def test_plans_are_published_as_the_policy_would() -> None:
    """Cooldown spaces plans; without an automatic approval people say yes; else rules hold."""
    shifting = [({"a": [0, 1], "b": [2, 3]}, lags) for lags in ([9, 9, 0, 0], [0, 0, 9, 9])]
    day = snapshots(*shifting, *shifting)

    def outcome(policy: Policy) -> list[str]:
        moments = replay(day, "lag-aware", policy)
        return ["held" if m.held_back else "plan" if m.published else "" for m in moments]

    by_people = outcome(Policy())
    assert by_people[0] == "plan"
    strict = Policy(approval=Approval(automatic=True, max_moves=0))
    assert outcome(strict) == ["held", "held", "held", "held"]
    slow = Policy(cooldown=timedelta(days=1))
    assert outcome(slow) == ["plan", "", "", ""]

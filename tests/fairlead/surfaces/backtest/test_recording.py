"""What a recording derives from its samples: arrivals, members, topics and statuses."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fairlead.surfaces.backtest.recording import Recording
from tests.samples import samples

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def sample(minute: int, end: dict[str, list[int]], **values: Any) -> dict[str, Any]:
    """Return a sample in which one member owns all partitions, each with a lag of one record."""
    ends = [offset for topic in end.values() for offset in topic]
    return {
        "at": NOON + timedelta(minutes=minute),
        "topics": list(end),
        "counts": [len(topic) for topic in end.values()],
        "members": ["a"],
        "owner": [0] * len(ends),
        "begin": [0] * len(ends),
        "end": ends,
        "committed": [max(offset - 1, -1) for offset in ends],
    } | values


def recording(*rows: dict[str, Any]) -> Recording:
    """Return the recording of these samples."""
    return Recording.of(samples(*rows))


def test_arrivals_are_those_between_samples() -> None:
    """Arrivals are the growth of end offsets; recreated or unknown topics have no arrivals."""
    arrivals = (
        recording(
            sample(0, {"t": [100, 50]}),
            sample(10, {"t": [700, 50]}),
            sample(20, {"t": [5, -1]}),
            sample(30, {"t": [65, 90]}),
        )
        .world()
        .arrivals
    )
    by_stretch = arrivals.reshape(3, 60, 2).sum(axis=1)
    assert by_stretch.tolist() == [[600, 0], [0, 0], [60, 40]]
    assert (arrivals >= 0).all()
    assert arrivals[:60, 0].max() < 60


def test_members_and_partitions_change_over_time() -> None:
    """If members or partitions differ between samples, they also change during the replay.

    The replay starts with the lag of the first sample.
    """
    world = recording(
        sample(0, {"t": [10]}),
        sample(10, {"t": [20, 7]}, members=["b"]),
        sample(20, {"t": [20, 9]}),
    ).world()
    assert world.roster.members == ("a", "b")
    assert world.present[[0, 59, 60, 119]].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert world.exists[[0, 60]].tolist() == [[True, False], [True, True]]
    assert world.waiting.tolist() == [1, 0]
    assert world.arrivals.sum(axis=0).tolist() == [10, 9]


def test_topic_exists_while_a_member_reads_it() -> None:
    """If a group has left a topic, the topic has no arrivals and no time lag."""
    left = sample(20, {"t": [20], "u": [50]}, committed=[20, 10], owner=[0, -1])
    left_for_good = recording(
        sample(0, {"t": [10], "u": [10]}),
        sample(10, {"t": [15], "u": [15]}),
        left | {"subscriptions": [["t"]]},
        left | {"at": NOON + timedelta(minutes=30), "subscriptions": [["t"]], "end": [20, 90]},
    )
    world = left_for_good.world()
    assert world.exists[[0, 119, 120, 179]].tolist() == [[1, 1], [1, 1], [1, 0], [1, 0]]
    assert world.arrivals.sum(axis=0).tolist() == [10, 5]
    assert left_for_good.lags[2:].tolist() == [[0, 0], [0, 0]]


def test_statuses_depend_on_the_hour_before() -> None:
    """If a partition's last commit is at minute 20, its status is STOP at minute 59."""
    lags = recording(
        *(
            sample(minute, {"t": [600 * minute]}, committed=[600 * min(minute, 20)])
            for minute in range(60)
        )
    )
    assert [lags.statuses(number) for number in (20, 59)] == [{"OK"}, {"STOP"}]

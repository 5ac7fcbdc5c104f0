"""Topics spread where that costs nobody anything: no count, no weight, no topic spread less."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.fit import fit
from fairlead.wire.fit_spread import Held
from tests.fairlead.followers.helpers import make_plan

Int64 = npt.NDArray[np.int64]


@st.composite
def placements(draw: st.DrawFn) -> tuple[Held, Int64, Int64]:
    """Draw what members have, and partitions of one weight that were dealt to some of them."""
    topics, members = draw(st.integers(2, 5)), draw(st.integers(2, 6))
    had = draw(st.lists(st.integers(0, 6), min_size=topics * members, max_size=topics * members))
    placed = draw(st.lists(st.integers(0, topics - 1), min_size=1, max_size=600))
    row = np.sort(np.array(placed))
    column = np.array([draw(st.integers(0, members - 1)) for _ in placed[:20]])
    column = np.resize(column, row.size)
    counts = np.array(had, np.int32).reshape(topics, members)
    np.add.at(counts, (row, column), 1)
    return Held(counts, np.maximum(-(-counts.sum(axis=1) // members), 1)), row, column


def largest(held: Held) -> float:
    return float((held.counts / held.even[:, None]).max())


@given(drawn=placements())
def test_exchanges_cost_nothing(drawn: tuple[Held, Int64, Int64]) -> None:
    """Members get as many as they were dealt, what they have is kept true, no topic gets worse."""
    held, row, column = drawn
    before, had = largest(held), held.counts.copy()
    np.subtract.at(had, (row, column), 1)
    final = held.exchange(row, column)
    assert np.sort(final).tolist() == np.sort(column).tolist()
    np.add.at(had, (row, final), 1)
    assert had.tolist() == held.counts.tolist()
    assert largest(held) <= before


def test_a_newcomer_gets_of_every_topic() -> None:
    """Two new topics, and one member with nothing yet: it gets as much of one as of the other."""
    plan = make_plan({"a": {"old": list(range(12))}}, partition_counts={"old": 12})
    topics = ["old", "t", "u"]
    shares = fit(plan, {"a": topics, "new": topics}, {"old": 12, "t": 12, "u": 12})
    assert {t: len(owned) for t, owned in shares["new"].items()} == {"t": 9, "u": 9}
    assert {t: len(owned) for t, owned in shares["a"].items()} == {"old": 12, "t": 3, "u": 3}


def test_what_is_spread_stays_as_it_is_dealt() -> None:
    """Where no share is larger than even, nothing is exchanged."""
    held = Held(np.array([[1, 1], [1, 1]], np.int32), np.array([1, 1]))
    assert held.exchange(np.array([0, 1]), np.array([1, 0])).tolist() == [1, 0]


def test_weights_go_before_topics() -> None:
    """Partitions are exchanged where they weigh the same, and only there."""
    topics, counts = ["t", "u"], {"t": 2, "u": 2}

    def shares(weights: dict[str, list[float]]) -> dict[str, dict[str, list[int]]]:
        owned: dict[str, dict[str, list[int]]] = {"a": {"u": [0]}, "b": {"t": [0]}}
        plan = make_plan(owned, partition_counts=counts, weights=weights)
        return fit(plan, {"a": topics, "b": topics}, counts)

    dealt = {"a": {"u": [0, 1]}, "b": {"t": [0, 1]}}
    assert shares({"t": [0, 5], "u": [9, 1]}) == dealt
    assert shares({"t": [0, 1], "u": [9, 1]}) == {
        "a": {"t": [1], "u": [0]},
        "b": {"t": [0], "u": [1]},
    }

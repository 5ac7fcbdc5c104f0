"""What a member remembers of its log: all of it, or it knows that there was more."""

from fairlead.followers.confluent.recollection import Recollection
from fairlead.wire.pins import MOST_PARTITIONS, Announcement, Pin

SMALL = Announcement(1, "m", "a", ("t",), {"t": (0,)})
LARGE = Announcement(1, "m", "a", ("t",), {"t": tuple(range(MOST_PARTITIONS))})


def test_what_is_said_is_kept_in_order() -> None:
    """With the leader epoch it was written in."""
    records = Recollection()
    pin = Pin(1, "m", ("t",), {"m": {"t": (0,)}})
    records.add(SMALL, 3)
    records.add(pin, 4)
    assert records.whole
    assert list(records) == [(SMALL, 3), (pin, 4)]


def test_what_is_kept_is_bounded_by_what_it_names() -> None:
    """A record of a hundred bytes may name 200,000 partitions: ten such, not ten thousand."""
    records = Recollection()
    for _ in range(10_000):
        records.add(LARGE, 0)
    assert len(list(records)) == 10
    assert not records.whole
    records.clear()
    records.add(SMALL, 0)
    assert records.whole


def test_what_is_kept_is_bounded_by_how_many() -> None:
    """Once something was left out, nothing that follows is kept either."""
    records = Recollection()
    for _ in range(20_000):
        records.add(SMALL, 0)
    assert len(list(records)) == 10_000
    assert not records.whole

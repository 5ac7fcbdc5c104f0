"""Racks and log sizes of partitions, read from samples."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fairlead.domain.samples.fetch_sources import STEADY, sources_of
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
STEP = timedelta(minutes=1)


def sample(back: int, **columns: Any) -> dict[str, Any]:
    """Return a sample of two topics, this many minutes before the newest sample."""
    return {
        "group": "g",
        "at": NOON - back * STEP,
        "topics": ["t", "u"],
        "counts": [2, 1],
        "racks": [["r1"], ["r2"]],
        "rack_set": [0, 1, 0],
        "log_bytes": [10, 20, 30],
    } | columns


def sources(*rows: dict[str, Any]) -> Any:
    """Return the racks by topic, and the result of `sources_of`; topic `u` comes before `t`."""
    known = sources_of(samples(*rows), ["u", "t"], {"t": 2, "u": 1})
    return known and ({topic: [*map(list, row)] for topic, row in known.racks.items()}, known)


def test_sources_of_the_newest_sample_have_the_given_order() -> None:
    """Racks and log sizes are in the order of the given topics, not of the sample's."""
    racks, known = sources(sample(0))
    assert racks == {"u": [["r1"]], "t": [["r1"], ["r2"]]}
    assert known.log_bytes.tolist() == [30, 10, 20]


def test_racks_that_have_just_changed_are_not_known() -> None:
    """If a partition's racks differ between recent samples, the partition's racks are unknown.

    While a broker restarts, its partitions have other leaders, and this must not cause a plan. The
    racks themselves are compared, because samples may number the sets of racks differently.
    """
    other = sample(1, racks=[["r2"], ["r1"]], rack_set=[1, 1, 1])
    racks, _ = sources(other, sample(0))
    assert racks == {"u": [["r1"]], "t": [["r1"], []]}


def test_old_samples_and_unknown_racks_do_not_count() -> None:
    """Racks are known even if they differ in old samples or are unknown in other samples."""
    minutes = int(STEADY / STEP)
    rows = [
        sample(minutes + 1, rack_set=[1, 1, 1]),
        sample(3, racks=None, rack_set=None, log_bytes=None),
        sample(2, topics=["t"], counts=[3], rack_set=[1, 1, 1]),
        sample(1, rack_set=[-1, -1, -1]),
    ]
    racks, _ = sources(*rows, sample(0))
    assert racks == {"u": [["r1"]], "t": [["r1"], ["r2"]]}

"""What takes a group's time, in metadata."""

from assets.shown.work import speeds, work


def test_work_of_topics_and_partitions_counts_what_records_take() -> None:
    """Topics first, then the partition with the most work; where no cost is known, none stands."""
    facts = work(
        {
            "costs": '{"t": {"1": [6.0, 8.0, 9.0]}}',
            "topics": ["t", "u"],
            "partition_counts": [2, 1],
            "arrival_rates": [30.0, 10.0, 50.0],
        }
    )
    assert [list(record.data.values()) for record in facts.records] == [
        ["t", "40", "2.75", "110"],
        ["u", "50", None, "50"],
        ["t-1", "10", "8", "80"],
        ["u-0", "50", None, "50"],
        ["t-0", "30", None, "30"],
    ]


def test_speeds_say_whether_they_were_measured() -> None:
    """The slowest first."""
    known = [
        {"member": "a", "records_per_s": 90.0, "measured": False, "at": 0.0},
        {"member": "b", "records_per_s": 40.0, "measured": True, "at": 0.0},
    ]
    rows = [record.data for record in speeds(known).records]
    assert [(row["member"], row["known"]) for row in rows] == [("b", "measured"), ("a", "at least")]

"""Accepted and refused records of the coordination topic."""

import json
import random
from functools import partial

import pytest

from fairlead.followers.confluent.agreement_round import AgreementRound
from fairlead.wire.agreement import (
    LARGEST_RECORD,
    MOST_PARTITIONS,
    Announcement,
    AssignmentRecord,
    Mark,
    Record,
    decode,
    encode,
)
from fairlead.wire.record import Identity
from tests.cost import costs_at_most
from tests.fairlead.followers.simulator.hostile import spoilt

SEEN = Identity(1, 7, sha256="9f2c")
RECORDS: tuple[Record, ...] = (
    Announcement(3, "m1", "a", ("t", "u"), {"t": (0, 1, 7)}, SEEN, "log"),
    AssignmentRecord(3, "m1", ("t",), {"m1": {"t": (0, 1)}, "m2": {}}, 7, SEEN, None, "log"),
    AssignmentRecord(
        3, "m1", ("t",), {"m1": {"t": (0, 1)}}, None, SEEN, "the plan was withdrawn", "log"
    ),
    Mark("9f2c", "log"),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("generation", "3"),
        ("generation", True),
        ("generation", 3.0),
        ("generation", -1),
        ("generation", 2**40),
        ("member", ""),
        ("member", 7),
        ("member", "m" * 5000),
        ("client_id", None),
        ("topics", "t"),
        ("topics", ["u", "t"]),
        ("topics", ["t", "t"]),
        ("topics", [7]),
        ("given", []),
        ("given", {"t": [0]}),
        ("given", {"t": "1-0"}),
        ("given", {"x": "0"}),
        ("given", {"t": "0-999999"}),
        ("given", {"t": "0-150000", "u": "0-150000"}),
        ("seen", [1, 2**70, False, ""]),
        ("log", None),
        ("fairlead", 2),
        ("type", ["here"]),
        ("type", "there"),
    ],
)
def test_record_with_an_invalid_value_is_ignored(name: str, value: object) -> None:
    """`decode` returns None for the record, so later code need not check values."""
    values = json.loads(encode(RECORDS[0]))
    assert decode(json.dumps({**values, name: value}).encode()) is None
    del values[name]
    assert decode(json.dumps(values).encode()) is None


def test_record_with_a_huge_range_is_refused_quickly() -> None:
    """A range in a record is not expanded, because that could take much time and memory."""
    values = json.loads(encode(RECORDS[0])) | {"given": {"t": "0-999999"}}
    value = json.dumps(values).encode()
    assert decode(value) is None

    def read(value: bytes) -> None:
        for _ in range(500):
            decode(value)

    costs_at_most(20, partial(read, value), partial(read, encode(RECORDS[0])))
    assert decode(b" " * (LARGEST_RECORD + 1)) is None


@pytest.mark.long
def test_record_with_millions_of_entries_is_refused_quickly() -> None:
    """Refusing a record of 16 MB takes at most four times as long as reading its JSON."""
    announcement, assignment = json.loads(encode(RECORDS[0])), json.loads(encode(RECORDS[1]))
    too_many: dict[str, dict[str, str]] = {
        f"{number:06d}": {} for number in range(MOST_PARTITIONS + 1)
    }
    long = [
        announcement | {"given": {"t": "0," * 7_000_000 + "0"}},
        announcement | {"topics": list(too_many)},
        announcement | {"topics": list(too_many), "given": dict.fromkeys(too_many, "")},
        assignment | {"shares": too_many},
    ]
    values = [json.dumps(value, separators=(",", ":")).encode() for value in long]
    assert max(map(len, values)) < LARGEST_RECORD
    found: list[Record | None] = []
    for value in values:
        costs_at_most(4, lambda: found.append(decode(value)), partial(json.loads, value))  # noqa: B023 - at once
    assert set(found) == {None}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_no_record_breaks_an_agreement_round(seed: int) -> None:
    """Records that were altered, cut off or made at random cause no error in an agreement round."""
    rng = random.Random(seed)
    round_ = AgreementRound(
        Announcement(3, "m1", "a", ("t", "u"), {"t": (0, 1, 7)}, SEEN, "log"), {"t": 8}
    )
    for _ in range(10_000):
        value = spoilt(rng, rng.choice(RECORDS))
        if rng.random() < 0.2:
            value = value[: rng.randrange(len(value))]
        if rng.random() < 0.1:
            value = rng.randbytes(rng.randrange(50))
        record = decode(value)
        if record is not None and not isinstance(record, Mark):
            round_.hear(record, now=0.0, epoch=rng.choice([0, 1]))
            round_.write_due_at()
            round_.verdict()

"""Reports in commit metadata: written reports are read back, and other text is ignored."""

from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.work_report import (
    PREFIX,
    TIMES_UNKNOWN,
    WorkReport,
    member_hash,
    read_reports,
)
from tests.cost import costs_at_most

TOKEN = "k3f9q2"  # noqa: S105 - no secret
MEMBER = "orders-1-6f9619ff"
REPORT = WorkReport(
    elapsed_ms=36**4,
    waiting_ms=100,
    handler_ms=200,
    calls=3,
    records=4,
    busy_ms=5,
    busy_squares_ms2=6,
    paused=TIMES_UNKNOWN,
    at_ms=1_795_859_150_530,
)
TEXT = REPORT.text(MEMBER, TOKEN).encode()
#: Largest value of each field. The next higher value means that the counter is full.
LARGEST = (*(36**width - 2 for width in (8, 8, 8, 7, 8, 8, 10)), 36**3 - 1, 36**8 - 2)

tokens = st.text("0123456789abcdefghijklmnopqrstuvwxyz", min_size=6, max_size=6)
reports = st.builds(WorkReport, *(st.integers(0, largest) for largest in LARGEST))
ends = st.sampled_from([b"", b"\0"])


@given(st.lists(st.tuples(reports, st.text(), tokens, ends, st.binary(max_size=20)), max_size=5))
def test_reports_are_read_back(written: list[tuple[WorkReport, str, str, bytes, bytes]]) -> None:
    """Reports are found among other metadata, with and without a final NUL byte."""
    metadata: list[bytes] = []
    for report, member, token, end, other in written:
        metadata += [report.text(member, token).encode() + end, other]
    found = read_reports(metadata)
    assert found.place.tolist() == [2 * at for at in range(len(written))]
    assert found.owners.tolist() == [member_hash(member) for _, member, *_ in written]
    assert found.tokens.tolist() == [token for _, _, token, *_ in written]
    assert found.numbers.tolist() == [[*astuple(report)] for report, *_ in written]


@given(st.integers(0, len(TEXT) - 1), st.integers(0, 255))
def test_damaged_byte_changes_only_its_own_report(at: int, value: int) -> None:
    """A changed byte alters a digit of one report or makes it invalid; other reports are read."""
    damaged = TEXT[:at] + bytes([value]) + TEXT[at + 1 :]
    found = read_reports([damaged, TEXT])
    assert found.place.tolist() in ([0, 1], [1])
    if found.place.tolist() == [0, 1]:
        report = WorkReport(*found.numbers[0].tolist())
        fields = report.text("", found.tokens[0])[len("fairlead1 c=") + 7 :]
        assert damaged.decode() == f"fairlead1 c={found.owners[0]}{fields}"


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"\0",
        b"fairlead1 c=",
        TEXT[:-1],
        TEXT + b"x",
        TEXT + b"\0\0",
        b" " + TEXT,
        TEXT + TEXT,
        TEXT.upper(),
        TEXT.replace(b"fairlead1", b"fairlead2"),
        TEXT.replace(b" n=", b" m="),
        TEXT.replace(b"0", b"\0", 1),
        TEXT.decode().replace("0", "é", 1).encode(),
        TEXT.decode().replace("0", "é", 1).encode("latin-1"),
        TEXT.replace(b"0", "\u0660".encode(), 1),  # a digit in another script
        TEXT.replace(b"e=0", b"e=-"),
        TEXT.decode().encode("utf-16"),
        b"x" * 1_000_000,
    ],
    ids=repr,
)
def test_other_texts_are_ignored(other: bytes) -> None:
    """Truncated, too long and unrelated texts are ignored; reports beside them are read."""
    found = read_reports([TEXT, other, TEXT + b"\0"])
    assert found.place.tolist() == [0, 2]
    assert found.numbers.tolist() == [[*astuple(REPORT)]] * 2


@pytest.mark.parametrize("name", ["busy_squares_ms2", "records", "elapsed_ms"])
def test_report_with_a_full_counter_is_ignored(name: str) -> None:
    """A full counter no longer grows, so differences to later reports would be wrong."""
    full = WorkReport(**{**vars(REPORT), name: 36**11}).text(MEMBER, TOKEN)
    assert read_reports([full.encode(), TEXT]).place.tolist() == [1]


@pytest.mark.long
def test_the_report_on_the_page_can_be_read() -> None:
    """The documented example is read as a report of a consumer that has run for 78 minutes."""
    page = (Path(__file__).parents[3] / "docs/consumers/reported-work.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith(PREFIX)]
    assert read_reports([line.encode()]).numbers[:, 0].tolist() == [4_665_600]


def test_million_partitions_take_no_longer_than_splitting_their_texts() -> None:
    """Reading a million reports costs at most twice as much as splitting their texts."""
    metadata = [TEXT + b"\0", b"", TEXT] * 333_334

    def read() -> None:
        assert len(read_reports(metadata).place) == 2 * 333_334

    costs_at_most(2.0, read, lambda: [text.decode().split() for text in metadata])

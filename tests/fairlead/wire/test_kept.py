"""Bytes that members of a group exchange never change, because upgrades are gradual."""

import json
from pathlib import Path
from typing import Final

import pytest

from fairlead.wire.agreement import Announcement, AssignmentRecord, Mark, Record, decode, encode
from fairlead.wire.members import (
    AssignmentNote,
    SubscriptionNote,
    decode_assignment,
    decode_subscription,
    encode_note,
)
from fairlead.wire.record import Identity
from fairlead.wire.seals import Seal

#: Bytes that 0.1.0 wrote, which must stay readable. A new format needs a new format number.
FIRST_RELEASE: Final[dict[str, str]] = json.loads(
    (Path(__file__).parents[2] / "vectors/member_bytes.json").read_text()
)
SEEN: Final = Identity(1, 7, sha256="9f2c")
WRITTEN: Final[dict[str, SubscriptionNote | AssignmentNote | Record]] = {
    "subscription": SubscriptionNote("a", "a-1", SEEN, lapsed=True, again=2),
    "assignment": AssignmentNote(7, SEEN, decided=SEEN, incomplete=True),
    "fallback": AssignmentNote(None, SEEN, "the plan was withdrawn", lapsed=True, decided=SEEN),
    "announcement": Announcement(3, "m1", "a", ("t", "u"), {"t": (0, 1, 7)}, SEEN, "log"),
    "assignment record": AssignmentRecord(
        3, "m1", ("t",), {"m1": {"t": (0, 1)}, "m2": {}}, 7, SEEN, None, "log"
    ),
    "mark": Mark("9f2c", "log"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_bytes_are_those_of_the_first_release(name: str) -> None:
    """Writing a value gives the bytes that 0.1.0 wrote, and reading these gives the value."""
    value, kept = WRITTEN[name], FIRST_RELEASE[name].encode()
    if isinstance(value, SubscriptionNote):
        assert (encode_note(value), decode_subscription(kept)) == (kept, value)
    elif isinstance(value, AssignmentNote):
        assert (encode_note(value), decode_assignment(kept)) == (kept, value)
    else:
        assert (encode(value), decode(kept)) == (kept, value)


def test_seal_is_that_of_the_first_release() -> None:
    """For the same secret, group and log, a seal has the bytes that 0.1.0 wrote."""
    seal = Seal("orders", "log", (b"the old secret of all",))
    assert seal.headers(b"value") == [("fairlead-seal", bytes.fromhex(FIRST_RELEASE["seal"]))]

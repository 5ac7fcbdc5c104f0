"""User data can be encoded and decoded again; invalid bytes are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.problem import InvalidProblemError
from assignors.user_data import UserData, decode, encode

OWNED = st.dictionaries(st.text(max_size=8), st.lists(st.integers(0, 2**31 - 1), max_size=5))


@given(owned=OWNED, generation=st.none() | st.integers(-1, 2**31 - 1))
def test_round_trip(owned: dict[str, list[int]], generation: int | None) -> None:
    assert decode(encode(UserData(owned, generation))) == UserData(owned, generation)


@given(data=st.binary(max_size=60))
def test_garbage_is_an_error_or_valid_user_data(data: bytes) -> None:
    try:
        known = decode(data)
    except InvalidProblemError:
        return
    assert decode(encode(known)) == known


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0000", "ends too early"),
        ("ffffffff", "-1 is not a length"),
        ("7fffffff", "ends too early"),
        ("00000001 ffff", "-1 is not a length"),
        ("00000001 0001ff 00000000", "not UTF-8"),
        ("00000001 000174 00000001 ffffffff", "is negative"),
        ("00000002 000174 00000000 000174 00000000", "twice"),
        ("00000000 00000005 00", "has bytes after the last field"),
        ("00000000 fffffffe", "-2 is not a generation"),
    ],
)
def test_error_names_the_problem(data: str, message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        decode(bytes.fromhex(data))


def test_no_bytes_claim_nothing() -> None:
    """Empty user data, which new members send, means that the member owns no partitions."""
    assert decode(b"") == UserData({})

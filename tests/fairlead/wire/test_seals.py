"""Seals of the coordination topic's records, against anybody who may write to it."""

import pytest

from fairlead.errors import ConfigurationError
from fairlead.wire.seals import Seal, read_secrets

OLD, NEW = b"the old secret of all", b"the new secret of all"
OURS = Seal("orders", "log-1", (NEW,))


@pytest.mark.parametrize(
    "other",
    [
        Seal("orders", "log-1", (OLD,)),
        Seal("bills", "log-1", (NEW,)),
        Seal("orders", "log-2", (NEW,)),
        Seal("orders", "log-1"),
        Seal("order", "slog-1", (NEW,)),
    ],
)
def test_seal_of_another_secret_group_or_log_does_not_hold(other: Seal) -> None:
    """A seal made without a secret does not hold either."""
    assert not OURS.holds(b"here", other.headers(b"here"))


def test_changed_record_does_not_hold() -> None:
    """A seal does not hold for another value or a tombstone."""
    assert OURS.holds(b"here", OURS.headers(b"here"))
    assert not OURS.holds(b"there", OURS.headers(b"here"))
    assert not OURS.holds(None, OURS.headers(b"here"))


@pytest.mark.parametrize("headers", [None, [], [("fairlead-seal", None)], [("fairlead-seal", "")]])
def test_headers_of_any_shape_are_taken(headers: list[tuple[str, str | bytes | None]]) -> None:
    """Missing or malformed headers are refused without an error."""
    assert not OURS.holds(b"here", headers)


def test_secret_changes_without_a_gap() -> None:
    """Members with both secrets accept seals by either, and seal by the first."""
    between = Seal("orders", "log-1", (OLD, NEW))
    assert between.holds(b"here", OURS.headers(b"here"))
    assert Seal("orders", "log-1", (OLD,)).holds(b"here", between.headers(b"here"))


@pytest.mark.parametrize("text", ["", " ", "short", "long enough to be one,", ","])
def test_secret_that_protects_nothing_is_refused(text: str) -> None:
    """An empty or short secret is an error, so that sealing is never off by mistake."""
    with pytest.raises(ConfigurationError, match="group_secret") as error:
        read_secrets(text)
    assert text.strip(", ") not in str(error.value) or not text.strip(", ")


def test_no_secret_is_printed() -> None:
    """The representation of a seal, as in logs, has no secret."""
    assert "secret of all" not in repr(OURS)

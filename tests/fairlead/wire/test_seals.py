"""Seals, which protect records of the coordination topic against other writers."""

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
def test_seal_is_valid_for_one_secret_group_and_log(other: Seal) -> None:
    """A seal with another secret or none, or for another group or log, is invalid."""
    assert not OURS.holds(b"here", other.headers(b"here"))


def test_seal_is_invalid_for_a_changed_record() -> None:
    """The seal of one value is invalid for another value, and for a tombstone."""
    assert OURS.holds(b"here", OURS.headers(b"here"))
    assert not OURS.holds(b"there", OURS.headers(b"here"))
    assert not OURS.holds(None, OURS.headers(b"here"))


@pytest.mark.parametrize("headers", [None, [], [("fairlead-seal", None)], [("fairlead-seal", "")]])
def test_malformed_headers_cause_no_error(headers: list[tuple[str, str | bytes | None]]) -> None:
    """Without a valid seal header, a record is invalid, but no error is raised."""
    assert not OURS.holds(b"here", headers)


def test_secret_can_be_changed_gradually() -> None:
    """Members with both secrets accept seals with either secret, and seal with the first."""
    between = Seal("orders", "log-1", (OLD, NEW))
    assert between.holds(b"here", OURS.headers(b"here"))
    assert Seal("orders", "log-1", (OLD,)).holds(b"here", between.headers(b"here"))


@pytest.mark.parametrize("text", ["", " ", "short", "long enough to be one,", ","])
def test_short_secret_is_refused(text: str) -> None:
    """Short and empty secrets are errors, so that sealing is never switched off by mistake."""
    with pytest.raises(ConfigurationError, match="group_secret") as error:
        read_secrets(text)
    assert text.strip(", ") not in str(error.value) or not text.strip(", ")


def test_secret_is_not_in_the_representation() -> None:
    """The `repr` of a seal does not contain the secret, because a log may contain the `repr`."""
    assert "secret of all" not in repr(OURS)

"""Keys: invalid keys are refused, and a signature is valid for one message and one key."""

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.errors import ConfigurationError, InvalidPlanError
from fairlead.followers import FollowOptions
from fairlead.wire.seals import read_secrets
from fairlead.wire.signing import Signer, Verifier, signed_bytes
from tests.records import PUBLIC, SIGNER

#: A key for key agreement (X25519), which cannot sign.
OTHER_KIND = "x:MC4CAQAwBQYDK2VuBCIEIMATPAZp43ijziiVGt+rLXY4ENxBHzPdOS4eIodBfbV6"


def test_signature_is_valid_for_its_bytes_and_key() -> None:
    """Other bytes, another key with the same id, and an unknown id are refused."""
    verifier, message = Verifier.from_text(PUBLIC), signed_bytes(b"a", b"b")
    verifier.verify("tests", SIGNER.sign(message), message)
    for key_id, signature, of in (
        ("tests", SIGNER.sign(message), signed_bytes(b"ab", b"")),
        ("tests", Signer.new("tests").sign(message), message),
        ("unknown", SIGNER.sign(message), message),
        ("tests", b"", message),
    ):
        with pytest.raises(InvalidPlanError):
            verifier.verify(key_id, signature, of)


def test_keys_can_be_changed_gradually() -> None:
    """With both public keys, signatures by either private key are accepted."""
    newer = Signer.new("newer")
    verifier = Verifier.from_text(f"{PUBLIC}, {newer.public_text()}")
    for signer in (SIGNER, newer):
        verifier.verify(signer.key_id, signer.sign(b"message"), b"message")


def test_generated_key_can_be_read() -> None:
    """The settings accept a key in the form that `fairlead signing-key` prints."""
    drawn = Signer.new("2026-03")
    again = Signer.from_text(drawn.private_text())
    assert again.public_text() == drawn.public_text()


@pytest.mark.parametrize(
    "text", ["", " ", "tests", "tests:", ":MC4", "tests:#", "tests:MC4=", OTHER_KIND]
)
@pytest.mark.parametrize("read", [Signer.from_text, Verifier.from_text])
def test_invalid_keys_are_errors(read: Callable[[str], object], text: str) -> None:
    """Empty, incomplete and unsuitable keys are errors; the message does not repeat the key."""
    with pytest.raises(ConfigurationError) as refused:
        read(text)
    assert len(text) < 5 or text not in str(refused.value)


def test_a_follower_with_an_empty_key_does_not_start() -> None:
    """An empty key is an error; otherwise plan followers would silently accept unsigned plans."""
    with pytest.raises(ConfigurationError, match="is empty"):
        FollowOptions(public_keys="")


@pytest.mark.parametrize(
    "text",
    [
        SIGNER.private_text(),
        f"{PUBLIC}, {SIGNER.private_text()}",
        SIGNER.private_text().partition(":")[2],
        SIGNER.private_text()[:-20],
    ],
    ids=["alone", "among others", "without its id", "cut off"],
)
@pytest.mark.parametrize(
    ("option", "construct"),
    [("public_keys", lambda text: FollowOptions(public_keys=text)), ("group_secret", read_secrets)],
)
def test_consumer_refuses_a_private_key(
    option: str, construct: Callable[[str], object], text: str
) -> None:
    """If an option contains a private key, the error names the option, but not the key."""
    with pytest.raises(ConfigurationError) as refused:
        construct(text)
    assert str(refused.value).startswith(f"{option} contains a private key")
    assert text[-40:] not in str(refused.value)


def test_keys_need_the_extra_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the extra `signed` is not installed, a plan follower with public keys does not start."""
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigurationError, match="wheel with its extra: signed"):
        FollowOptions(public_keys=PUBLIC)

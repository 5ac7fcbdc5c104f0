"""Ed25519 signatures: the planner has the private key, plan followers have the public keys.

Belongs here: keys as text, signing and verifying bytes. Belongs elsewhere: which bytes are signed
(`record`).

Needs the package `cryptography`, which the extra `signed` installs. The package is imported when a
key is parsed, so that an unusable key raises an error immediately.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from fairlead.errors import ConfigurationError, InvalidPlanError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

#: Prefix of the signed bytes, so that a signature made for another purpose is not valid here.
DOMAIN: Final = b"fairlead-v2\0"
#: Text that occurs in the base64 of every Ed25519 private key in PKCS8 DER, and in no public key.
#: It encodes the algorithm and the header of the key's bytes.
_PRIVATE: Final = "BQYDK2VwBCIEI"


@dataclass(frozen=True)
class Signer:
    """Signs with one private key.

    Parameters
    ----------
    key_id
        The id by which plan followers select the public key.
    """

    key_id: str
    _key: "Ed25519PrivateKey"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse a private key: `id:base64 of PKCS8 DER`.

        Raises
        ------
        ConfigurationError
            The text is not such a key, or `cryptography` is not installed. The message does not
            contain the key.
        """
        serialization, ed25519 = _library()
        key_id, der = _split(text.strip(), "The private key")
        try:
            key = serialization.load_der_private_key(der, password=None)
        except (ValueError, TypeError) as error:
            raise ConfigurationError("The private key is not in PKCS8 DER") from error
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise ConfigurationError("The private key is not an Ed25519 key")
        return cls(key_id, key)

    @classmethod
    def new(cls, key_id: str) -> Self:
        """Generate a new private key."""
        _, ed25519 = _library()
        if not key_id or set(key_id) & set(":, \t\r\n"):
            raise ConfigurationError(
                f"A key's id is a name without spaces, colons and commas, not {key_id!r}"
            )
        return cls(key_id, ed25519.Ed25519PrivateKey.generate())

    def private_text(self) -> str:
        """Return the private key, which is secret, in the format of `from_text`."""
        serialization, _ = _library()
        der = self._key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return f"{self.key_id}:{base64.b64encode(der).decode()}"

    def public_text(self) -> str:
        """Return the public key in the format of `Verifier.from_text`."""
        serialization, _ = _library()
        der = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return f"{self.key_id}:{base64.b64encode(der).decode()}"

    def verifier(self) -> "Verifier":
        """Return a verifier that trusts only this key."""
        return Verifier({self.key_id: self._key.public_key()})

    def sign(self, message: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self._key.sign(message)


@dataclass(frozen=True)
class Verifier:
    """Verifies signatures with several public keys, so that a key can be replaced gradually."""

    _keys: Mapping[str, "Ed25519PublicKey"]

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse one or more public keys, separated by commas: `id:base64 of SPKI DER`.

        Raises
        ------
        ConfigurationError
            The text is not a list of such keys, an id occurs twice, the text contains a private
            key, or `cryptography` is not installed.
        """
        refuse_private_key(text, "public_keys")
        serialization, ed25519 = _library()
        keys: dict[str, Ed25519PublicKey] = {}
        for part in text.split(","):
            key_id, der = _split(part.strip(), "A public key")
            try:
                key = serialization.load_der_public_key(der)
            except (ValueError, TypeError) as error:
                raise ConfigurationError(f"Public key {key_id!r} is not in SPKI DER") from error
            if not isinstance(key, ed25519.Ed25519PublicKey):
                raise ConfigurationError(f"Public key {key_id!r} is not an Ed25519 key")
            if key_id in keys:
                raise ConfigurationError(f"Public key {key_id!r} occurs twice")
            keys[key_id] = key
        return cls(keys)

    def verify(self, key_id: str, signature: bytes, message: bytes) -> None:
        """Check a signature.

        Raises
        ------
        InvalidPlanError
            `key_id` is unknown, or the signature is invalid.
        """
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

        key = self._keys.get(key_id)
        if key is None:
            known = ", ".join(sorted(self._keys))
            raise InvalidPlanError(
                f"it is signed with key {key_id!r}; the trusted keys are {known}"
            )
        try:
            key.verify(signature, message)
        except InvalidSignature as error:
            raise InvalidPlanError(f"its signature with key {key_id!r} is invalid") from error


def signed_bytes(*fields: bytes) -> bytes:
    r"""Encode a list of fields as the bytes to sign; different lists give different bytes.

    Examples
    --------
    >>> signed_bytes(b"ab", b"")
    b'fairlead-v2\x00\x00\x00\x00\x02ab\x00\x00\x00\x00'
    """
    return DOMAIN + b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def refuse_private_key(text: str, option: str) -> None:
    """Raise an error if the text of a consumer's option contains a private key.

    Raises
    ------
    ConfigurationError
        The text contains a private key. The message does not contain it.
    """
    if _PRIVATE in text:
        raise ConfigurationError(
            f"{option} contains a private key, the planner's secret kafka.private_key. Generate a "
            "new key pair, and give consumers only the public key"
        )


def _library() -> tuple[Any, Any]:
    """Return the modules `serialization` and `ed25519` of the optional package `cryptography`."""
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "A key is configured, but the package cryptography is missing. Install Fairlead's "
            "wheel with its extra: signed"
        ) from error
    return serialization, ed25519


def _split(text: str, what: str) -> tuple[str, bytes]:
    """Parse `id:base64`, and return the key's id and bytes; errors begin with `what`."""
    if not text:
        raise ConfigurationError(
            f"{what} is empty: is a variable not set? To use no key, omit the option"
        )
    key_id, colon, encoded = text.partition(":")
    if not (key_id and colon and encoded):
        raise ConfigurationError(f"{what} is not of the form id:base64")
    try:
        return key_id, base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ConfigurationError(f"{what} is not of the form id:base64") from error

"""Ed25519 signatures: the planner holds the private key, followers the public ones.

Belongs here: keys as text, signing and verifying bytes. Does not: which bytes are signed
(`record`). The library that signs is `cryptography`, of the extra `signed`; it is imported when a
key is configured, so that a key that could not be used is an error at once and never ignored.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from fairlead.errors import ConfigurationError, InvalidPlanError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

#: Of the bytes that are signed: no signature of something else can pass for one of these.
DOMAIN: Final = b"fairlead-v2\0"
#: In the base64 of every Ed25519 private key in PKCS8 DER, and of no public key: the algorithm, and
#: how the octets of the key begin.
_PRIVATE: Final = "BQYDK2VwBCIEI"


@dataclass(frozen=True)
class Signer:
    """Signs with one private key.

    Parameters
    ----------
    key_id
        What followers find the public key by.
    """

    key_id: str
    _key: "Ed25519PrivateKey"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a private key: `id:base64 of PKCS8 DER`.

        Raises
        ------
        ConfigurationError
            The text is empty or no such key, or `cryptography` is not installed. The message does
            not repeat it.
        """
        _require_library()
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PrivateKey,
        )

        key_id, der = _split(text.strip(), "The private key")
        try:
            key = serialization.load_der_private_key(der, password=None)
        except (ValueError, TypeError) as error:
            raise ConfigurationError("The private key is none in PKCS8 DER") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationError("The private key is no Ed25519 key")
        return cls(key_id, key)

    @classmethod
    def new(cls, key_id: str) -> Self:
        """Draw a key."""
        _require_library()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PrivateKey,
        )

        if not key_id or set(key_id) & set(":, \t\r\n"):
            raise ConfigurationError(
                f"A key's id is a name without spaces, colons and commas, not {key_id!r}"
            )
        return cls(key_id, Ed25519PrivateKey.generate())

    def private_text(self) -> str:
        """Return the private key as `from_text` reads it. A secret."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        der = self._key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return f"{self.key_id}:{base64.b64encode(der).decode()}"

    def public_text(self) -> str:
        """Return the public key as `Verifier.from_text` reads it."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        der = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return f"{self.key_id}:{base64.b64encode(der).decode()}"

    def verifier(self) -> "Verifier":
        """Return what verifies with this key alone."""
        return Verifier({self.key_id: self._key.public_key()})

    def sign(self, message: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self._key.sign(message)


@dataclass(frozen=True)
class Verifier:
    """Verifies with any of several public keys, so that keys are changed without a gap."""

    _keys: Mapping[str, "Ed25519PublicKey"]

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read public keys: `id:base64 of SPKI DER`, several separated by commas.

        Raises
        ------
        ConfigurationError
            The text is empty or no such keys, an id stands twice, a private key is among them, or
            `cryptography` is not installed.
        """
        refuse_private_key(text, "public_keys")
        _require_library()
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PublicKey,
        )

        keys: dict[str, Ed25519PublicKey] = {}
        for part in text.split(","):
            key_id, der = _split(part.strip(), "A public key")
            try:
                key = serialization.load_der_public_key(der)
            except (ValueError, TypeError) as error:
                raise ConfigurationError(f"Public key {key_id!r} is none in SPKI DER") from error
            if not isinstance(key, Ed25519PublicKey):
                raise ConfigurationError(f"Public key {key_id!r} is no Ed25519 key")
            if key_id in keys:
                raise ConfigurationError(f"Public key {key_id!r} stands twice")
            keys[key_id] = key
        return cls(keys)

    def verify(self, key_id: str, signature: bytes, message: bytes) -> None:
        """Check a signature.

        Raises
        ------
        InvalidPlanError
            The key is not known, or the signature is not of these bytes.
        """
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

        key = self._keys.get(key_id)
        if key is None:
            known = ", ".join(sorted(self._keys))
            raise InvalidPlanError(f"it is signed with key {key_id!r}; trusted are {known}")
        try:
            key.verify(signature, message)
        except InvalidSignature as error:
            raise InvalidPlanError(f"its signature by key {key_id!r} does not hold") from error


def signed_bytes(*fields: bytes) -> bytes:
    r"""Return what is signed of these fields: no two lists of fields give the same bytes.

    Examples
    --------
    >>> signed_bytes(b"ab", b"")
    b'fairlead-v2\x00\x00\x00\x00\x02ab\x00\x00\x00\x00'
    """
    return DOMAIN + b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def refuse_private_key(text: str, option: str) -> None:
    """Refuse the planner's private key in an option of a consumer.

    Raises
    ------
    ConfigurationError
        It is there. The message does not repeat it.
    """
    if _PRIVATE in text:
        raise ConfigurationError(
            f"{option} holds a private key, which must not be here: it is the planner's secret, "
            "kafka.private_key. Draw a new pair, and give consumers its public key alone"
        )


def _require_library() -> None:
    try:
        import cryptography  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise ConfigurationError(
            "A key is configured, but signatures cannot be verified: the package cryptography is "
            "missing. Install Fairlead's wheel with its extra: signed"
        ) from error


def _split(text: str, what: str) -> tuple[str, bytes]:
    """Return a key's id and its bytes."""
    if not text:
        raise ConfigurationError(f"{what} is empty: is a variable not set? Leave it out for none")
    key_id, colon, encoded = text.partition(":")
    if not (key_id and colon and encoded):
        raise ConfigurationError(f"{what} is not written as id:base64")
    try:
        return key_id, base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ConfigurationError(f"{what} is not written as id:base64") from error

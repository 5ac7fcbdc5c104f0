"""Who asks: a person, by a proof that the proxy gives, or nobody, and why.

Belongs here: reading and checking a request's headers. Does not: the settings of proofs
(`fairlead.domain.identity`), the issuer's keys (`issuer_keys`), what a person may do.

A header that is there twice, or that a proxy in between could have made of two, proves nothing.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import jwt
from jwt.exceptions import InvalidTokenError, PyJWTError

from fairlead.domain.identity import HeaderSettings, TokenSettings, person_named
from fairlead.errors import FairleadError
from fairlead.settings import WebSettings
from fairlead.surfaces.web.issuer_keys import Keys, KeysUnavailableError

#: A request's headers, in order, as they came.
Headers = Sequence[tuple[bytes, bytes]]
#: Clocks of the issuer and of this machine may be apart by so much.
_LEEWAY_S: Final = 30
_LONGEST_TOKEN: Final = 8192
_LEAST_RSA_BITS: Final = 2048


class NotProvenError(FairleadError):
    """A request does not prove who asks."""


@dataclass(frozen=True)
class Person:
    """Who asks.

    Parameters
    ----------
    name
        As it is compared and recorded.
    proof
        What proves it, as it is recorded.
    """

    name: str
    proof: str


class IdentityProof(Protocol):
    """A way to prove who asks."""

    def person(self, headers: Headers) -> Person:
        """Return who asks; raises NotProvenError where nothing proves it."""
        ...


class ByHeader:
    """A header that names a person and counts beside a secret."""

    def __init__(self, settings: HeaderSettings) -> None:
        self._settings = settings

    def person(self, headers: Headers) -> Person:
        """Return who asks; raises NotProvenError."""
        secret = _only(headers, self._settings.secret_name)
        expected = self._settings.secret.get_secret_value().encode()
        if not hmac.compare_digest(secret, expected):
            raise NotProvenError(f"{self._settings.secret_name} is not the secret of the settings")
        name = _only(headers, self._settings.name)
        if b"," in name:
            raise NotProvenError(f"{self._settings.name} has several names")
        return Person(_named(name, self._settings.name), f"header {self._settings.name}")


class ByToken:
    """A signed token."""

    def __init__(self, settings: TokenSettings) -> None:
        self._settings = settings
        self._keys = Keys(settings.jwks_url)

    def person(self, headers: Headers) -> Person:
        """Return who asks; raises NotProvenError."""
        token = _only(headers, self._settings.header)
        scheme, space, rest = token.partition(b" ")
        if space and scheme.lower() == b"bearer":
            token = rest.strip()
        if len(token) > _LONGEST_TOKEN:
            raise NotProvenError("the token is too long")
        try:
            claims = self._claims(token.decode("ascii"))
        except UnicodeDecodeError:
            raise NotProvenError("the token is none") from None
        except (KeysUnavailableError, PyJWTError) as error:
            raise NotProvenError(f"the token does not count: {error}") from error
        name = claims.get(self._settings.claim)
        if not isinstance(name, str):
            raise NotProvenError(f"the token has no claim {self._settings.claim}")
        if self._settings.claim == "email" and claims.get("email_verified") not in (True, "true"):
            raise NotProvenError(
                "the issuer has not verified the token's email: email_verified is not true;"
                " web.token.claim may name another claim, sub say"
            )
        token_id = claims.get("jti")
        if not isinstance(token_id, str) or not token_id.isprintable():
            token_id = f"sha256 {hashlib.sha256(token).hexdigest()[:16]}"
        return Person(
            _named(name.encode(errors="surrogatepass"), self._settings.claim),
            f"token {token_id[:100]}",
        )

    def _claims(self, token: str) -> dict[str, Any]:
        """Return what a token claims, once its signature, times, issuer and audience hold."""
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._settings.algorithms:
            raise InvalidTokenError(f"it is signed by {algorithm!r}, which no setting names")
        if "crit" in header:
            raise InvalidTokenError("it asks for an extension")
        if not isinstance(key_id, str):
            raise InvalidTokenError("it names no key")
        published = self._keys.find(key_id)
        if published is None:
            raise InvalidTokenError(f"its issuer has no key {key_id!r}")
        if published.get("alg", algorithm) != algorithm:
            raise InvalidTokenError(f"its key {key_id!r} is for another algorithm")
        key = jwt.PyJWK(dict(published), algorithm)
        if key.key_type == "RSA" and key.key.key_size < _LEAST_RSA_BITS:
            raise InvalidTokenError(f"its key {key_id!r} is too short")
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=_LEEWAY_S,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims


def identity_of(web: WebSettings) -> IdentityProof | None:
    """Return how the settings have people proven; None: not at all, and pages only show."""
    if web.token is not None:
        return ByToken(web.token)
    return None if web.header is None else ByHeader(web.header)


def _only(headers: Headers, name: str) -> bytes:
    """Return a header that is there once, and spelt so: some servers take _ for -."""
    wanted = name.lower().encode()
    found = [
        (key.lower(), value) for key, value in headers if key.lower().replace(b"_", b"-") == wanted
    ]
    if not found:
        raise NotProvenError(f"the request has no header {name}, which the proxy in front sets")
    if len(found) > 1 or found[0][0] != wanted:
        raise NotProvenError(f"the header {name} is there more than once, or in another spelling")
    return found[0][1].strip()


def _named(name: bytes, where: str) -> str:
    try:
        return person_named(name.decode())
    except ValueError as error:  # UnicodeDecodeError is one
        raise NotProvenError(f"{where}: {error}") from error

"""The person who sent a request, proven by a header or a token from the proxy.

Belongs here: reading and checking a request's headers. Belongs elsewhere: the settings for header
and token (`fairlead.domain.identity`), the issuer's keys (`issuer_keys`), a person's rights.

A header is refused if it occurs twice, or if a proxy may have joined it from two headers.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.exceptions import InvalidTokenError, PyJWTError

from fairlead.domain.identity import HeaderSettings, TokenSettings, person_named
from fairlead.errors import FairleadError
from fairlead.settings import WebSettings
from fairlead.surfaces.web.issuer_keys import Keys, KeysUnavailableError

#: A request's headers, in order and unchanged.
Headers = Sequence[tuple[bytes, bytes]]
#: Maximum difference between the clocks of the issuer and this machine.
_LEEWAY_S: Final = 30
_LONGEST_TOKEN: Final = 8192
_LEAST_RSA_BITS: Final = 2048


class NotProvenError(FairleadError):
    """A request does not prove the name of its sender."""


@dataclass(frozen=True)
class Person:
    """The sender of a request.

    Parameters
    ----------
    name
        The name as `person_named` returns it. Names are compared and stored in this form.
    proof
        How the name was proven: the header's name, or the token's id. Stored in the history.
    """

    name: str
    proof: str


class ByHeader:
    """Identifies people by a header with their name, and another header with a shared secret."""

    def __init__(self, settings: HeaderSettings) -> None:
        self._settings = settings

    def person(self, headers: Headers) -> Person:
        """Return the sender; raises NotProvenError."""
        secret = _only(headers, self._settings.secret_name)
        expected = self._settings.secret.get_secret_value().encode()
        if not hmac.compare_digest(secret, expected):
            raise NotProvenError(f"{self._settings.secret_name} differs from web.header.secret")
        name = _only(headers, self._settings.name)
        if b"," in name:
            raise NotProvenError(f"the header {self._settings.name} has several names")
        return Person(_named(name, self._settings.name), f"header {self._settings.name}")


class ByToken:
    """Identifies people by a signed token in a header."""

    def __init__(self, settings: TokenSettings) -> None:
        self._settings = settings
        self._keys = Keys(settings.jwks_url)

    def person(self, headers: Headers) -> Person:
        """Return the sender; raises NotProvenError."""
        token = _only(headers, self._settings.header)
        scheme, space, rest = token.partition(b" ")
        if space and scheme.lower() == b"bearer":
            token = rest.strip()
        if len(token) > _LONGEST_TOKEN:
            raise NotProvenError("the token is too long")
        try:
            claims = self._claims(token.decode("ascii"))
        except UnicodeDecodeError:
            raise NotProvenError("the token is not ASCII") from None
        except (KeysUnavailableError, PyJWTError) as error:
            raise NotProvenError(f"the token is not valid: {error}") from error
        name = claims.get(self._settings.claim)
        if not isinstance(name, str):
            raise NotProvenError(f"the token has no claim {self._settings.claim}")
        if self._settings.claim == "email" and claims.get("email_verified") not in (True, "true"):
            raise NotProvenError(
                "the issuer has not verified the token's email: email_verified is not true;"
                " set web.token.claim to another claim, such as sub"
            )
        token_id = claims.get("jti")
        if not isinstance(token_id, str) or not token_id.isprintable():
            token_id = f"sha256 {hashlib.sha256(token).hexdigest()[:16]}"
        return Person(
            _named(name.encode(errors="surrogatepass"), self._settings.claim),
            f"token {token_id[:100]}",
        )

    def _claims(self, token: str) -> dict[str, Any]:
        """Return a token's claims after checking its signature, times, issuer and audience."""
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._settings.algorithms:
            raise InvalidTokenError(
                f"it is signed by {algorithm!r}, which is not in web.token.algorithms"
            )
        if "crit" in header:
            raise InvalidTokenError("it requires an extension")
        if not isinstance(key_id, str):
            raise InvalidTokenError("it has no key id")
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


#: The configured way to identify the sender of a request: by a header or by a token.
IdentityProof = ByHeader | ByToken


def identity_of(web: WebSettings) -> IdentityProof | None:
    """Return the configured way to identify people; None: there is none, pages are read-only."""
    if web.token is not None:
        return ByToken(web.token)
    return None if web.header is None else ByHeader(web.header)


def _only(headers: Headers, name: str) -> bytes:
    """Return the value of a header, which must occur exactly once.

    A header with "_" in place of "-" is refused, because some servers treat both names alike.
    """
    wanted = name.lower().encode()
    matching = [
        (key.lower(), value) for key, value in headers if key.lower().replace(b"_", b"-") == wanted
    ]
    if not matching:
        raise NotProvenError(f"the request has no header {name}, which the proxy in front must set")
    if len(matching) > 1 or matching[0][0] != wanted:
        raise NotProvenError(f"the header {name} occurs more than once, or with _ instead of -")
    return matching[0][1].strip()


def _named(name: bytes, where: str) -> str:
    try:
        return person_named(name.decode())
    except ValueError as error:  # UnicodeDecodeError is a ValueError
        raise NotProvenError(f"{where}: {error}") from error

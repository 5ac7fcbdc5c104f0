"""Identity of people who use the pages: how a proxy proves it, and how names are compared.

Belongs here: the settings of the two kinds of proof (a signed token, or a header with a secret),
and comparing names. Belongs elsewhere: checking a request (`fairlead.surfaces.web.identity`), and
permissions, which the database checks.
"""

import re
import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from fairlead.common.nearest import WrongAt

#: Signature algorithms with a private key, which only the issuer has. With a shared key, everyone
#: who checks tokens could also sign them.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
#: Who checks that different people propose and approve a plan: the database, which compares logins,
#: or the proxy in front of the pages, which names people.
FourEyes = Literal["database", "proxy"]
LEAST_SECRET: Final = 32
LONGEST_NAME: Final = 200
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Unicode categories of invisible characters: control, format (zero width, bidi), surrogate,
#: private use, unassigned, line end.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Invisible characters that are in other Unicode categories: joiners, fillers, blanks, variation
#: selectors.
_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def _no_wiretap(url: str) -> str:
    """Refuse an address without TLS: an attacker on the network could replace the issuer's keys."""
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in {"http", "https"}:
        raise ValueError("must be an address such as https://login.example/keys")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise ValueError("must be https: else an attacker could answer as the issuer")
    return url


def _long_enough(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if len(text) < LEAST_SECRET or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"must have at least {LEAST_SECRET} ASCII characters, without spaces: create one with "
            "`openssl rand -hex 32`"
        )
    return secret


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]


class _Proof(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TokenSettings(_Proof):
    """Proof by a signed token (JWT) in a header."""

    header: HeaderName = Field(
        default="Authorization",
        description="Header with the token; its value may begin with `Bearer`.",
    )
    jwks_url: Annotated[str, AfterValidator(_no_wiretap)] = Field(
        description="Address of the issuer's public keys."
    )
    issuer: str = Field(min_length=1, description="Accepted issuer (`iss`).")
    audience: str = Field(min_length=1, description="Accepted audience (`aud`).")
    claim: str = Field(default="email", min_length=1, description="The claim that names a person.")
    algorithms: tuple[Algorithm, ...] = Field(
        default=("RS256", "ES256"), min_length=1, description="Accepted signature algorithms."
    )


class HeaderSettings(_Proof):
    """Proof by two headers: one with the person's name, and one with the proxy's secret."""

    name: HeaderName = Field(
        default="X-Forwarded-Email", description="The header with the person's name."
    )
    secret_name: HeaderName = Field(
        default="X-Fairlead-Secret", description="The header with the shared secret."
    )
    secret: Annotated[SecretStr, AfterValidator(_long_enough)] = Field(
        description="Secret that only the proxy and this server know."
    )

    @model_validator(mode="after")
    def _two_headers(self) -> Self:
        if self.name.casefold() == self.secret_name.casefold():
            raise WrongAt("the name and the secret must be in different headers", "secret_name")
        return self


def person_named(name: str) -> str:
    r"""Return a person's name in the form that is stored and compared.

    Parameters
    ----------
    name
        The name that the proxy sent.

    Raises
    ------
    ValueError
        The name is empty, too long, or has invisible characters.

    Examples
    --------
    >>> person_named(" Kim@Example.com "), person_named("KIM@EXAMPLE.COM")
    ('kim@example.com', 'kim@example.com')
    >>> person_named("kim\u200b@example.com")
    Traceback (most recent call last):
    ValueError: the name has invisible characters
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    folded = re.sub(" +", " ", folded).strip()  # browsers show several spaces like one
    if not folded:
        raise ValueError("the name is empty")
    if len(folded) > LONGEST_NAME:
        raise ValueError(f"the name is longer than {LONGEST_NAME} characters")
    if _BLANK.search(folded) or any(
        unicodedata.category(character) in _UNSEEN for character in folded
    ):
        raise ValueError("the name has invisible characters")
    return folded


def is_among(person: str, patterns: Iterable[str]) -> bool:
    """Return whether a person's name, from `person_named`, matches at least one pattern.

    Examples
    --------
    >>> is_among("kim@example.com", ["*@Example.com"]), is_among("kim@example.com", [])
    (True, False)
    """
    return any(fnmatchcase(person, person_named(pattern)) for pattern in patterns)

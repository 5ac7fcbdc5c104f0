"""Who asks: how a proxy proves it, and when two names are one person.

Belongs here: the settings of both proofs, and names as they are compared. Does not: checking a
request (`fairlead.surfaces.web.identity`), what a person may do, which the database says.
"""

import re
import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from fairlead.common.nearest import WrongAt

#: Signatures by a key that only the issuer has; a shared key could sign for anybody.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
#: Who sees that two decide: the database, by their logins; or the proxy, by whom it names.
FourEyes = Literal["database", "proxy"]
LEAST_SECRET: Final = 32
LONGEST_NAME: Final = 200
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Controls, formats (zero width, bidi), surrogates, private use, what is not assigned, line ends.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters and marks that nobody sees either: joiners, fillers, blanks, variation selectors.
_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def _no_wiretap(url: str) -> str:
    """Refuse keys from a place whose answers others on the network could write."""
    parts = urlsplit(url)
    if not parts.hostname or parts.scheme not in {"http", "https"}:
        raise ValueError("an address such as https://login.example/keys")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise ValueError("https: who answers in the place of the issuer could approve anything")
    return url


def _long_enough(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if len(text) < LEAST_SECRET or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"{LEAST_SECRET} characters at least, of those that a header takes: "
            "`openssl rand -hex 32` makes such a secret"
        )
    return secret


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")]


class _Proof(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TokenSettings(_Proof):
    """A signed token (JWT) in a header."""

    header: HeaderName = Field(
        default="Authorization", description="Where the token is; `Bearer` before it is allowed."
    )
    jwks_url: Annotated[str, AfterValidator(_no_wiretap)] = Field(
        description="Where the issuer publishes its keys."
    )
    issuer: str = Field(min_length=1, description="Whose tokens count: `iss`.")
    audience: str = Field(min_length=1, description="For whom they are meant: `aud`.")
    claim: str = Field(default="email", min_length=1, description="The claim that names a person.")
    algorithms: tuple[Algorithm, ...] = Field(
        default=("RS256", "ES256"), min_length=1, description="Signatures that count."
    )


class HeaderSettings(_Proof):
    """A header that names a person, beside another one with a secret of the proxy's."""

    name: HeaderName = Field(
        default="X-Forwarded-Email", description="The header that names a person."
    )
    secret_name: HeaderName = Field(
        default="X-Fairlead-Secret", description="The header with the secret."
    )
    secret: Annotated[SecretStr, AfterValidator(_long_enough)] = Field(
        description="What the proxy and this server know, and nobody else."
    )

    @model_validator(mode="after")
    def _two_headers(self) -> Self:
        if self.name.casefold() == self.secret_name.casefold():
            raise WrongAt("one header cannot be both the name and the secret", "secret_name")
        return self


def person_named(name: str) -> str:
    r"""Return a person's name as it is recorded and compared.

    Parameters
    ----------
    name
        As the proxy tells it.

    Raises
    ------
    ValueError
        Nobody could read it, or it is none: the message says why.

    Examples
    --------
    >>> person_named(" Kim@Example.com "), person_named("KIM@EXAMPLE.COM")
    ('kim@example.com', 'kim@example.com')
    >>> person_named("kim\u200b@example.com")
    Traceback (most recent call last):
    ValueError: the name has characters that cannot be seen
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    folded = re.sub(" +", " ", folded).strip()  # as a page shows it
    if not folded:
        raise ValueError("the name is empty")
    if len(folded) > LONGEST_NAME:
        raise ValueError(f"the name is longer than {LONGEST_NAME} characters")
    if _BLANK.search(folded) or any(
        unicodedata.category(character) in _UNSEEN for character in folded
    ):
        raise ValueError("the name has characters that cannot be seen")
    return folded


def is_among(person: str, patterns: Iterable[str]) -> bool:
    """Whether a person's name, as compared, matches a pattern.

    Examples
    --------
    >>> is_among("kim@example.com", ["*@Example.com"]), is_among("kim@example.com", [])
    (True, False)
    """
    return any(fnmatchcase(person, person_named(pattern)) for pattern in patterns)

"""Notices: what people are told of by the webhook, and where to.

Belongs here: the events, a notice, and the settings. Does not: when there is one
(`migrations/sql/notices.sql`), what a message looks like (`fairlead.surfaces.notices`).
"""

import binascii
from base64 import b64decode
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from fairlead.common.nearest import WrongAt
from fairlead.domain.identity import LOOPBACK

Event = Literal[
    "plan.waits",
    "plan.made_worse",
    "plan.taken_back",
    "brake.held",
    "brake.released",
    "group.overloaded",
    "group.loses_records",
]
EVENTS: Final[tuple[Event, ...]] = get_args(Event)
#: Of a test message alone.
TEST: Final = "test"

_SECRET: Final = "whsec_"  # noqa: S105 - how each begins
_KEY_BYTES: Final = range(24, 65)


def _reached_safely(url: SecretStr) -> SecretStr:
    """Refuse what is no address, and one where others on the network could read along."""
    text = url.get_secret_value()
    try:
        parts = urlsplit(text)
        well = bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:  # its message may hold a part of the address
        well = False
    if not well or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("no address such as https://hooks.example/services/T/B/x")
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in LOOPBACK):
        raise ValueError("https, or http to this machine: messages name groups and people")
    return url


def _able_to_sign(secret: SecretStr) -> SecretStr:
    try:
        key_of(secret)
    except ValueError:  # its message may hold a part of the secret
        raise ValueError(
            f"{_SECRET} and the base64 of {_KEY_BYTES.start} to {_KEY_BYTES[-1]} bytes: "
            f'`echo "{_SECRET}$(openssl rand -base64 32)"` makes such a secret'
        ) from None
    return secret


def key_of(secret: SecretStr) -> bytes:
    """Return the bytes that messages are signed with; ValueError where it is no such secret."""
    prefix, _, coded = secret.get_secret_value().partition("_")
    key = b64decode(coded, validate=True)
    if f"{prefix}_" != _SECRET or len(key) not in _KEY_BYTES:
        raise binascii.Error
    return key


class NotifySettings(BaseModel):
    """Where people are told what happens, by an outgoing webhook."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[SecretStr, AfterValidator(_reached_safely)] | None = Field(
        default=None, description="Where messages are sent, by POST; a secret, as chats give it."
    )
    format: Literal["json", "slack", "teams"] = Field(
        default="json", description="json is for programs; Slack and Teams have their own."
    )
    secret: Annotated[SecretStr, AfterValidator(_able_to_sign)] | None = Field(
        default=None, description="Signs messages (Standard Webhooks): json takes one."
    )
    events: tuple[Event, ...] = Field(
        default=EVENTS, min_length=1, description="What people are told of."
    )

    @model_validator(mode="after")
    def _signed(self) -> Self:
        if self.url is not None and self.format == "json" and self.secret is None:
            raise WrongAt('format = "json" takes one: nobody else could tell who sends', "secret")
        return self


@dataclass(frozen=True)
class Notice:
    """What people are to be told of.

    Parameters
    ----------
    id
        The event's: every attempt at sending has the same.
    event
        One of `EVENTS`, or `TEST`.
    at
        When it happened.
    group, version
        Of what; None: of all groups, of no version.
    actor
        Who did it; None: nobody in particular.
    said
        Why, or by what, in a sentence.
    """

    id: str
    event: str
    at: datetime
    group: str | None
    version: int | None
    actor: str | None
    said: str

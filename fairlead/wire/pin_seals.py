"""A secret that the members of a group share, and by which they know each other's records.

Belongs here: which bytes are sealed, and whether a seal holds. Does not: what records say (`pins`),
where they stand (`fairlead.followers.confluent`). Plans are the planner's and have signatures of
their own.

Whoever may write to the pin topic can otherwise speak as a member of any group. A record that was
sealed for one group and one log holds in no other; one that is repeated is of a generation that is
over.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fairlead.errors import ConfigurationError
from fairlead.wire.signing import refuse_private_key

HEADER: Final = "fairlead-seal"
_DOMAIN: Final = b"fairlead-pin-v2"
_SHORTEST: Final = 16


@dataclass(frozen=True)
class Seal:
    """What seals the records of a group in one log, and what their seals are held against.

    Parameters
    ----------
    group
        The group id.
    log
        The identity of the pin topic: its id.
    secrets
        The first one seals, and each of them is accepted; empty: nothing is sealed, and any record
        is accepted.
    """

    group: str
    log: str
    secrets: tuple[bytes, ...] = field(default=(), repr=False)

    def headers(self, value: bytes) -> list[tuple[str, str | bytes]]:
        """Return what a record's headers must say."""
        return [(HEADER, self._of(self.secrets[0], value))] if self.secrets else []

    def holds(
        self, value: bytes | None, headers: Iterable[tuple[str, str | bytes | None]] | None
    ) -> bool:
        """Whether a record is a member's.

        Examples
        --------
        >>> ours = Seal("orders", "log-1", (b"sixteen bytes and more",))
        >>> ours.holds(b"here", ours.headers(b"here"))
        True
        >>> ours.holds(b"gone", ours.headers(b"here")), ours.holds(b"here", None)
        (False, False)
        """
        if not self.secrets:
            return True
        said = [seal for name, seal in headers or () if name == HEADER and isinstance(seal, bytes)]
        return any(
            hmac.compare_digest(self._of(secret, value or b""), seal)
            for secret in self.secrets
            for seal in said[:1]
        )

    def _of(self, secret: bytes, value: bytes) -> bytes:
        named = (part.encode() for part in (self.group, self.log))
        parts = [_DOMAIN, *(b"%d:%s" % (len(part), part) for part in named), value]
        return hmac.digest(secret, b"\0".join(parts), "sha256")


def read_secrets(text: str | None) -> tuple[bytes, ...]:
    """Read the secrets that a group shares: one, or several separated by commas.

    To change one without a gap, give every member `old,new`, then `new,old`, then `new`.

    Raises
    ------
    ConfigurationError
        One is shorter than 16 bytes, or empty: an unset variable must not switch sealing off. Or
        the planner's private key is among them. The message does not repeat it.

    Examples
    --------
    >>> len(read_secrets("a secret of sixteen, another one of sixteen"))
    2
    """
    if text is None:
        return ()
    refuse_private_key(text, "group_secret")
    secrets = tuple(secret.strip().encode() for secret in text.split(","))
    if any(len(secret) < _SHORTEST for secret in secrets):
        raise ConfigurationError(
            f"group_secret: each of the secrets, separated by commas, has at least {_SHORTEST} "
            "bytes. Draw one: openssl rand -base64 32. Leave the option out for none"
        )
    return secrets

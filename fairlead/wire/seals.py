"""Seals: codes by which the members of a group authenticate records in the coordination topic.

Belongs here: the bytes that a seal covers, and checking seals. Belongs elsewhere: the content of
records (`agreement`), the topic (`fairlead.followers.confluent`), and plans, which are signed
(`signing`).

A seal is an HMAC with a secret that the members share. Without a secret, anyone who may write to
the coordination topic can act as a member of any group. A seal is valid for only one group and one
topic id. If someone sends an old record again, the record has no effect, because it belongs to an
earlier generation.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fairlead.errors import ConfigurationError
from fairlead.wire.signing import refuse_private_key

HEADER: Final = "fairlead-seal"
_DOMAIN: Final = b"fairlead-seal-v3"
_SHORTEST: Final = 16


@dataclass(frozen=True)
class Seal:
    """Creates and checks the seals of a group's records in one coordination topic.

    Parameters
    ----------
    group
        The group id.
    log
        The topic id of the coordination topic.
    secrets
        The first secret creates seals. A seal with any of the secrets is valid. Empty: records have
        no seal, and every record is accepted.
    """

    group: str
    log: str
    secrets: tuple[bytes, ...] = field(default=(), repr=False)

    def headers(self, value: bytes) -> list[tuple[str, str | bytes]]:
        """Return the headers to send with a record: a seal if there is a secret, otherwise none."""
        return [(HEADER, self._seal(self.secrets[0], value))] if self.secrets else []

    def holds(
        self, value: bytes | None, headers: Iterable[tuple[str, str | bytes | None]] | None
    ) -> bool:
        """Whether a record has a valid seal, or no seal is required.

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
        seals = [seal for name, seal in headers or () if name == HEADER and isinstance(seal, bytes)]
        return any(
            hmac.compare_digest(self._seal(secret, value or b""), seal)
            for secret in self.secrets
            for seal in seals[:1]
        )

    def _seal(self, secret: bytes, value: bytes) -> bytes:
        names = (part.encode() for part in (self.group, self.log))
        parts = [_DOMAIN, *(b"%d:%s" % (len(part), part) for part in names), value]
        return hmac.digest(secret, b"\0".join(parts), "sha256")


def read_secrets(text: str | None) -> tuple[bytes, ...]:
    """Parse a group's shared secrets, separated by commas.

    To change a secret without interruption, give every member `old,new`, then `new,old`, then
    `new`.

    Raises
    ------
    ConfigurationError
        A secret is shorter than 16 bytes, or is the planner's private key. An empty text is an
        error, too, since an unset variable must not switch sealing off. The message does not
        contain the secret.

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
            f"group_secret: each secret (separate several by commas) needs {_SHORTEST} bytes "
            "or more. Create one: openssl rand -base64 32. Without the option, no secret is used"
        )
    return secrets

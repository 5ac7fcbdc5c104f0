"""Records that tell brokers the names of a group's members, for the consumer protocol (KIP-848).

Belongs here: writing and reading records of the members topic. Belongs elsewhere: the members'
names (`members`), and when a record is written (`fairlead.workflows`).

In these groups the broker assigns partitions. An assignor in the broker knows only member ids and
topic ids, while plans contain the names of consumers and topics. So a record with the group id as
its key maps ids to names. The members topic is compacted.

Records of the members topic have the same headers as a plan's record, with kind `members`, version
0 and no lease. A record's epoch is the time of the sample in milliseconds, but at least 1 more than
the epoch of the group's previous record.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fairlead.errors import InvalidPlanError
from fairlead.wire.document import FORMAT
from fairlead.wire.record import Headers, Origin, plan_headers
from fairlead.wire.record_reading import check_headers, header_text, read_headers
from fairlead.wire.signing import Signer, Verifier
from fairlead.wire.times import write_time

_KIND: Final = "members"
#: Version in the headers: 0, because only plans have versions.
_VERSION: Final = 0


@dataclass(frozen=True)
class Membership:
    """The members of a group at one moment.

    Parameters
    ----------
    group
        The group id.
    at
        Time of the sample; time-zone-aware.
    members
        Maps each member id to the member's name in plans.
    topics
        Maps a topic to the id that the cluster gave it, in Kafka's text form. Contains the existing
        topics to which a member subscribes.
    """

    group: str
    at: datetime
    members: Mapping[str, str]
    topics: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """Return the value of the record.

        Examples
        --------
        >>> from datetime import UTC
        >>> at = datetime(2026, 3, 1, tzinfo=UTC)
        >>> Membership("g", at, {"x1": "a"}, {"t": "dG9"}).to_bytes()[:52]
        b'{"format":2,"kind":"members","group":"g","at":"2026-'
        """
        document = {
            "format": FORMAT,
            "kind": _KIND,
            "group": self.group,
            "at": write_time(self.at),
            "members": dict(sorted(self.members.items())),
            "topics": dict(sorted(self.topics.items())),
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

    def headers(self, *, origin: Origin, after: int = 0, signer: Signer | None = None) -> Headers:
        """Return the headers of the record.

        Parameters
        ----------
        origin
            The topic to which the record is written.
        after
            Epoch of the group's newest record; 0: there is no record.
        signer
            Signs the record; None: the record is not signed.
        """
        return plan_headers(
            self.to_bytes(),
            group=self.group,
            version=_VERSION,
            origin=origin,
            epoch=max(int(self.at.timestamp() * 1000), after + 1),
            lease_until=None,
            kind=_KIND,
            signer=signer,
        )


def read_membership(
    value: bytes,
    headers: Iterable[tuple[str, bytes | None]],
    *,
    group: str,
    origin: Origin,
    verifier: Verifier | None,
) -> tuple[Membership, int]:
    """Read and check a record that is not a tombstone; return its content and its epoch.

    Parameters
    ----------
    value, headers, group, origin, verifier
        As for `fairlead.wire.record_reading.read_record`.

    Raises
    ------
    InvalidPlanError
        The record has another format, cannot be read, is for another group, cluster or topic id,
        has a wrong hash, or lacks a valid signature.
    """
    by_name = read_headers(value, headers)
    if (kind := header_text(by_name, "kind")) != _KIND:
        raise InvalidPlanError(f"The record is of kind {kind!r}, not {_KIND!r}")
    epoch = check_headers(by_name, group=group, version=_VERSION, origin=origin, verifier=verifier)
    try:
        membership = _read(json.loads(value.decode()))
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InvalidPlanError(
            f"The record of a group's members cannot be read: {error}"
        ) from error
    if membership.group != group:
        raise InvalidPlanError(f"The record is of {membership.group!r}, but its key is {group!r}")
    return membership, epoch


def _read(raw: dict[str, Any]) -> Membership:
    at = datetime.fromisoformat(raw["at"])
    if raw["kind"] != _KIND or at.tzinfo is None:
        raise ValueError("`kind` is wrong, or a time has no time zone")
    return Membership(str(raw["group"]), at, _texts(raw["members"]), _texts(raw["topics"]))


def _texts(raw: Any) -> dict[str, str]:
    if not isinstance(raw, dict) or not all(
        isinstance(value, str) and value for value in raw.values()
    ):
        raise TypeError("ids and names must be strings")
    return raw

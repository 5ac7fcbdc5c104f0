"""A record of the plan topic, as the planner writes it.

Belongs here: headers, a record's identity, and the bytes that are signed. Belongs elsewhere: the
document (`document`), checking records (`record_reading`), and cryptography (`signing`).

The value is a plan's document, or states that the group's plan is withdrawn. The headers contain
the format, the kind, the version, the hash of the value, the cluster id, the topic id (`log`), the
epoch, and the end of the lease.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple

from fairlead.wire.document import FORMAT, content_hash
from fairlead.wire.signing import Signer, signed_bytes
from fairlead.wire.times import write_time

Headers = list[tuple[str, bytes]]
Kind = Literal["plan", "withdrawn", "members"]


class Identity(NamedTuple):
    """Identity and order of a record: a later record has a greater identity.

    Parameters
    ----------
    epoch
        When the record's series of plan versions began, in milliseconds since 1970. A new series
        begins with the group's first plan, after a withdrawal, and if the planner's database was
        replaced.
    version
        The plan's version.
    withdrawn
        Whether the plan was withdrawn.
    sha256
        SHA-256 of the value, in hexadecimal.
    """

    epoch: int
    version: int
    withdrawn: bool = False
    sha256: str = ""

    @property
    def rank(self) -> tuple[int, int, bool]:
        """The fields that determine the order of records: all except the hash."""
        return self[:3]


#: Identity in place of a record that does not exist. It is lower than the identity of each record.
NOTHING: Final = Identity(0, 0)


@dataclass(frozen=True)
class Origin:
    """The topic of a record.

    Parameters
    ----------
    topic
        The name of the plan topic.
    cluster, log
        The cluster id and the topic id, as Kafka writes them; "": unknown.
    """

    topic: str
    cluster: str = ""
    log: str = ""


def plan_headers(
    value: bytes,
    *,
    group: str,
    version: int,
    origin: Origin,
    epoch: int,
    lease_until: datetime | None,
    kind: Kind = "plan",
    signer: Signer | None = None,
) -> Headers:
    """Return the headers of a record.

    Parameters
    ----------
    value
        The record's value: a plan document, the result of `withdrawn_value`, or the names of a
        group's members.
    group, version
        The group, and the version of its plan; 0 for members' names.
    origin
        The topic to which the record is written.
    epoch
        As in `Identity`.
    lease_until
        When the plan expires unless it is renewed, rounded down to the millisecond; None: never.
    kind
        Whether the value is a plan, a withdrawal or the members' names.
    signer
        Signs the record; None: the record is not signed.
    """
    headers: Headers = [
        ("format", str(FORMAT).encode()),
        ("kind", kind.encode()),
        ("version", str(version).encode()),
        ("sha256", content_hash(value).encode()),
        ("cluster", origin.cluster.encode()),
        ("log", origin.log.encode()),
        ("epoch", str(epoch).encode()),
    ]
    if lease_until is not None:
        headers.append(("lease_until", write_time(lease_until).encode()))
    if signer is not None:
        message = message_of(dict(headers), group=group, version=version, topic=origin.topic)
        headers += [
            ("key_id", signer.key_id.encode()),
            ("signature", base64.b64encode(signer.sign(message))),
        ]
    return headers


def withdrawn_value(group: str, version: int) -> bytes:
    """Return the value that withdraws a version and all earlier ones.

    Examples
    --------
    >>> withdrawn_value("orders", 7)
    b'{"format":2,"kind":"withdrawn","group":"orders","version":7}'
    """
    withdrawn = {"format": FORMAT, "kind": "withdrawn", "group": group, "version": version}
    return json.dumps(withdrawn, ensure_ascii=False, separators=(",", ":")).encode()


def message_of(headers: Mapping[str, bytes], *, group: str, version: int, topic: str) -> bytes:
    """Return the bytes that the signature of a record covers.

    Parameters
    ----------
    headers
        The record's headers; `kind` and `sha256` are required.
    group
        The group, from the record's key.
    version
        The version, from the record's headers.
    topic
        The name of the record's topic.
    """
    return signed_bytes(
        headers.get("cluster", b""),
        topic.encode(),
        headers.get("log", b""),
        group.encode(),
        headers["kind"],
        str(version).encode(),
        headers.get("epoch", b""),
        bytes.fromhex(headers["sha256"].decode()),
        headers.get("lease_until", b""),
    )

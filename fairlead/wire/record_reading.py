"""Read a record of the plan topic, and check whether it is valid.

Belongs here: all checks of a single record. Belongs elsewhere: writing records (`record`), and the
order of records (`fairlead.followers.core.plan_cache`).
"""

import base64
import binascii
import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fairlead.errors import InvalidPlanError
from fairlead.wire.document import FORMAT, PlanDocument, content_hash, unique_names
from fairlead.wire.record import (
    Identity,
    Origin,
    message_of,
)
from fairlead.wire.signing import Verifier
from fairlead.wire.times import read_time

#: Plan followers add this time to the end of each lease, because their clock may be ahead of the
#: planner's clock.
SKEW: Final = timedelta(seconds=60)
#: How far in the future an epoch may be. Epochs are times in milliseconds. After a forged epoch far
#: in the future, no new record could have a later epoch.
AHEAD: Final = timedelta(days=1)
#: A number of at most 18 digits, because it must fit into 64 bits in every client's language.
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class VerifiedRecord:
    """The content of a valid record.

    Parameters
    ----------
    identity
        Identity and order of the record.
    plan
        The plan to follow; None: the group's plan is withdrawn.
    lease_until
        When the plan expires unless it is renewed; None: never.
    """

    identity: Identity
    plan: PlanDocument | None
    lease_until: datetime | None


def read_record(
    value: bytes,
    headers: Iterable[tuple[str, bytes | None]],
    *,
    group: str,
    origin: Origin,
    verifier: Verifier | None,
) -> VerifiedRecord:
    """Read and check a record that is not a tombstone.

    The signature is checked before the value is parsed.

    Parameters
    ----------
    value, headers
        Value and headers of the record.
    group
        The group id, from the record's key.
    origin
        The topic from which the record was read.
    verifier
        Has the trusted keys; None: records need no signature.

    Raises
    ------
    InvalidPlanError
        The record has another format, cannot be read, is for another group, cluster or topic id,
        has a wrong hash, or lacks a valid signature. The message states the reason.
    """
    by_name = read_headers(value, headers)
    if (kind := header_text(by_name, "kind")) not in {"plan", "withdrawn"}:
        raise InvalidPlanError(
            f"The record is of kind {kind!r}, which this version does not support"
        )
    version = _positive(by_name, "version", below=2**31)
    epoch = check_headers(by_name, group=group, version=version, origin=origin, verifier=verifier)
    plan = PlanDocument.from_bytes(value, group=group) if kind == "plan" else None
    in_value = plan.version if plan is not None else _withdrawn_version(value, group)
    if in_value != version:
        raise InvalidPlanError(
            f"The record's version header is {version}, but its value has version {in_value}"
        )
    identity = Identity(epoch, version, plan is None, header_text(by_name, "sha256"))
    return VerifiedRecord(identity, plan, _lease(by_name))


def read_headers(value: bytes, headers: Iterable[tuple[str, bytes | None]]) -> dict[str, bytes]:
    """Return a record's headers by name.

    Raises
    ------
    InvalidPlanError
        The format or the value's hash is wrong.
    """
    by_name = {name: text or b"" for name, text in headers}
    version = header_text(by_name, "format")
    if version != str(FORMAT):
        raise InvalidPlanError(
            f"The record's format header is {version[:40]!r}; this version reads format {FORMAT}"
        )
    if header_text(by_name, "sha256") != content_hash(value):
        raise InvalidPlanError("The record's sha256 header is not the hash of its value")
    return by_name


def check_headers(
    by_name: dict[str, bytes],
    *,
    group: str,
    version: int,
    origin: Origin,
    verifier: Verifier | None,
) -> int:
    """Check a record's signature, cluster and topic id; return the record's epoch.

    Parameters
    ----------
    by_name
        Headers from `read_headers`; `kind` must be among them.
    group
        The group id, from the record's key.
    version
        The version in the record's headers.
    origin, verifier
        As for `read_record`.

    Raises
    ------
    InvalidPlanError
        The record is for another cluster or topic id, lacks a valid signature, or has an invalid
        epoch.
    """
    if verifier is not None:
        _check_signature(
            by_name, group=group, version=version, topic=origin.topic, verifier=verifier
        )
    for name, known in (("cluster", origin.cluster), ("log", origin.log)):
        if known and (value := header_text(by_name, name)) and value != known:
            raise InvalidPlanError(f"The record is for {name} {value!r}, not for {known!r}")
    return _epoch(by_name)


def _check_signature(
    by_name: dict[str, bytes], *, group: str, version: int, topic: str, verifier: Verifier
) -> None:
    if "signature" not in by_name or "key_id" not in by_name:
        raise InvalidPlanError("The record is not signed")
    if not (by_name.get("cluster") and by_name.get("log")):
        raise InvalidPlanError("The record is signed, but lacks the header `cluster` or `log`")
    try:
        signature = base64.b64decode(by_name["signature"], validate=True)
    except binascii.Error as error:
        raise InvalidPlanError("The record's signature is not base64") from error
    message = message_of(by_name, group=group, version=version, topic=topic)
    try:
        verifier.verify(header_text(by_name, "key_id"), signature, message)
    except InvalidPlanError as error:
        raise InvalidPlanError(f"The record is rejected: {error}") from error


def _withdrawn_version(value: bytes, group: str) -> int:
    """Return the version that a record withdraws."""
    try:
        raw = json.loads(value.decode(), object_pairs_hook=unique_names)
        version = raw["version"] if raw["group"] == group and raw["kind"] == "withdrawn" else None
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InvalidPlanError(f"The withdrawal record cannot be read: {error}") from error
    if type(version) is not int or not 0 < version < 2**31:
        raise InvalidPlanError(f"The withdrawal record does not name a version of {group!r}")
    return version


def _positive(by_name: dict[str, bytes], name: str, below: int) -> int:
    text = header_text(by_name, name)
    if not _NUMBER.fullmatch(text) or not 0 < int(text) < below:
        raise InvalidPlanError(f"The record's {name} is {text[:40]!r}, not a positive number")
    return int(text)


def _epoch(by_name: dict[str, bytes]) -> int:
    epoch = _positive(by_name, "epoch", below=2**63)
    if epoch > (time.time() + AHEAD.total_seconds()) * 1000:
        raise InvalidPlanError(f"The record's epoch, {epoch}, is over a day in the future")
    return epoch


def _lease(by_name: dict[str, bytes]) -> datetime | None:
    text = header_text(by_name, "lease_until")
    if not text:
        return None
    try:
        return read_time(text)
    except ValueError as error:
        raise InvalidPlanError(f"The record's lease_until: {error}") from error


def header_text(by_name: dict[str, bytes], name: str) -> str:
    """Return a header's text, "" if missing; raise InvalidPlanError if it is not UTF-8."""
    try:
        return by_name.get(name, b"").decode()
    except UnicodeDecodeError as error:
        raise InvalidPlanError(f"The record's {name} header is not UTF-8") from error

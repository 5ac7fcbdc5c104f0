"""A record of the plan topic, as it is read: every check that one record can be put to by itself.

Belongs here: what of a record is to be believed. Does not: how records are written (`record`), nor
what a record means after others (`fairlead.followers.core.plan_cache`).
"""

import base64
import binascii
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fairlead.errors import InvalidPlanError
from fairlead.wire.document import FORMAT, PlanDocument, content_hash, unique_names
from fairlead.wire.record import (
    CLUSTER_HEADER,
    EPOCH_HEADER,
    FORMAT_HEADER,
    HASH_HEADER,
    KEY_HEADER,
    KIND_HEADER,
    LEASE_HEADER,
    LOG_HEADER,
    SIGNATURE_HEADER,
    VERSION_HEADER,
    Identity,
    Origin,
    message_of,
)
from fairlead.wire.signing import Verifier
from fairlead.wire.times import read_time

#: How far a follower's clock may be ahead of the planner's before a plan lapses too early.
SKEW: Final = timedelta(seconds=60)
#: An epoch is drawn by the planner's clock, in milliseconds: none is later than this from now. A
#: later one would have the planner draw one that is later still.
AHEAD: Final = timedelta(days=1)
#: An epoch fits the integers of every client's language.
_DIGITS: Final = 18


@dataclass(frozen=True)
class VerifiedRecord:
    """What a good record says.

    Parameters
    ----------
    identity
        What it is known by.
    plan
        The plan to follow; None: the one that was followed is withdrawn.
    lease_until
        When it lapses unless it is told again; None: never.
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
    """Read and check a record that has a value: its signature before the value is parsed.

    Parameters
    ----------
    value, headers
        The record's.
    group
        What its key names.
    origin
        Where it was read.
    verifier
        With it, the record must be signed with a key that it knows; None: with none.

    Raises
    ------
    InvalidPlanError
        It is of another format, cannot be read, is another group's, cluster's or log's, its hash
        differs, or it is not signed as it must be. The message says which.
    """
    found = read_headers(value, headers)
    if (kind := header_text(found, KIND_HEADER)) not in {"plan", "withdrawn"}:
        raise InvalidPlanError(f"The record is of kind {kind!r}, which this version does not know")
    version = _version(found)
    epoch = check_headers(found, group=group, version=version, origin=origin, verifier=verifier)
    plan = PlanDocument.from_bytes(value, group=group) if kind == "plan" else None
    says = plan.version if plan is not None else _withdrawn_version(value, group)
    if says != version:
        raise InvalidPlanError(f"The record's version header is {version}, its value says {says}")
    identity = Identity(epoch, version, plan is None, header_text(found, HASH_HEADER))
    return VerifiedRecord(identity, plan, _lease(found))


def read_headers(value: bytes, headers: Iterable[tuple[str, bytes | None]]) -> dict[str, bytes]:
    """Return a record's headers by name.

    Raises
    ------
    InvalidPlanError
        They name another format, or another hash than the value's.
    """
    found = {name: text or b"" for name, text in headers}
    said = header_text(found, FORMAT_HEADER)
    if said != str(FORMAT):
        raise InvalidPlanError(
            f"The record's format header is {said[:40]!r}; this version reads format {FORMAT}"
        )
    if header_text(found, HASH_HEADER) != content_hash(value):
        raise InvalidPlanError("The record's sha256 header does not agree with its bytes")
    return found


def check_headers(
    found: dict[str, bytes],
    *,
    group: str,
    version: int,
    origin: Origin,
    verifier: Verifier | None,
) -> int:
    """Check a record's signature and where it belongs; returns its epoch.

    Parameters
    ----------
    found
        From `read_headers`, a kind among them.
    group, version
        What the record's key and its header say.
    origin, verifier
        As for `read_record`.

    Raises
    ------
    InvalidPlanError
        It is another cluster's or log's, or is not signed as it must be.
    """
    if verifier is not None:
        _check_signature(found, group=group, version=version, topic=origin.topic, verifier=verifier)
    for name, known in ((CLUSTER_HEADER, origin.cluster), (LOG_HEADER, origin.log)):
        if known and (said := header_text(found, name)) and said != known:
            raise InvalidPlanError(f"The record is of {name} {said!r}, not of {known!r}")
    return _epoch(found)


def _check_signature(
    found: dict[str, bytes], *, group: str, version: int, topic: str, verifier: Verifier
) -> None:
    if SIGNATURE_HEADER not in found or KEY_HEADER not in found:
        raise InvalidPlanError("The record is not signed")
    if not (found.get(CLUSTER_HEADER) and found.get(LOG_HEADER)):
        raise InvalidPlanError("The record does not say for which cluster and log it is signed")
    try:
        signature = base64.b64decode(found[SIGNATURE_HEADER], validate=True)
    except binascii.Error as error:
        raise InvalidPlanError("The record's signature is no base64") from error
    message = message_of(found, group=group, version=version, topic=topic)
    try:
        verifier.verify(header_text(found, KEY_HEADER), signature, message)
    except InvalidPlanError as error:
        raise InvalidPlanError(f"The record is refused: {error}") from error


def _withdrawn_version(value: bytes, group: str) -> int:
    """Return the version that a record withdraws."""
    try:
        raw = json.loads(value.decode(), object_pairs_hook=unique_names)
        version = raw["version"] if raw["group"] == group and raw["kind"] == "withdrawn" else None
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InvalidPlanError(f"The record of a withdrawal cannot be read: {error}") from error
    if type(version) is not int or not 0 < version < 2**31:
        raise InvalidPlanError(f"The record of a withdrawal is none of a version of {group!r}")
    return version


def _version(found: dict[str, bytes]) -> int:
    text = header_text(found, VERSION_HEADER)
    if (
        not (text.isascii() and text.isdecimal())
        or len(text) > _DIGITS
        or not 0 < int(text) < 2**31
    ):
        raise InvalidPlanError(f"The record's version is {text[:40]!r}, not a positive number")
    return int(text)


def _epoch(found: dict[str, bytes]) -> int:
    text = header_text(found, EPOCH_HEADER)
    if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS or int(text) == 0:
        raise InvalidPlanError(f"The record's epoch is {text[:40]!r}, not a positive number")
    if (epoch := int(text)) > (time.time() + AHEAD.total_seconds()) * 1000:
        raise InvalidPlanError(f"The record's epoch, {epoch}, lies more than a day ahead")
    return epoch


def _lease(found: dict[str, bytes]) -> datetime | None:
    text = header_text(found, LEASE_HEADER)
    if not text:
        return None
    try:
        return read_time(text)
    except ValueError as error:
        raise InvalidPlanError(f"The record's lease_until: {error}") from error


def header_text(found: dict[str, bytes], name: str) -> str:
    """Return a header, "" where it is missing; raises InvalidPlanError where it is no UTF-8."""
    try:
        return found.get(name, b"").decode()
    except UnicodeDecodeError as error:
        raise InvalidPlanError(f"The record's {name} header is no UTF-8") from error

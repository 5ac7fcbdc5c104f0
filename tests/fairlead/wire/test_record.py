"""Records of the plan topic: the signed bytes, and refusal of invalid records."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import InvalidPlanError
from fairlead.wire.document import PlanDocument
from fairlead.wire.record import (
    NOTHING,
    Headers,
    Identity,
    Origin,
    message_of,
    plan_headers,
    withdrawn_value,
)
from fairlead.wire.record_reading import VerifiedRecord, read_record
from fairlead.wire.signing import Signer, Verifier
from tests.fairlead.workflows.plans import make_plan
from tests.records import ORIGIN, PUBLIC, signed, unsigned

#: Test vectors, shared with implementations in other languages.
VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "plan_records.json").read_text())
VERIFIER = Verifier.from_text(PUBLIC)
PLAN = make_plan({"a": {"t": [0]}}, {"t": [1.0]}, group="group")
VALUE = PLAN.to_bytes()
HEADERS = signed(VALUE)


def read(
    value: bytes = VALUE,
    headers: Headers = HEADERS,
    *,
    group: str = "group",
    origin: Origin = ORIGIN,
    verifier: Verifier | None = VERIFIER,
) -> VerifiedRecord:
    return read_record(value, headers, group=group, origin=origin, verifier=verifier)


def without(name: str) -> Headers:
    return [header for header in HEADERS if header[0] != name]


def with_(name: str, text: bytes) -> Headers:
    return [*without(name), (name, text)]


@pytest.mark.parametrize("vector", VECTORS["records"], ids=lambda vector: str(vector["name"]))
def test_records_are_those_of_the_shared_vectors(vector: dict[str, Any]) -> None:
    """Value, headers, signed bytes and signature match the vectors for all languages."""
    value = vector["value"].encode()
    headers = [(name, text.encode()) for name, text in vector["headers"].items()]
    origin = Origin(vector["topic"], vector["headers"]["cluster"], vector["headers"]["log"])
    until = vector["headers"].get("lease_until")
    made = plan_headers(
        value,
        group=vector["group"],
        version=vector["version"],
        origin=origin,
        epoch=int(vector["headers"]["epoch"]),
        lease_until=datetime.fromisoformat(until) if until else None,
        kind=vector["headers"]["kind"],
        signer=Signer.from_text(VECTORS["private_key"]),
    )
    assert made == headers
    message = message_of(
        dict(headers), group=vector["group"], version=vector["version"], topic=origin.topic
    )
    assert base64.b64encode(message).decode() == vector["signed"]
    verifier = Verifier.from_text(VECTORS["public_key"])
    known = read(value, headers, group=vector["group"], origin=origin, verifier=verifier)
    assert known.identity[:3] == (
        int(vector["headers"]["epoch"]),
        vector["version"],
        vector["headers"]["kind"] == "withdrawn",
    )


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: str(vector["name"]))
def test_invalid_plan_records_raise_an_error(vector: dict[str, Any]) -> None:
    """Records that all implementations must refuse raise InvalidPlanError."""
    headers = [(name, text.encode()) for name, text in vector["headers"].items()]
    verifier = Verifier.from_text(VECTORS["public_key"])
    origin = Origin(vector["topic"], vector["cluster"], vector["log"])
    with pytest.raises(InvalidPlanError):
        read(
            vector["value"].encode(),
            headers,
            group=vector["group"],
            origin=origin,
            verifier=verifier,
        )


def test_headers_of_a_signed_record() -> None:
    """Headers have the epoch, version and hash, and the lease's end to the millisecond."""
    until = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
    known = read(headers=signed(VALUE, epoch=9, lease_until=until))
    assert known.identity == Identity(9, 1, sha256=dict(HEADERS)["sha256"].decode())
    assert known.lease_until == until.replace(microsecond=123000)
    assert known.plan is not None


def test_a_withdrawal_is_signed_like_a_plan() -> None:
    """A signed withdrawal is read with the version that it ends, without a plan or lease."""
    value = withdrawn_value("group", 7)
    known = read(value, signed(value, version=7, kind="withdrawn"))
    assert (known.identity[:3], known.plan, known.lease_until) == ((1, 7, True), None, None)


def test_identities_are_ordered_by_epoch_version_and_withdrawal() -> None:
    """Records are ordered by epoch, then by version; a withdrawal comes after its plan."""
    ordered = [NOTHING, Identity(1, 1), Identity(1, 1, withdrawn=True), Identity(2, 1)]
    backward = ordered[::-1]
    assert sorted(backward) == ordered


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (without("signature"), "is not signed"),
        (without("key_id"), "is not signed"),
        (without("kind"), "of kind ''"),
        (unsigned(VALUE), "is not signed"),
        ([], "format header is ''; this version reads format 2"),
        (with_("format", b"1"), "format header is '1'; this version reads format 2"),
        (without("sha256"), "sha256 header is not the hash"),
        (without("lease_until"), "is invalid"),
        (with_("lease_until", b"2099-01-01T00:00:00.000Z"), "is invalid"),
        (with_("epoch", b"2"), "is invalid"),
        (with_("cluster", b"another"), "is invalid"),
        (with_("log", b"another"), "is invalid"),
        (without("log"), "lacks the header `cluster` or `log`"),
        (with_("sha256", b"0" * 64), "sha256 header is not the hash"),
        (with_("kind", b"members"), "of kind 'members'"),
        (with_("signature", b"#"), "not base64"),
        (with_("key_id", b"\xff"), "not UTF-8"),
        (signed(VALUE, version=2), "version header is 2, but its value has version 1"),
        (with_("version", b"2"), "is invalid"),
        (with_("version", b"0"), "version is '0', not a positive number"),
        (without("version"), "version is '', not a positive number"),
        (signed(VALUE, group="another"), "is invalid"),
        (signed(VALUE, origin=replace(ORIGIN, topic="another")), "is invalid"),
        (signed(VALUE, origin=replace(ORIGIN, cluster="another")), "for cluster 'another'"),
        (signed(VALUE, origin=replace(ORIGIN, log="another")), "for log 'another'"),
        (signed(VALUE, epoch=0), "epoch is '0'"),
        (signed(VALUE, epoch=10**18 - 1), "over a day in the future"),
        (signed(VALUE, signer=Signer.new("tests")), "is invalid"),
        (signed(VALUE, signer=Signer.new("mallory")), "signed with key 'mallory'"),
    ],
)
def test_records_of_attackers_are_refused(headers: Headers, message: str) -> None:
    """Records with removed, copied or altered headers raise an error with the reason."""
    with pytest.raises(InvalidPlanError, match=message):
        read(headers=headers)


def test_value_is_parsed_only_after_its_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of an unsigned record is not parsed, because parsing costs more than verifying."""

    def parse(*_: object, **__: object) -> None:
        raise AssertionError("it is parsed")

    monkeypatch.setattr(PlanDocument, "from_bytes", parse)
    with pytest.raises(InvalidPlanError, match="is not signed"):
        read(headers=unsigned(VALUE))
    with pytest.raises(AssertionError, match="it is parsed"):
        read()


def test_changed_bytes_with_a_matching_hash_are_refused() -> None:
    """If value and hash are changed together, the signature is invalid."""
    other = replace(PLAN, assignor="mallory").to_bytes()
    headers = [*with_("sha256", dict(unsigned(other))["sha256"])]
    with pytest.raises(InvalidPlanError, match="is invalid"):
        read(other, headers)


def test_signed_id_of_the_log_is_accepted_if_none_is_known() -> None:
    """A plan follower that cannot query the log's id accepts the id in the signed headers."""
    assert read(origin=replace(ORIGIN, log="")).identity.version == 1


def test_without_keys_every_readable_record_is_accepted() -> None:
    """A plan follower without keys accepts signed, unsigned and wrongly signed records."""
    for headers in (HEADERS, unsigned(VALUE), signed(VALUE, signer=Signer.new("mallory"))):
        assert read(headers=headers, verifier=None).plan is not None


@pytest.mark.parametrize("text", [b"1", b"3", b"", b"\xff"])
def test_unknown_format_is_refused_without_keys(text: bytes) -> None:
    """Even without keys, a plan follower refuses a record whose format header is unknown."""
    with pytest.raises(InvalidPlanError, match="format"):
        read(headers=with_("format", text), verifier=None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([name for name, _ in HEADERS]), st.binary(max_size=20) | st.none()
        ),
        max_size=4,
    )
)
def test_no_headers_break_the_reader(changes: list[tuple[str, bytes | None]]) -> None:
    """Additional headers lead to InvalidPlanError, unless they equal the planner's headers."""
    headers = [*HEADERS, *changes]
    try:
        known = read_record(VALUE, headers, group="group", origin=ORIGIN, verifier=VERIFIER)
    except InvalidPlanError:
        return
    found = {name: text or b"" for name, text in headers}
    assert found == dict(HEADERS)
    assert known.plan is not None

"""Records of the members topic: equal bytes in all languages; invalid ones are refused."""

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead.errors import InvalidPlanError
from fairlead.wire.members_record import Membership, read_membership
from fairlead.wire.record import Origin, message_of
from fairlead.wire.record_reading import read_record
from fairlead.wire.signing import Signer, Verifier

#: Test vectors, shared with implementations in other languages.
VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "member_records.json").read_text())
VERIFIER = Verifier.from_text(VECTORS["public_key"])


def read(vector: dict[str, Any], verifier: Verifier | None = VERIFIER) -> tuple[Membership, int]:
    """Read a shared vector; return its members and its epoch."""
    headers = [(name, text.encode()) for name, text in vector["headers"].items()]
    origin = Origin(vector["topic"], vector["cluster"], vector["log"])
    return read_membership(
        vector["value"].encode(), headers, group=vector["group"], origin=origin, verifier=verifier
    )


@pytest.mark.parametrize("vector", VECTORS["records"], ids=lambda vector: str(vector["name"]))
def test_records_are_those_of_the_shared_vectors(vector: dict[str, Any]) -> None:
    """Value, headers, signed bytes and signature match the vectors; reading returns the members."""
    at = datetime.fromisoformat(json.loads(vector["value"])["at"])
    made = Membership(vector["group"], at, vector["members"], vector["topics"])
    origin = Origin(vector["topic"], vector["cluster"], vector["log"])
    epoch = int(vector["headers"]["epoch"])
    signer = Signer.from_text(VECTORS["private_key"])
    headers = made.headers(origin=origin, after=epoch - 1, signer=signer)
    assert made.to_bytes().decode() == vector["value"]
    assert {name: text.decode() for name, text in headers} == vector["headers"]
    message = message_of(dict(headers), group=made.group, version=0, topic=origin.topic)
    assert base64.b64encode(message).decode() == vector["signed"]
    assert read(vector) == (made, epoch)


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: str(vector["name"]))
def test_invalid_members_records_raise_an_error(vector: dict[str, Any]) -> None:
    """Shared vectors that all implementations must refuse raise InvalidPlanError."""
    with pytest.raises(InvalidPlanError):
        read(vector)


def test_without_keys_a_record_need_not_be_signed() -> None:
    """Without public keys, a record whose signature was removed is accepted."""
    stripped = next(
        vector for vector in VECTORS["refused"] if vector["name"] == "signature stripped"
    )
    assert read(stripped, None)[0].members == VECTORS["records"][0]["members"]


def test_a_record_of_members_is_no_plan() -> None:
    """A correctly signed members record is refused when read as a plan."""
    (vector, *_) = VECTORS["records"]
    origin = Origin(vector["topic"], vector["cluster"], vector["log"])
    headers = [(name, text.encode()) for name, text in vector["headers"].items()]
    with pytest.raises(InvalidPlanError, match="of kind 'members'"):
        read_record(
            vector["value"].encode(),
            headers,
            group=vector["group"],
            origin=origin,
            verifier=VERIFIER,
        )

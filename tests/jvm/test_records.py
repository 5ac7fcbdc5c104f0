"""Java accepts and refuses the same records and documents as Python."""

import base64
import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from fairlead.errors import InvalidPlanError
from fairlead.wire.document import PlanDocument
from fairlead.wire.record import Origin
from fairlead.wire.record_reading import read_record
from fairlead.wire.signing import Verifier
from tests.jvm.asking import Program
from tests.jvm.cases import draw_case
from tests.lengths import form

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "plan_records.json").read_text())
DOCUMENTS = json.loads((Path(__file__).parents[1] / "vectors" / "plan_documents.json").read_text())
MUTATED = form(short=2000, long=100_000)


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def java_reads(checks: Program, vector: dict[str, Any], **changes: Any) -> dict[str, Any]:
    headers = vector["headers"]
    question = {
        "value": b64(vector["value"].encode()),
        "headers": [[name, b64(text.encode())] for name, text in headers.items()],
        "group": vector["group"],
        "topic": vector["topic"],
        "cluster": vector.get("cluster", headers.get("cluster", "")),
        "log": vector.get("log", headers.get("log", "")),
        "public_keys": VECTORS["public_key"],
        **changes,
    }
    answer: dict[str, Any] = checks.ask("record", **question)
    return answer


@pytest.mark.parametrize("vector", VECTORS["records"], ids=lambda vector: str(vector["name"]))
def test_java_accepts_the_shared_vectors(checks: Program, vector: dict[str, Any]) -> None:
    """Java reads the same identity, plan and lease from each record as Python."""
    read_in_python = read_record(
        vector["value"].encode(),
        [(name, text.encode()) for name, text in vector["headers"].items()],
        group=vector["group"],
        origin=Origin(vector["topic"], vector["headers"]["cluster"], vector["headers"]["log"]),
        verifier=Verifier.from_text(VECTORS["public_key"]),
    )
    until = read_in_python.lease_until
    assert java_reads(checks, vector) == {
        "identity": list(read_in_python.identity),
        "plan": read_in_python.plan is not None,
        "lease_ms": None if until is None else round(until.timestamp() * 1000),
    }


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: str(vector["name"]))
def test_java_refuses_invalid_shared_vectors(checks: Program, vector: dict[str, Any]) -> None:
    """Java refuses every record that must not be followed."""
    assert "refused" in java_reads(checks, vector)


def python_reads_document(value: bytes) -> dict[str, Any] | None:
    """Return Python's reading of a document, in Checks.java's format, or None if refused."""
    try:
        plan = PlanDocument.from_bytes(value)
    except InvalidPlanError:
        return None
    bits = struct.Struct(">d"), struct.Struct(">q")
    return {
        "group": plan.group,
        "version": plan.version,
        "partition_counts": dict(plan.partition_counts),
        "members": {
            name: [
                list(share.topics),
                {topic: numbers.tolist() for topic, numbers in share.partitions.items()},
            ]
            for name, share in plan.members.items()
        },
        "weights": {
            topic: [bits[1].unpack(bits[0].pack(weight))[0] for weight in weights.tolist()]
            for topic, weights in plan.weights.items()
        },
        "topic_ids": dict(plan.topic_ids),
    }


def same(checks: Program, values: list[bytes]) -> int:
    """Assert that Java and Python read documents in the same way; return how many both refuse."""
    questions = [{"ask": "document", "value": b64(value)} for value in values]
    refused = 0
    for value, line in zip(values, checks.lines(questions), strict=True):
        answer = json.loads(line)
        expected = python_reads_document(value)
        if expected is None:
            assert "refused" in answer, value
            refused += 1
        else:
            assert answer == expected, value
    return refused


def test_java_and_python_accept_the_same_shared_documents(checks: Program) -> None:
    """Java and Python accept or refuse each shared document as its vector requires."""
    values = [vector["value"].encode("utf-8", "surrogatepass") for vector in DOCUMENTS["documents"]]
    for vector, value in zip(DOCUMENTS["documents"], values, strict=True):
        read = python_reads_document(value) is not None
        assert read == vector["read"], vector["name"]
    same(checks, values)


@pytest.mark.long
def test_java_and_python_accept_the_same_altered_documents(checks: Program) -> None:
    """Java and Python read or refuse documents with random changes in the same way."""
    rng = random.Random(7)
    pieces = [
        b"0",
        b"-1",
        b"1.5",
        b"null",
        b"true",
        b"NaN",
        b'"t"',
        b"[]",
        b"{}",
        b",",
        b'"',
        b"1e9",
    ]
    values = []
    for _ in range(MUTATED):
        value = bytearray(draw_case(rng).plan.to_bytes())
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(value))
            until = min(len(value), at + rng.randint(0, 8))
            value[at:until] = rng.choice(
                [b"", value[at:until] * 2, rng.choice(pieces), rng.randbytes(1)]
            )
        values.append(bytes(value))
    refused = same(checks, values)
    assert 0.3 < refused / MUTATED < 1

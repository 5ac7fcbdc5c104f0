"""Valid configurations make a consumer; for invalid ones, the constructor raises an error."""

from typing import Any

import pytest

from tests.jvm.asking import Program
from tests.records import PUBLIC, SIGNER

KAFKAS = "org.apache.kafka.clients.consumer."


def error_of(checks: Program, **configs: str) -> str | None:
    """Return the error of a configuration, or None if a consumer was made."""
    given: dict[str, Any] = {
        "bootstrap.servers": "localhost:1",
        "group.id": "group",
        "partition.assignment.strategy": "fairlead.kafka.PlanAssignor",
        **{name.replace("_", "."): value for name, value in configs.items()},
    }
    answer: str | None = checks.ask("consumer", configs=given)
    return answer


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"partition_assignment_strategy": f"fairlead.kafka.PlanAssignor,{KAFKAS}RangeAssignor"},
        {"fairlead_public_keys": PUBLIC},
        {"fairlead_public_keys": f"{PUBLIC}, other:{PUBLIC.partition(':')[2]}"},
        {"fairlead_fallback": "range"},
        {"fairlead_fallback": "cooperative-sticky"},
        {"fairlead_fallback": f"{KAFKAS}RangeAssignor"},
        {"fairlead_rejoin_jitter_ms": "-1", "fairlead_read_timeout_ms": "0"},
    ],
)
def test_one_setting_suffices_and_more_are_valid(checks: Program, configs: dict[str, str]) -> None:
    """Each of these configurations makes a consumer."""
    assert error_of(checks, **configs) is None


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("fairlead_public_keys", "", "is empty"),
        ("fairlead_public_keys", "no key", "is not written as id:base64"),
        ("fairlead_public_keys", "a:AAAA", "is not an Ed25519 key"),
        ("fairlead_public_keys", f"{PUBLIC},{SIGNER.private_text()}", "contains a private key"),
        ("fairlead_public_keys", f"{PUBLIC},{PUBLIC}", "twice"),
        ("fairlead_public_keys", f"{PUBLIC},", "is empty"),
        ("fairlead_plan_topic", " ", "is empty"),
        ("fairlead_fallback", "fairlead.kafka.PlanAssignor", "must not need a plan"),
        ("fairlead_fallback", "no.such.Assignor", "not an assignor"),
        ("fairlead_fallback", "java.lang.String", "not an assignor"),
        ("fairlead_rejoin_jitter_ms", "soon", "milliseconds"),
        ("fairlead_read_timeout_ms", "-1", "milliseconds"),
    ],
)
def test_invalid_and_empty_settings_are_errors(
    checks: Program, name: str, value: str, problem: str
) -> None:
    """Each error names the problem; an empty setting must not switch a check off."""
    answer = error_of(checks, **{name: value})
    assert answer is not None
    assert problem in answer

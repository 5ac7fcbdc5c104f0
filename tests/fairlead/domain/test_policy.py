"""Policies: the choice of a group's policy, the groups that are planned, and invalid rules."""

import tomllib
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.domain.policy import Approval, Discovery, Policy, policy_for

group_ids = st.text(st.characters(exclude_characters="*?[]"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("group", "expected"),
    [("orders-eu-1", "orders-eu-*"), ("orders-us-1", "orders-*"), ("billing", "*")],
)
def test_most_literal_pattern_decides(group: str, expected: str) -> None:
    rules = [Policy(groups=pattern) for pattern in ("*", "orders-*", "orders-eu-*")]
    for ordered in permutations(rules):
        assert policy_for(group, ordered).groups == expected


def test_earlier_policy_decides_between_equals() -> None:
    rules = [Policy(groups="a*", choose="first"), Policy(groups="*a", choose="best")]
    assert policy_for("aa", rules).choose == "first"
    assert policy_for("aa", rules[::-1]).choose == "best"


def test_character_sets_are_no_literals() -> None:
    """A character set such as [abc] counts as a wildcard when patterns are compared."""
    rules = [Policy(groups="orders-[abcdefgh]*"), Policy(groups="orders-a*")]
    assert policy_for("orders-abc", rules).groups == "orders-a*"


@given(group_ids)
def test_exact_name_beats_every_pattern(group: str) -> None:
    rules = [Policy(groups="*"), Policy(groups=f"{group[:-1]}?"), Policy(groups=group)]
    assert policy_for(group, rules).groups == group


@pytest.mark.parametrize(
    ("group", "covered"),
    [("orders", True), ("orders-test", False), ("billing", False), ("orders-canary", True)],
)
def test_discovery_excludes_after_it_includes(group: str, covered: bool) -> None:  # noqa: FBT001 - expected value
    discovery = Discovery(include=("orders*",), exclude=("*-test",))
    assert discovery.covers(group) == covered


@pytest.mark.parametrize(
    "wrong",
    [
        {"expires_after": timedelta(0)},
        {"approval": {"min_improvement": 1.5}},
        {"band": 0.1},
        {"objective": "PT0S"},
        {"target_utilisation": 1.5},
        {"assignors": ()},
        {"approval": {"max_moves": -1}},
        {"approval": {"forbidden_statuses": ["STOPPED"]}},
        {"gruops": "*"},
        {"assignors": ["bset"]},
        {"options": {"bset": {}}},
        {"options": {"sticky-lag-aware": {"bnad": 0.1}}},
        {"options": {"sticky-lag-aware": {"band": -0.1}}},
        {"cooldown": "PT0S"},
        {"auto_offset_reset": "by_duration"},
        {"auto_offset_reset": "by_duration:P"},
        {"auto_offset_reset": "by_duration:-PT1H"},
        {"auto_offset_reset": "oldest"},
        {"cadence": -60},
        {"four_eyes": "database", "approval": {"automatic": True}},
        {"approval": {"hours": ["9-17"]}},
        {"approval": {"hours": ["25:00-06:00"]}},
        {"approval": {"hours": ["06:00-06:00"]}},
        {"approval": {"time_zone": "Europe/Nowhere"}},
        {"approval": {"time_zone": "../etc"}},
    ],
)
def test_invalid_rules_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(wrong)


def test_policy_keys_are_options_of_assignors_that_have_them() -> None:
    """A policy's `max_moves` goes to assignors with this option; the key `options` overrides it."""
    policy = Policy(
        horizon=timedelta(minutes=5),
        max_moves=20,
        options={"sticky-lag-aware": {"band": 0.1, "max_moves": 5, "max_count_skew": 0}},
    )
    assert policy.assignor_options("sticky-lag-aware") == {
        "band": 0.1,
        "max_moves": 5,
        "max_count_skew": 0,
    }
    assert policy.assignor_options("lag-aware") == {}


def test_racks_are_preferred_ignored_or_priced() -> None:
    both = [Policy.model_validate(given).rules() for given in ({}, {"racks": "ignore"})]
    assert [(policy.racks, policy.price_per_gb) for policy in both] == [(True, None), (False, None)]
    priced = Policy.model_validate({"racks": {"price_per_gb": 0.02}}).rules()
    assert (priced.racks, priced.price_per_gb, priced.least_saving_per_day) == (True, 0.02, 1.0)


def test_documentation_names_every_key_and_its_example_is_valid() -> None:
    page = (Path(__file__).parents[3] / "docs" / "policies.md").read_text()
    keys = [*Policy.model_fields, *(f"approval.{key}" for key in Approval.model_fields)]
    assert [key for key in keys if f"| `{key}` |" not in page and key != "approval"] == []
    example = page.partition("```toml\n")[2].partition("```")[0]
    policies = [Policy.model_validate(load) for load in tomllib.loads(example)["policies"]]
    assert policy_for("payments", policies).four_eyes
    assert policy_for("orders-eu", policies).approval.time_zone == "Europe/Berlin"

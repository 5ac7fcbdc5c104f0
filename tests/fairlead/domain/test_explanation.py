"""Explanations of which policy decides for a group, and why."""

from datetime import timedelta

import pytest

from fairlead.domain.explanation import Explanation, Match, explain
from fairlead.domain.policy import Approval, Policy

RULES = [
    Policy(groups="*", assignors=("range",)),
    Policy(
        groups="orders-*",
        max_moves=20,
        horizon=timedelta(minutes=5),
        options={"sticky-lag-aware": {"band": 0.2}},
        approval=Approval(automatic=True, max_moves=10),
    ),
    Policy(groups="*-eu-1"),
]


def source(found: Explanation, key: str) -> tuple[object, str]:
    (value,) = (wanted for wanted in found.values if wanted.key == key)
    return value.value, value.source


def test_matches_come_in_the_order_in_which_they_decide() -> None:
    found = explain("orders-eu-1", RULES)
    assert found.matches == (
        Match(2, "orders-*", 7, decides=True),
        Match(3, "*-eu-1", 5, decides=False),
        Match(1, "*", 0, decides=False),
    )


@pytest.mark.parametrize(
    ("group", "rules", "why"),
    [
        ("billing", RULES, "[[policies]] 1 (*) decides: no other matches"),
        ("billing", [], "no policy matches: the defaults apply"),
        (
            "ab",
            [Policy(groups="a*"), Policy(groups="*b")],
            "[[policies]] 1 (a*) decides: of 2 equally specific matches, the first applies",
        ),
    ],
)
def test_reason_is_a_sentence(group: str, rules: list[Policy], why: str) -> None:
    assert explain(group, rules).why == why


def test_values_have_their_source() -> None:
    found = explain("orders-us", RULES)
    assert source(found, "horizon") == ("PT5M", "[[policies]] 2")
    assert source(found, "cooldown") == (None, "default")
    assert source(found, "approval.max_moves") == (10, "[[policies]] 2")
    assert source(found, "approval.min_improvement") == (0.0, "default")
    of = "options.sticky-lag-aware"
    assert source(found, f"{of}.band") == (0.2, "[[policies]] 2")
    assert source(found, f"{of}.horizon") == (0.0, "default")
    assert source(found, f"{of}.max_moves") == (20, "[[policies]] 2: max_moves")
    assert source(found, f"{of}.band_floor") == (0.0, "default")

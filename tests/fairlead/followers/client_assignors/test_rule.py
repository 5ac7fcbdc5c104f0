"""Sticky assignment without plans: members claim the partitions that they own."""

import logging
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.user_data import UserData, encode
from fairlead.followers.client_assignors.rule import DirectRule, JoinedMember
from fairlead.wire.partitions import pairs


def sticky() -> DirectRule:
    return DirectRule("sticky", {}, lambda *_: {}, None, None)


def test_claims_of_the_newer_generation_win() -> None:
    """If two members claim a partition, the claim with the higher generation wins."""
    members = [
        JoinedMember("back", ["t"], encode(UserData({"t": [0]}, generation=3))),
        JoinedMember("here", ["t"], encode(UserData({"t": [0]}, generation=4))),
    ]
    shares = sticky().assign(members, {"t": 2})
    assert shares == {"back": {"t": [1]}, "here": {"t": [0]}}


def test_member_sends_its_assignment_as_claim() -> None:
    """The claim has partitions and generation; a member without an assignment sends no claim."""
    rule = sticky()
    assert rule.subscription() == b""
    rule.assigned({"t": [1]}, 7)
    assert rule.subscription() == encode(UserData({"t": [1]}, generation=7))


def test_unreadable_claims_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """Invalid user data does not break a rebalance; the log names the member that sent it."""
    with caplog.at_level(logging.WARNING):
        shares = sticky().assign([JoinedMember("a", ["t"], b"\x00\xff")], {"t": 1})
    assert shares == {"a": {"t": [0]}}
    assert "Member a: its claims to partitions are ignored" in caplog.text


NUMBERS = st.integers(0, 4) | st.integers(0, 2**31 - 1)
CLAIMS = st.builds(
    UserData,
    st.dictionaries(st.sampled_from(["t", "u", "gone", ""]), st.lists(NUMBERS, max_size=4)),
    st.none() | st.integers(-(2**31), 2**31 - 1),
)
SUBSCRIPTIONS = st.lists(st.sampled_from(["t", "u", "absent"]), max_size=4)


@given(
    st.lists(
        st.tuples(SUBSCRIPTIONS, st.binary(max_size=40) | CLAIMS.map(encode)),
        min_size=1,
        max_size=4,
    )
)
def test_any_claims_lead_to_an_assignment(joined: list[tuple[list[str], bytes]]) -> None:
    """With arbitrary user data, each partition gets one owner, and no error is raised."""
    members = [
        JoinedMember(f"m{number}", topics, claim) for number, (topics, claim) in enumerate(joined)
    ]
    counts = {"t": 3, "u": 2}
    owned = Counter(
        (topic, partition)
        for share in sticky().assign(members, counts).values()
        for topic, partitions in share.items()
        for partition in partitions
    )
    read = {topic for topics, _ in joined for topic in topics}
    assert owned == Counter(
        (topic, p) for topic in counts.keys() & read for p in range(counts[topic])
    )


def test_missing_solver_falls_back_to_fair(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the extra `flow` is not installed, the assignor `fair` is used; the log has the reason."""
    monkeypatch.setitem(sys.modules, "ortools.graph.python", None)
    members = [JoinedMember("a", ["t", "u"]), JoinedMember("b", ["t"])]
    with caplog.at_level(logging.ERROR):
        shares = sticky().assign(members, {"t": 1, "u": 3})
    owned = sorted(pair for share in shares.values() for pair in pairs(share))
    assert owned == [("t", 0), ("u", 0), ("u", 1), ("u", 2)]
    assert "extra `flow`" in caplog.text

"""Properties of `fit`, which adapts a plan to the members and topics that a group has now."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.wire.fit import Shares, fit
from tests.cost import costs_at_most
from tests.fairlead.followers.helpers import DAY, make_plan
from tests.lengths import form

Value = TypeVar("Value")
TOPICS = ("t0", "t1", "t2", "t3")
EXAMPLES = settings(max_examples=form(short=50, long=1000), deadline=None)


@dataclass(frozen=True)
class Case:
    """A plan, and the group's present members and topics."""

    plan: PlanDocument
    subscriptions: dict[str, frozenset[str]]
    partition_counts: dict[str, int]


@st.composite
def groups(draw: st.DrawFn, names: str) -> dict[str, frozenset[str]]:
    """Generate members and their topics; some members have no topic, or one that does not exist."""
    subscription = st.frozensets(st.sampled_from((*TOPICS, "absent")))
    return draw(st.dictionaries(st.sampled_from(names), subscription))


@st.composite
def partition_counts(draw: st.DrawFn) -> dict[str, int]:
    """Generate partition counts, from 0 to 7, for some of the topics."""
    return draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7)))


@st.composite
def plans(draw: st.DrawFn) -> PlanDocument:
    """Generate a valid plan: every partition with subscribers belongs to one of its subscribers."""
    planned = draw(groups("abcdef"))
    counts = draw(partition_counts())
    shares: dict[str, dict[str, list[int]]] = {name: {} for name in planned}
    for topic, count in counts.items():
        readers = sorted(name for name, topics in planned.items() if topic in topics)
        for partition in range(count if readers else 0):
            owner = draw(st.sampled_from(readers))
            shares[owner].setdefault(topic, []).append(partition)
    weight = st.integers(0, 9)
    return PlanDocument(
        group="group",
        version=1,
        plan_id="plan",
        assignor="lag-aware",
        created_at=DAY,
        snapshot_at=DAY,
        partition_counts=counts,
        members={
            name: MemberShare(
                tuple(sorted(planned[name])),
                {topic: np.array(owned, np.int32) for topic, owned in share.items()},
            )
            for name, share in shares.items()
        },
        weights={
            topic: np.array(draw(st.lists(weight, min_size=count, max_size=count)), float)
            for topic, count in counts.items()
        },
    )


# a to d may be in the plan and the group, e and f only in the plan, x to z only in the group.
cases = st.builds(Case, plans(), groups("abcdxyz"), partition_counts())


def owners(shares: Shares) -> dict[tuple[str, int], list[str]]:
    """Map each (topic, partition) to the members that own it."""
    found: dict[tuple[str, int], list[str]] = {}
    for member, share in shares.items():
        for topic, partitions in share.items():
            for partition in partitions:
                found.setdefault((topic, partition), []).append(member)
    return found


def run(case: Case) -> Shares:
    return fit(case.plan, case.subscriptions, case.partition_counts)


@EXAMPLES
@given(cases)
def test_fit_is_complete_and_eligible(case: Case) -> None:
    """Each partition of a subscribed topic has one owner, which subscribes to the topic."""
    found = owners(run(case))
    readable = {
        (topic, partition)
        for topics in case.subscriptions.values()
        for topic in topics & case.partition_counts.keys()
        for partition in range(case.partition_counts[topic])
    }
    assert found.keys() == readable
    for (topic, _), members in found.items():
        assert len(members) == 1
        assert topic in case.subscriptions[members[0]]


@EXAMPLES
@given(cases, st.randoms())
def test_order_of_the_input_does_not_matter(case: Case, rng: random.Random) -> None:
    """All members compute the same assignment, even if the order of their input differs."""

    def shuffled(mapping: Mapping[str, Value]) -> dict[str, Value]:
        return dict(rng.sample(sorted(mapping.items(), key=itemgetter(0)), len(mapping)))

    other = fit(
        replace(case.plan, members=shuffled(case.plan.members)),
        shuffled(case.subscriptions),
        shuffled(case.partition_counts),
    )
    assert other == run(case)
    assert list(other) == list(run(case))


@EXAMPLES
@given(plans())
def test_plan_that_fits_is_followed_exactly(plan: PlanDocument) -> None:
    """The group for which the plan was made gets exactly the planned shares."""
    subscriptions = {name: share.topics for name, share in plan.members.items()}
    expected = {
        name: {topic: sorted(owned.tolist()) for topic, owned in sorted(share.partitions.items())}
        for name, share in sorted(plan.members.items())
    }
    assert fit(plan, subscriptions, plan.partition_counts) == expected


@EXAMPLES
@given(cases)
def test_named_members_keep_their_share(case: Case) -> None:
    """A planned member keeps its planned partitions that still exist, if it reads their topic."""
    shares = run(case)
    for name in case.plan.members.keys() & shares.keys():
        for topic in case.subscriptions[name] & case.partition_counts.keys():
            planned = case.plan.members[name].partitions.get(topic, np.empty(0, np.int32))
            still = {p for p in planned.tolist() if p < case.partition_counts[topic]}
            assert still <= set(shares[name].get(topic, []))


@EXAMPLES
@given(plans(), st.data())
def test_new_members_take_over_whole_shares(plan: PlanDocument, data: st.DataObject) -> None:
    """If members restart under new names, each planned share passes undivided to one member."""
    renamed = data.draw(st.sets(st.sampled_from(sorted(plan.members) or ["none"])))
    names = {name: f"new-{name}" if name in renamed else name for name in plan.members}
    everything = tuple(TOPICS)
    shares = fit(plan, dict.fromkeys(names.values(), everything), plan.partition_counts)
    whole = {
        frozenset(
            (topic, partition) for topic, partitions in share.items() for partition in partitions
        )
        for share in shares.values()
    }
    for name, share in plan.members.items():
        planned = {(t, int(p)) for t, owned in share.partitions.items() for p in owned}
        assert any(planned <= other for other in whole), name


def test_heaviest_share_goes_to_the_new_member() -> None:
    """If fewer members join than leave, only the heaviest shares stay undivided."""
    plan = make_plan(
        {"a": {"t": [0]}, "b": {"t": [1, 2]}, "c": {"t": [3]}},
        partition_counts={"t": 4},
        weights={"t": [1, 2, 2, 9]},
    )
    shares = fit(plan, {"a": ["t"], "new": ["t"]}, {"t": 4})
    assert shares == {"a": {"t": [0, 1]}, "new": {"t": [2, 3]}}


def test_new_member_with_fewer_topics_takes_over_no_share() -> None:
    """A new member that does not read all topics of a share gets single partitions instead."""
    plan = make_plan({"a": {"t": [0, 1], "u": [0]}}, partition_counts={"t": 2, "u": 1})
    assert fit(plan, {"new": ["t"]}, {"t": 2, "u": 1}) == {"new": {"t": [0, 1]}}


def test_unplanned_partitions_are_placed_by_count_then_weight() -> None:
    """A partition not in the plan goes to the member with fewest partitions, then least load."""
    plan = make_plan(
        {"a": {"t": [0]}, "b": {"t": [1]}}, partition_counts={"t": 2}, weights={"t": [5, 3]}
    )
    shares = fit(plan, {"a": ["t"], "b": ["t"]}, {"t": 5})
    assert shares == {"a": {"t": [0, 3]}, "b": {"t": [1, 2, 4]}}


def test_a_new_member_gets_partitions_of_every_topic() -> None:
    """A new member gets 9 of the 12 partitions of each new topic, not all of one topic."""
    plan = make_plan({"a": {"old": list(range(12))}}, partition_counts={"old": 12})
    topics = ["old", "t", "u"]
    shares = fit(plan, {"a": topics, "new": topics}, {"old": 12, "t": 12, "u": 12})
    assert {t: len(owned) for t, owned in shares["new"].items()} == {"t": 9, "u": 9}
    assert {t: len(owned) for t, owned in shares["a"].items()} == {"old": 12, "t": 3, "u": 3}


def test_topics_with_few_subscribers_are_placed_first() -> None:
    """First, the only subscriber to `t` gets all of `t`; then the other member gets all of `u`."""
    plan = make_plan({}, partition_counts={})
    shares = fit(plan, {"one": ["u"], "two": ["t", "u"]}, {"t": 2, "u": 2})
    assert shares == {"one": {"u": [0, 1]}, "two": {"t": [0, 1]}}


@pytest.mark.long
@pytest.mark.parametrize("topics", [20, 1000])
@pytest.mark.parametrize("readers", [1.0, 0.3], ids=["equal", "ragged"])
def test_time_of_a_fit_is_proportional_to_its_size(topics: int, readers: float) -> None:
    """Eight times as many members and partitions take about eight times as long, not 64 times."""
    thousand, few = (rebalanced(share, topics, readers) for share in (1, 8))
    costs_at_most(32, thousand, few)
    fitted = thousand()
    assert sum(len(owned) for share in fitted.values() for owned in share.values()) == 50_000


def rebalanced(fewer: int, topics: int, readers: float) -> Callable[[], Shares]:
    """Return a function that fits a plan after a third of the members left and a fifth joined.

    The plan has 1,000 members and 50,000 partitions, both divided by `fewer`.
    """
    members, partitions = 1000 // fewer, 50_000 // fewer
    rng = np.random.default_rng(7)
    counts = {f"t{number:03}": partitions // topics for number in range(topics)}
    reads = rng.random((members, topics)) < readers
    subscriptions = {
        f"m{number:03}": tuple(np.array(list(counts))[row].tolist())
        for number, row in enumerate(reads)
    }
    shares: dict[str, dict[str, list[int]]] = {name: {} for name in subscriptions}
    for (topic, count), column in zip(counts.items(), reads.T, strict=True):
        for partition, owner in enumerate(rng.choice(np.flatnonzero(column), count).tolist()):
            shares[f"m{owner:03}"].setdefault(topic, []).append(partition)
    weights = {topic: rng.random(count).tolist() for topic, count in counts.items()}
    plan = make_plan(shares, partition_counts=counts, weights=weights)
    names = list(subscriptions)
    present = {name: subscriptions[name] for name in names[members // 3 :]}
    present |= {f"new-{name}": subscriptions[name] for name in names[: members // 5]}
    return lambda: fit(plan, present, counts)

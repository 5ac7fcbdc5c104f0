"""Differences between two versions of a plan, computed by the database."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import psycopg
import pytest
from sqlalchemy import Engine, text

from fairlead.domain.records import StoredPlan
from fairlead.store.engine import transaction
from fairlead.wire.document import MemberShare

pytestmark = pytest.mark.postgres

Plans = Callable[..., StoredPlan]
Owners = dict[tuple[str, int], str]


def members(owners: Owners) -> dict[str, MemberShare]:
    """Return the members' shares for these owners of partitions."""
    shares: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), member in owners.items():
        shares.setdefault(member, {}).setdefault(topic, []).append(partition)
    return {
        member: MemberShare(
            tuple(share), {topic: np.array(numbers, np.int32) for topic, numbers in share.items()}
        )
        for member, share in shares.items()
    }


def diff(engine: Engine, old: int, new: int) -> Sequence[tuple[object, ...]]:
    query = text("SELECT * FROM fairlead.plan_diff('orders', :old, :new)")
    with transaction(engine) as connection:
        return [tuple(row) for row in connection.execute(query, {"old": old, "new": new})]


def differences(old: Owners, new: Owners) -> Sequence[tuple[object, ...]]:
    return [
        (*key, old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def proposed(propose: Plans, *versions: Owners) -> None:
    for number, owners in enumerate(versions):
        counts: Mapping[str, int] = {topic: 2**31 - 1 for topic, _ in owners}
        propose(f"s{number}", members=members(owners), partition_counts=counts, weights={})


def test_differences_are_those_of_the_documents(engine: Engine, propose: Plans) -> None:
    """`plan_diff` lists exactly the partitions whose owners differ, also for odd names."""
    random = np.random.default_rng(5)
    names = ["a", "b-1", 'c"0,1-2', "größer, 更大", "d\\u0041"]
    topics = ["t", "orders-eu", "t.0-3,7"]

    def owners() -> Owners:
        return {
            (topic, int(partition)): names[random.integers(len(names))]
            for topic in topics
            for partition in random.permutation(40)[:30]
        }

    first, second = owners(), owners()
    proposed(propose, first, second, {}, first)
    assert diff(engine, 1, 2) == differences(first, second)
    assert diff(engine, 2, 1) == differences(second, first)
    assert diff(engine, 1, 3) == differences(first, {})
    assert diff(engine, 1, 4) == []


def test_missing_version_is_an_error(propose: Plans, migrated: str) -> None:
    """A missing version is an error, because an empty difference would mean "no change"."""
    propose()
    with psycopg.connect(migrated, autocommit=True) as person:
        for arguments in ("'orders', 1, 2", "'orders', 3, 1", "'none', 1, 1", "'orders', 1, null"):
            with pytest.raises(psycopg.Error, match="has no version") as error:
                person.execute(f"SELECT * FROM fairlead.plan_diff({arguments})".encode())
            assert error.value.sqlstate == "FL001"

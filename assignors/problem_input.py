"""All checks of a caller's input, when a problem is read from dictionaries.

Belongs here: types, ranges and contradictions. Each error names the wrong value by a path such as
`members.C0.owned.t0`. Belongs elsewhere: the layout of the arrays (`problem`).
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from assignors.claims import earlier_owners, effective_owner
from assignors.member import (
    Float64,
    Int32,
    Int64,
    InvalidProblemError,
    Member,
    kafka_order,
)

LARGEST_COUNT = 2**31 - 1
# Maximum number of partitions, far above that of any cluster. A mistyped count is refused before
# memory is allocated for it.
LARGEST_TOTAL = 10_000_000
# Least and greatest relative speed of a member. Beyond them, loads could overflow floats.
CAPACITIES = (1e-6, 1e6)
_SHOWN = 60


def read(
    topics: Any, members: Any, lags: Any, arrival_rates: Any, replica_racks: Any
) -> dict[str, Any]:
    """Check the parts of a problem, and return them as arguments of `Problem`."""
    counts = _read_topics(topics)
    names = tuple(sorted(counts, key=kafka_order))
    numbers = {name: number for number, name in enumerate(names)}
    offsets = dict(
        zip(names, np.cumsum([0, *(counts[name] for name in names)]).tolist(), strict=False)
    )
    people = _read_members(members)
    everybody = list(people.values())
    subscriptions = [_subscription(name, member, numbers) for name, member in people.items()]
    return {
        "topics": names,
        "partition_counts": np.array([counts[name] for name in names], dtype=np.int64),
        "members": tuple(people),
        "subscription_offsets": np.cumsum([0, *(row.size for row in subscriptions)]).astype(
            np.int64
        ),
        "subscription_topics": np.concatenate([*subscriptions, np.empty(0, np.int32)]),
        "weights": _by_partition(lags, counts, names, "lags", _lags),
        **_read_owners(people, counts, offsets),
        "capacities": np.array([_capacity(*item) for item in people.items()], dtype=np.float64),
        "instance_ids": _instance_ids(people),
        "racks": tuple(member.rack for member in everybody),
        "arrival_rates": None
        if arrival_rates is None
        else _by_partition(arrival_rates, counts, names, "arrival_rates", _rates).astype(
            np.float64
        ),
        **_read_racks(replica_racks, counts, names),
    }


def _fail(where: str, what: str) -> NoReturn:
    raise InvalidProblemError(f"{where}: {what}")


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _fail(where, f"{_show(value)} is not an object")
    for key in value:
        if not isinstance(key, str):
            _fail(where, f"the name {_show(key)} is not a text")
    return value


def _items(value: Any, where: str) -> list[Any]:
    """Return the items of an iterable as a list; refuse strings, bytes and mappings."""
    if type(value) is not list and (  # most values are lists; the other checks are slow
        isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
    ):
        _fail(where, f"{_show(value)} is not a list")
    return list(value)


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs a second time, or None.

    Examples
    --------
    >>> first_repeated(["b", "a", "c", "a", "b"])
    'a'
    """
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _integer(value: Any, where: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        _fail(where, f"{_show(value)} is not an integer")
    return int(value)


def _check_number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        _fail(where, f"{_show(value)} is not a number")


def _read_topics(topics: Any) -> dict[str, int]:
    counts = {}
    for topic, count in _mapping(topics, "topics").items():
        if not 0 <= _integer(count, f"topics.{topic}") <= LARGEST_COUNT:
            _fail(f"topics.{topic}", f"{count} is not a number of partitions")
        counts[topic] = int(count)
    if (total := sum(counts.values())) > LARGEST_TOTAL:
        _fail("topics", f"{total} partitions are more than the {LARGEST_TOTAL} a problem may have")
    return counts


def _read_members(members: Any) -> dict[str, Member]:
    everybody = {
        name: value if isinstance(value, Member) else Member(topics=value)
        for name, value in _mapping(members, "members").items()
    }
    return {name: everybody[name] for name in sorted(everybody, key=kafka_order)}


def _subscription(name: str, member: Member, numbers: dict[str, int]) -> Int32:
    where = f"members.{name}.topics"
    wanted = _items(member.topics, where)
    for topic in wanted:
        if not isinstance(topic, str):
            _fail(where, f"{_show(topic)} is not a topic's name")
    if len(set(wanted)) < len(wanted):
        _fail(where, f"names {first_repeated(wanted)!r} twice")
    return np.array(sorted(numbers[topic] for topic in wanted if topic in numbers), np.int32)


def _instance_ids(members: dict[str, Member]) -> tuple[str | None, ...]:
    seen: dict[str, str] = {}
    for name, member in members.items():
        for attribute in ("instance_id", "rack"):
            value = getattr(member, attribute)
            if value is not None and (not isinstance(value, str) or not value):
                _fail(f"members.{name}.{attribute}", f"{_show(value)} is not a text")
        if member.instance_id is None:
            continue
        if member.instance_id in seen:
            other = seen[member.instance_id]
            _fail(f"members.{name}.instance_id", f"{member.instance_id!r} is {other}'s too")
        seen[member.instance_id] = name
    return tuple(member.instance_id for member in members.values())


def _capacity(name: str, member: Member) -> float:
    where, value = f"members.{name}.capacity", member.capacity
    _check_number(value, where)
    smallest, largest = CAPACITIES
    if not smallest <= value <= largest:
        _fail(where, f"{_show(value)} is not a positive number from {smallest:g} to {largest:g}")
    return float(value)


def _read_owners(
    members: dict[str, Member], counts: dict[str, int], offsets: dict[str, int]
) -> dict[str, Int32 | None]:
    rows: dict[str, list[Any]] = {}
    claimants: list[int] = []
    generations: list[int] = []
    firsts: list[int] = []
    sizes: list[int] = []
    for number, (name, member) in enumerate(members.items()):
        generation = _generation(name, member)
        read = set(member.topics)
        for topic, owned in _mapping(member.owned, f"members.{name}.owned").items():
            where = f"members.{name}.owned.{topic}"
            rows[where] = _items(owned, where)
            claimants.append(number)
            generations.append(generation)
            firsts.append(offsets.get(topic, 0))
            # The partition or the whole topic may have been deleted since the member owned it.
            sizes.append(counts.get(topic, 0) if topic in read else 0)
    partitions, row = _claimed_partitions(rows)
    exists = partitions < np.array(sizes, dtype=np.int64)[row]
    row = row[exists]
    claims = (
        partitions[exists] + np.array(firsts, dtype=np.int64)[row],
        np.array(claimants, dtype=np.int32)[row],
        np.array(generations, dtype=np.int64)[row],
    )
    total = sum(counts.values())
    return {
        "owner": effective_owner(*claims, partition_total=total),
        "earlier": earlier_owners(*claims, partition_total=total),
    }


def _generation(name: str, member: Member) -> int:
    where = f"members.{name}.generation"
    generation = -1 if member.generation is None else _integer(member.generation, where)
    if not -1 <= generation <= LARGEST_COUNT:
        _fail(where, f"{generation} is not a generation")
    return generation


def _claimed_partitions(rows: dict[str, list[Any]]) -> tuple[Int64, Int64]:
    """Return the partition number of each claim, and the number of the row it comes from.

    A row has the claims of a member to partitions of a topic. All rows are checked at once, since
    there can be many. If the check fails, each row is checked, to name the first wrong one.
    """
    claimed = list(chain.from_iterable(rows.values()))
    row = np.repeat(np.arange(len(rows)), [len(values) for values in rows.values()])
    if all(kind is int for kind in set(map(type, claimed))):
        inside = not claimed or (min(claimed) >= 0 and max(claimed) <= LARGEST_COUNT)
        if inside and len(set(zip(row.tolist(), claimed, strict=True))) == len(claimed):
            return np.array(claimed, dtype=np.int64), row
    checked = [_partitions(values, where) for where, values in rows.items()]
    return np.concatenate([*checked, np.empty(0, np.int64)]), row


def _partitions(owned: list[Any], where: str) -> Int64:
    values = _integers(owned, where)
    if values.size and (values.min() < 0 or values.max() > LARGEST_COUNT):
        _fail(where, "a partition number is out of range")
    if np.unique(values).size < values.size:
        _fail(where, "names a partition twice")
    return values


def _integers(values: Any, where: str) -> Int64:
    """Return the values as int64; refuse bools, which numpy would convert to integers."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        if values.ndim != 1:
            _fail(where, "is not a flat list")
        if values.dtype != np.uint64:
            return values.astype(np.int64, copy=False)
    listed = _items(values, where)
    for kind in set(map(type, listed)):
        if issubclass(kind, bool) or not issubclass(kind, int | np.integer):
            wrong = next(value for value in listed if type(value) is kind)
            _fail(where, f"{_show(wrong)} is not an integer")
    try:
        return np.array([int(value) for value in listed], dtype=np.int64)
    except OverflowError:
        largest = max(listed, key=abs)
        _fail(where, f"{_show(largest)} does not fit 64 bits")


def _lags(values: Any, where: str) -> Int64:
    array = _integers(values, where)
    if array.size and array.min() < 0:
        _fail(where, f"{array.min()} is negative")
    return array


def _rates(values: Any, where: str) -> Float64:
    listed = _items(values, where)
    for value in listed:
        _check_number(value, where)
    try:
        array = np.array(listed, dtype=np.float64)
    except OverflowError:
        _fail(where, "a rate is beyond every float")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        _fail(where, "a rate is negative or not finite")
    return array


def _read_racks(racks: Any, counts: dict[str, int], names: tuple[str, ...]) -> dict[str, Any]:
    if racks is None:
        return {}
    numbers: dict[frozenset[str], int] = {frozenset(): 0}

    def sets(values: Any, where: str) -> Int32:
        replicas = [_items(value, where) for value in _items(values, where)]
        if not all(isinstance(rack, str) for row in replicas for rack in row):
            _fail(where, "a rack is not a text")
        rows = [numbers.setdefault(frozenset(row), len(numbers)) for row in replicas]
        return np.array(rows, dtype=np.int32)

    rack_set_of = _by_partition(racks, counts, names, "replica_racks", sets)
    return {"rack_sets": tuple(numbers), "rack_set_of": rack_set_of.astype(np.int32)}


def _by_partition(
    values: Any,
    counts: dict[str, int],
    names: tuple[str, ...],
    where: str,
    convert: Callable[[Any, str], npt.NDArray[Any]],
) -> npt.NDArray[Any]:
    """Return the values of all topics as one array of shape (P,), with 0 for missing topics."""
    by_topic = {}
    for topic, row in _mapping({} if values is None else values, where).items():
        if topic not in counts:
            _fail(f"{where}.{topic}", "the topic is not in topics")
        array = by_topic[topic] = convert(row, f"{where}.{topic}")
        if array.shape != (counts[topic],):
            _fail(f"{where}.{topic}", f"{array.size} values for {counts[topic]} partitions")
    zeros = np.zeros(max(counts.values(), default=0), np.int64)
    return np.concatenate([by_topic.get(name, zeros[: counts[name]]) for name in names] or [zeros])

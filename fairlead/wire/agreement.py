"""The records of the coordination topic, by which the members of a group agree on an assignment.

Belongs here: the records, their bytes, and the checks of a single record. Belongs elsewhere: the
meaning of a sequence of records (`agreement_round`), and writing and reading the topic
(`agreement_log`).

Other programs may also write to the topic. So the type and size of every value are checked, and
invalid records are ignored.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any, Final

from fairlead.wire.members import read_identity
from fairlead.wire.partition_sets import Ranges, expand, format_partitions, parse_ranges
from fairlead.wire.partitions import Partitions, pairs
from fairlead.wire.record import NOTHING, Identity

log = logging.getLogger(__name__)

#: Version of the format. Members ignore records of other versions. If a group has members with two
#: versions, the members of each version redistribute only the partitions that they gave up. So no
#: partition gets two owners.
_FORMAT: Final = 4
#: Limits the cost of reading a record: maximum number of partitions, of topics, and of members.
MOST_PARTITIONS: Final = 200_000
#: Maximum size of a record in bytes. For comparison, an assignment record of 50,000 partitions has
#: two million bytes.
LARGEST_RECORD: Final = 16_000_000
_LONGEST_NAME: Final = 1000
_LARGEST_GENERATION: Final = 2**31


@dataclass(frozen=True)
class Announcement:
    """A record by which a member gives up the partitions that `range` assigned to it.

    Parameters
    ----------
    generation, member
        The group's generation, and the member's id in this generation.
    client_id
        The member's `client.id`, which is its name in plans if no other member has the same id.
    topics
        The member's subscription, ascending.
    given
        The partitions that `range` assigned to the member.
    seen
        The newest record of the plan topic that the member has read; NOTHING: no record.
    log
        The topic id of the coordination topic that the member uses; "": unknown.
    """

    generation: int
    member: str
    client_id: str
    topics: tuple[str, ...]
    given: Partitions
    seen: Identity = NOTHING
    log: str = ""


@dataclass(frozen=True)
class AssignmentRecord:
    """A record that assigns partitions; the first valid one decides for the whole generation.

    Parameters
    ----------
    generation, member
        The generation, and the member that wrote the record.
    topics
        The subscription of the members in `shares`, ascending.
    shares
        Partition numbers by member id and topic. Contains all members with this subscription that
        the writer knew, even those without partitions, and exactly the partitions that these
        members gave up.
    plan_version
        Version of the plan that the record follows; None: it repeats the assignment by `range`.
    seen
        The newest record of the plan topic that the writer had read. Members that know a newer
        record request another rebalance.
    fallback_reason
        Why the record follows no plan; None: it follows a plan.
    log
        As in `Announcement`.
    """

    generation: int
    member: str
    topics: tuple[str, ...]
    shares: Mapping[str, Partitions]
    plan_version: int | None = None
    seen: Identity = NOTHING
    fallback_reason: str | None = None
    log: str = ""

    def assigns_exactly(self, range_shares: Mapping[str, Partitions]) -> bool:
        """Whether the record assigns exactly the partitions that its members gave up, each once.

        Parameters
        ----------
        range_shares
            Maps each member id to the partitions that `range` assigned to the member. The record
            may list fewer members.

        Examples
        --------
        >>> record = AssignmentRecord(1, "m1", ("t",), {"m1": {"t": (1,)}, "m2": {"t": (0,)}})
        >>> record.assigns_exactly({"m1": {"t": (0,)}, "m2": {"t": (1,)}, "m3": {"t": (2,)}})
        True
        >>> record.assigns_exactly({"m1": {"t": (0, 1)}})
        False
        """
        if not self.shares or not self.shares.keys() <= range_shares.keys():
            return False
        given_up = {pair for member in self.shares for pair in pairs(range_shares[member])}
        assigned = [pair for share in self.shares.values() for pair in pairs(share)]
        return len(assigned) == len(given_up) and set(assigned) == given_up


@dataclass(frozen=True)
class Mark:
    """A test record: a member that reads its own test record can write and read the topic.

    Parameters
    ----------
    name
        Random name, chosen by the writer.
    log
        As in `Announcement`.
    """

    name: str
    log: str = ""


Record = Announcement | AssignmentRecord | Mark


def encode(record: Record) -> bytes:
    """Serialise a record.

    Examples
    --------
    >>> here = Announcement(3, "m1", "a", ("t",), {"t": (0, 1, 7)})
    >>> decode(encode(here)) == here
    True
    """
    values: dict[str, Any] = {"fairlead": _FORMAT, **vars(record)}
    if isinstance(record, Announcement):
        values.update(type="here", given=_ranges(record.given))
    elif isinstance(record, AssignmentRecord):
        shares = {member: _ranges(share) for member, share in record.shares.items()}
        values.update(type="assignment", shares=shares)
    else:
        values.update(type="mark")
    return json.dumps(values, separators=(",", ":")).encode()


def decode(value: bytes | None) -> Record | None:
    """Parse a record; return None if it is invalid or has another format.

    Examples
    --------
    >>> decode(b"garbage") is None
    True
    >>> huge = b'{"fairlead":4,"type":"here","generation":1,"member":"m","client_id":"a",'
    >>> huge += b'"topics":["t"],"given":{"t":"0-999999"},"seen":[1,7,false,""],"log":""}'
    >>> decode(huge) is None
    True
    """
    if value is None or len(value) > LARGEST_RECORD:
        return None
    try:
        values = _checked(json.loads(value), dict)
        if values.get("fairlead") != _FORMAT:
            return None
        kind = _KINDS[_text(values["type"])]
        checked = {field.name: _CHECKS[field.name](values[field.name]) for field in fields(kind)}
        _check_topics(checked)
        return kind(**checked)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        log.debug("Ignored an invalid record of the coordination topic: %s", error)
        return None


def _checked(value: Any, kind: type) -> Any:
    """Return the value; raise TypeError unless its type is exactly `kind`: True is not an int."""
    if type(value) is not kind:
        raise TypeError(f"{str(value)[:80]!r} is not of type {kind.__name__}")
    return value


def _text(value: Any, *, empty: bool = False) -> str:
    text: str = _checked(value, str)
    if not (empty or text) or len(text) > _LONGEST_NAME:
        raise ValueError(f"invalid name: {text[:80]!r}")
    return text


def _generation(value: Any) -> int:
    number: int = _checked(value, int)
    if not 0 <= number < _LARGEST_GENERATION:
        raise ValueError(f"invalid generation: {number}")
    return number


def _topics(value: Any) -> tuple[str, ...]:
    topics = tuple(_text(topic) for topic in _few(_checked(value, list)))
    if any(topic >= other for topic, other in pairwise(topics)):
        raise ValueError("topics are not ascending")
    return topics


def _few(values: Any) -> Any:
    """Return the list or JSON object; raise an error if it has too many elements."""
    if len(values) > MOST_PARTITIONS:
        raise ValueError(f"{len(values)} entries; at most {MOST_PARTITIONS} are allowed")
    return values


def _identity(value: Any) -> Identity:
    seen = read_identity(value)
    if len(seen.sha256) > _LONGEST_NAME or max(abs(seen.epoch), abs(seen.version)) >= 2**63:
        raise ValueError("`seen` does not identify a record")
    return seen


def _ranges(partitions: Partitions) -> dict[str, str]:
    return {topic: format_partitions(numbers) for topic, numbers in partitions.items()}


def _partitions(text: Any) -> Ranges:
    if _checked(text, str).count(",") >= MOST_PARTITIONS:  # a range has at least 1 partition
        raise ValueError(f"more than {MOST_PARTITIONS} partitions")
    return parse_ranges(text, below=MOST_PARTITIONS)


def _given(raw: Any) -> Partitions:
    return _shares({"": raw})[""]


def _shares(raw: Any) -> dict[str, Partitions]:
    """Parse the partitions of each member; raise an error if there are too many partitions."""
    shares = {
        _text(member, empty=True): {
            _text(topic): _partitions(text) for topic, text in _few(_checked(share, dict)).items()
        }
        for member, share in _few(_checked(raw, dict)).items()
    }
    sizes = (last - first + 1 for share in shares.values() for first, last in share.values())
    if sum(int(size.sum()) for size in sizes) > MOST_PARTITIONS:
        raise ValueError(f"more than {MOST_PARTITIONS} partitions")
    return {
        member: {topic: tuple(expand(ranges).tolist()) for topic, ranges in share.items()}
        for member, share in shares.items()
    }


def _check_topics(values: Mapping[str, Any]) -> None:
    """Raise an error if a record assigns or gives up partitions of an unsubscribed topic."""
    allowed = set(values.get("topics", ()))
    shares = [values.get("given", {}), *values.get("shares", {}).values()]
    if not all(share.keys() <= allowed for share in shares):
        raise ValueError("it assigns or gives up partitions of a topic not in `topics`")


_KINDS: Final[Mapping[str, type[Record]]] = {
    "here": Announcement,
    "assignment": AssignmentRecord,
    "mark": Mark,
}
#: Maps the name of each field of a record to the function that checks and converts its value.
_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "generation": _generation,
    "member": _text,
    "client_id": partial(_text, empty=True),
    "topics": _topics,
    "given": _given,
    "shares": _shares,
    "plan_version": lambda value: None if value is None else _checked(value, int),
    "seen": _identity,
    "fallback_reason": lambda value: (
        None if value is None else _checked(value, str)[:_LONGEST_NAME]
    ),
    "name": _text,
    "log": partial(_text, empty=True),
}

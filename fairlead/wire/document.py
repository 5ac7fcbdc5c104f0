"""The plan document, which is the value of a record in the plan topic.

Belongs here: the document's format, and every check that needs only its bytes. Belongs elsewhere:
the record's headers (`record`), adapting the plan to the present members (`fit`), and who may
approve it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fairlead.errors import InvalidPlanError
from fairlead.wire.partition_sets import HeldAsRanges, Ranges, format_partitions, parse_ranges
from fairlead.wire.times import read_time

#: Format version of documents, and of the records that contain them.
FORMAT: Final = 2
#: Maximum number of partitions in a document, over all topics.
MAX_PARTITIONS: Final = 10_000_000


@dataclass(frozen=True, eq=False)
class MemberShare:
    """The partitions that a plan gives to one member.

    Parameters
    ----------
    topics
        The member's subscription when the plan was made, ascending.
    partitions
        Maps each topic to partition numbers, int32 of shape (K,), ascending. In a parsed document,
        each access computes the array from ranges.
    """

    topics: tuple[str, ...]
    partitions: Mapping[str, npt.NDArray[np.int32]]

    def existing(self, topic: str, count: int) -> npt.NDArray[np.int32]:
        """Return the member's partitions of a topic that has `count` partitions now."""
        if isinstance(self.partitions, HeldAsRanges):
            return self.partitions.below(topic, count)
        partitions = self.partitions[topic]
        return partitions[partitions < count]


@dataclass(frozen=True, eq=False)
class PlanDocument:
    """One version of a group's plan.

    Parameters
    ----------
    group, version
        The consumer group, and the plan's version, from 1.
    plan_id
        A UUID.
    assignor
        The name of the assignor that computed the plan.
    created_at, snapshot_at
        Time-zone-aware times at which the plan and its snapshot were made.
    partition_counts
        Maps every topic with a subscriber to its number of partitions.
    members
        Maps each member name, as returned by `member_names`, to the member's share. Every partition
        has at most one owner.
    weights
        Maps a topic to the lag of each partition when the plan was made, at least 0. May lack
        topics.
    topic_ids
        Maps a topic to the id that the cluster gave it, in Kafka's text form. May lack topics.
    """

    group: str
    version: int
    plan_id: str
    assignor: str
    created_at: datetime
    snapshot_at: datetime
    partition_counts: Mapping[str, int]
    members: Mapping[str, MemberShare]
    weights: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the exact bytes that are stored, hashed and published."""
        document = {
            "format": FORMAT,
            "group": self.group,
            "version": self.version,
            "plan_id": self.plan_id,
            "assignor": self.assignor,
            "created_at": self.created_at.isoformat(),
            "snapshot_at": self.snapshot_at.isoformat(),
            "partition_counts": dict(sorted(self.partition_counts.items())),
            "topic_ids": dict(sorted(self.topic_ids.items())),
            "members": {
                name: {
                    "topics": sorted(share.topics),
                    "partitions": {
                        topic: format_partitions(partitions)
                        for topic, partitions in sorted(share.partitions.items())
                        if len(partitions)
                    },
                }
                for name, share in sorted(self.members.items())
            },
            "weights": {
                topic: [_plain_number(weight) for weight in np.asarray(weights).tolist()]
                for topic, weights in sorted(self.weights.items())
            },
        }
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()

    @classmethod
    def from_bytes(cls, value: bytes, *, group: str | None = None) -> "PlanDocument":
        """Parse and check a document.

        Parameters
        ----------
        value
            The record's value.
        group
            The group id, from the record's key; None: accept any group.

        Raises
        ------
        InvalidPlanError
            The value is not JSON, has another format or group, or is invalid: for example, a
            partition has two owners or does not exist, or its topic has no partition count.
        """
        try:
            raw = json.loads(value.decode(), object_pairs_hook=unique_names)
        except (ValueError, RecursionError) as error:
            raise InvalidPlanError(f"The plan is not UTF-8 JSON: {error}") from error
        if not isinstance(raw, dict):
            raise InvalidPlanError(f"The plan is a JSON {type(raw).__name__}, not an object")
        if type(raw.get("format")) is not int or raw["format"] != FORMAT:
            raise InvalidPlanError(
                f"The plan has format {raw.get('format')!r}; this version reads format {FORMAT}"
            )
        try:
            document = cls._read(raw)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else f"cannot be read: {error}"
            raise InvalidPlanError(f"The plan {what}") from error
        if group is not None and document.group != group:
            raise InvalidPlanError(f"The plan is for group {document.group!r}, not for {group!r}")
        return document

    @classmethod
    def _read(cls, raw: dict[str, Any]) -> "PlanDocument":
        counts = {
            str(topic): _count(count, topic) for topic, count in raw["partition_counts"].items()
        }
        if sum(counts.values()) > MAX_PARTITIONS:
            raise ValueError(f"more than {MAX_PARTITIONS:,} partitions are counted")
        if not (version := _count(raw["version"], "version")):
            raise ValueError("version is 0: versions count from 1")
        return cls(
            group=_text(raw, "group"),
            version=version,
            plan_id=_text(raw, "plan_id"),
            assignor=_text(raw, "assignor"),
            created_at=_time(raw["created_at"], "created_at"),
            snapshot_at=_time(raw["snapshot_at"], "snapshot_at"),
            partition_counts=counts,
            members=_read_members(raw["members"], counts),
            weights={
                topic: _weights(values, counts, topic) for topic, values in raw["weights"].items()
            },
            topic_ids=_topic_ids(raw["topic_ids"], counts),
        )


def content_hash(value: bytes) -> str:
    """Return the SHA-256 of a document's bytes in hexadecimal, to which approvals refer."""
    return hashlib.sha256(value).hexdigest()


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object's values by name; raise an error if a name occurs twice.

    Used as `object_pairs_hook`. Otherwise `json` would use the last value of the name.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return values


def _plain_number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def _text(raw: dict[str, Any], key: str) -> str:
    if not isinstance(raw[key], str) or not raw[key]:
        raise ValueError(f"{key} is {raw[key]!r}, not a string")
    return str(raw[key])


def _count(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{what} is {value!r}, not a count")
    return value


def _time(value: Any, what: str) -> datetime:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, not an ISO 8601 time")
    try:
        return read_time(value)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error


def _topic_ids(raw: dict[str, Any], counts: dict[str, int]) -> dict[str, str]:
    for topic in raw.keys():  # noqa: SIM118 - a list has no keys(): AttributeError
        if topic not in counts:
            raise ValueError(f"topic_ids.{topic}: the topic is not in partition_counts")
        _text(raw, topic)
    return dict(raw)


def _weights(values: Any, counts: dict[str, int], topic: str) -> npt.NDArray[np.float64]:
    if topic not in counts:
        raise ValueError(f"weights.{topic}: the topic is not in partition_counts")
    if not isinstance(values, list) or not all(type(value) in {int, float} for value in values):
        raise TypeError(f"weights.{topic} is not a list of numbers")
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (counts[topic],):
        raise ValueError(f"weights.{topic}: {weights.size} values for {counts[topic]} partitions")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"weights.{topic}: a value is negative or not finite")
    return weights


def _read_members(raw: dict[str, Any], counts: dict[str, int]) -> dict[str, MemberShare]:
    """Parse the members' shares; raise ValueError if two ranges of a topic overlap."""
    members = {}
    ranges: dict[str, list[Ranges]] = {}
    for name, share in raw.items():
        read = _read_share(name, share, counts)
        members[name] = MemberShare(tuple(share["topics"]), HeldAsRanges(read))
        for topic, several in read.items():
            ranges.setdefault(topic, []).append(several)
    for topic, of_members in ranges.items():
        first, last = (every := np.concatenate(of_members, axis=1))[:, every[0].argsort()]
        if (twice := first[1:][first[1:] <= last[:-1]]).size:
            raise ValueError(f"{topic}-{twice[0]} has more than one owner")
    return members


def _read_share(name: str, raw: dict[str, Any], counts: dict[str, int]) -> dict[str, Ranges]:
    ranges = {}
    for topic, text in raw["partitions"].items():
        if topic not in counts:
            raise ValueError(f"members.{name}: topic {topic!r} has no partition count")
        if not isinstance(text, str):
            raise TypeError(f"members.{name}.partitions.{topic} is {text!r}, not a string")
        ranges[topic] = parse_ranges(text, below=counts[topic])
    topics = raw["topics"]
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise ValueError(f"members.{name}.topics is {topics!r}, not a list of topics")
    if unread := sorted(ranges.keys() - set(topics)):
        raise ValueError(
            f"members.{name} owns partitions of {unread[0]!r}, to which it does not subscribe"
        )
    return ranges

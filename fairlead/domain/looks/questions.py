"""The question about a group, from its rows of a snapshot and its looks.

Belongs here: what the judgement is told of a group. Does not: the judgement
(`fairlead.domain.judgement`).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assignors.problem import Member, Problem, kafka_order
from fairlead.domain.advice import CLASSIC
from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.judgement.decision import Choose, Question
from fairlead.domain.judgement.racks import average_bytes
from fairlead.domain.judgement.rules import Rules
from fairlead.domain.looks.arrays import looks_of
from fairlead.domain.looks.fetch_sources import sources_of
from fairlead.domain.policy import Policy

_COOPERATIVE: Final = "cooperative-sticky"
_FOLLOWING: Final = "fairlead"
#: A member id is the client's id and a UUID, or a UUID alone in base64, where the broker assigns
#: (rarely without both cases): a name that no restart keeps.
_MEMBER_ID: Final = re.compile(
    r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    r"|^(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_+/-]{22}$"
)


@dataclass(frozen=True)
class PlanningOptions:
    """How groups of one policy are judged.

    Parameters
    ----------
    rules
        The policy's.
    assignors, options, choose
        As for `judge`.
    latest
        Whether consumers without a commit start at the log's end.
    compare
        Whether candidates are computed where no plan is called for, too.
    """

    rules: Rules = field(default_factory=Rules)
    assignors: tuple[str, ...] = ("sticky-lag-aware",)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    choose: Choose = "first"
    latest: bool = False
    compare: bool = True

    @classmethod
    def of(cls, policy: Policy, *, compare: bool) -> "PlanningOptions":
        """Return the planning options of a policy."""
        return cls(
            rules=policy.rules(),
            assignors=policy.assignors,
            options={name: policy.assignor_options(name) for name in policy.assignors},
            choose=policy.choose,
            latest=policy.auto_offset_reset == "latest",
            compare=compare,
        )


@dataclass(frozen=True, eq=False)
class Group:
    """All that is known of one group.

    Parameters
    ----------
    described
        Its row of the snapshot's groups: snapshot_id, group, error, protocol, group_type.
    members
        Its rows of the snapshot's members.
    looks
        Its looks, the snapshot among them; of the schema `fairlead.domain.looks.look.LOOKS`.
    capacities
        Remembered of its members: rows of member, records_per_s, measured, at, note.
    changes
        When plans took effect lately, seconds since the epoch, ascending.
    """

    described: Mapping[str, Any]
    members: Sequence[Mapping[str, Any]]
    looks: pa.Table
    capacities: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[float] = ()

    @classmethod
    def remembered(
        cls,
        described: Mapping[str, Any],
        members: pa.Table,
        looks: pa.Table,
        capacities: Mapping[str, Capacity],
        changes: Sequence[datetime],
    ) -> "Group":
        """Return a group with what is remembered of it, as the plan store has it."""
        return cls(
            described=described,
            members=members.to_pylist(),
            looks=looks,
            capacities=capacity_rows(capacities),
            changes=[at.timestamp() for at in changes],
        )


def capacity_rows(capacities: Mapping[str, Capacity]) -> list[dict[str, Any]]:
    """Return what is known of members' speeds as rows, a member each, as a `Group` has them."""
    return [
        {
            "member": name,
            "records_per_s": capacity.records_per_s,
            "measured": capacity.measured,
            "at": capacity.at,
            "note": capacity.note,
        }
        for name, capacity in capacities.items()
    ]


def question_about(group: Group, planning: PlanningOptions) -> Question:
    """Return what is asked about a group that could be read.

    Raises
    ------
    ValueError
        The offsets of some partition are not known.
    """
    members = {
        row["member"]: Member(
            topics=row["topics"],
            owned=owned_by_topic(row["partitions"]),
            generation=row["generation"],
            instance_id=row["instance_id"],
            rack=row["rack"] if planning.rules.racks else None,
        )
        for row in group.members
    }
    read = {topic for member in members.values() for topic in member.topics}
    newest = group.looks.slice(group.looks.num_rows - 1).select(["topics", "counts"]).to_pylist()[0]
    counts = {
        topic: count
        for topic, count in zip(newest["topics"], newest["counts"], strict=True)
        if topic in read
    }
    topics = sorted(counts, key=kafka_order)
    looks = looks_of(
        group.looks,
        topics,
        [counts[topic] for topic in topics],
        sorted(members, key=kafka_order),
        latest=planning.latest,
    )
    lag, ends = looks.lag[-1], accumulate(counts[topic] for topic in topics)
    lags = {topic: lag[end - counts[topic] : end] for topic, end in zip(topics, ends, strict=True)}
    sources = sources_of(group.looks, topics, counts) if planning.rules.racks else None
    racks = None if sources is None else sources.racks
    problem = Problem.of(counts, members, lags, replica_racks=racks)
    unknown = np.flatnonzero(looks.end[-1] < 0)
    if unknown.size:
        topic, _ = problem.partition_name(int(unknown[0]))
        raise ValueError(f"topic {topic}: the lag of some partition is not known")
    return Question(
        problem=problem,
        looks=looks,
        rules=planning.rules,
        capacities={  # a clock that was ahead must not keep newer measurements out
            row["member"]: Capacity(
                row["records_per_s"], row["measured"], min(row["at"], looks.now), row["note"]
            )
            for row in group.capacities
        },
        changes=[min(at, looks.now) for at in group.changes],
        eager=_eager(group),
        record_bytes=None
        if sources is None
        else average_bytes(sources.log_bytes, looks.begin[-1], looks.end[-1]),
    )


def _eager(group: Group) -> bool:
    """Whether every partition of a group stands still at each rebalance, as far as Kafka tells."""
    if group.described["group_type"] != CLASSIC:  # only what moves is revoked
        return False
    protocol = group.described["protocol"]
    if protocol == _FOLLOWING:  # cooperative followers say which generation they own from
        return any(row["generation"] is None for row in group.members)
    return bool(protocol) and protocol != _COOPERATIVE


def owned_by_topic(partitions: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Return topic to partition numbers, of a row of the snapshot's members."""
    owned: dict[str, list[int]] = {}
    for entry in partitions:
        owned.setdefault(entry["topic"], []).append(entry["partition"])
    return owned


def lasting(capacities: Mapping[str, Capacity], members: Collection[str]) -> dict[str, Capacity]:
    """Leave out what is known of members that are gone and can never come back under their name."""
    return {
        name: capacity
        for name, capacity in capacities.items()
        if name in members or not _MEMBER_ID.search(name)
    }

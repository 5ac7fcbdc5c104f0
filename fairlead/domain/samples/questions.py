"""The question about a group, from its samples.

Belongs here: what the analysis is told of a group. Does not: the analysis
(`fairlead.domain.analysis`).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assignors.problem import Member, Problem, kafka_order
from fairlead.domain.advice import CLASSIC
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.analysis.decide import Choose
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import average_bytes
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.policy import Policy
from fairlead.domain.samples import ownership
from fairlead.domain.samples.arrays import arrays_of, reports_of
from fairlead.domain.samples.fetch_sources import sources_of

_COOPERATIVE: Final = "cooperative-sticky"
_FOLLOWING: Final = "fairlead"
#: Columns that describe a group and its members, without offsets.
_NOW: Final = [
    *("group", "sample_id", "at", "state", "protocol", "group_type", "error"),
    *("topics", "topic_ids", "counts", "owner", "members", "client_ids", "instance_ids"),
    *("member_racks", "generations", "subscriptions"),
]
#: A member id is the client's id and a UUID, or a UUID alone in base64, where the broker assigns
#: (rarely without both cases): a name that no restart keeps.
_MEMBER_ID: Final = re.compile(
    r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    r"|^(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_+/-]{22}$"
)


@dataclass(frozen=True)
class PlanningOptions:
    """How groups of one policy are analysed.

    Parameters
    ----------
    rules
        The policy's.
    assignors, options, choose
        As for `analyse`.
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
    samples
        Rows of the schema `fairlead.domain.samples.SAMPLES`, at least one, by time.
    capacities
        The remembered speeds of its members.
    changes
        When plans took effect lately, seconds since the epoch, ascending.
    costs
        The remembered costs of its partitions, by `Costs.rows`.
    """

    samples: pa.Table
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    changes: Sequence[float] = ()
    costs: CostRows = field(default_factory=dict)

    @cached_property
    def now(self) -> Mapping[str, Any]:
        """The newest sample, without offsets: column to value."""
        last = self.samples.slice(self.samples.num_rows - 1).select(_NOW)
        row: Mapping[str, Any] = last.to_pylist()[0]
        return row

    @property
    def name(self) -> str:
        """The group's id."""
        name: str = self.now["group"]
        return name


def capacity_rows(capacities: Mapping[str, Capacity]) -> list[dict[str, Any]]:
    """Return members' capacities as rows, one per member."""
    return [
        {
            "member": name,
            "records_per_s": capacity.records_per_s,
            "measured": capacity.measured,
            "at": capacity.at,
        }
        for name, capacity in capacities.items()
    ]


def capacities_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Capacity]:
    """Return the capacities by member; the inverse of `capacity_rows`."""
    return {
        row["member"]: Capacity(row["records_per_s"], row["measured"], row["at"]) for row in rows
    }


def question_about(group: Group, planning: PlanningOptions) -> Question:
    """Return what is asked about a group that could be read.

    Raises
    ------
    ValueError
        The offsets of some partition are not known.
    """
    now, owned = group.now, ownership(group.now)
    details = (now[name] for name in ("generations", "instance_ids", "member_racks"))
    members = {
        name: Member(
            topics=topics,
            owned=owned[name],
            generation=generation,
            instance_id=instance_id,
            rack=rack if planning.rules.racks else None,
        )
        for name, topics, generation, instance_id, rack in zip(
            now["members"], now["subscriptions"], *details, strict=True
        )
    }
    read = {topic for member in members.values() for topic in member.topics}
    counts = {
        topic: count
        for topic, count in zip(now["topics"], now["counts"], strict=True)
        if topic in read
    }
    topics = sorted(counts, key=kafka_order)
    looks = arrays_of(
        group.samples,
        topics,
        [counts[topic] for topic in topics],
        sorted(members, key=kafka_order),
        latest=planning.latest,
    )
    lag, ends = looks.lag[-1], accumulate(counts[topic] for topic in topics)
    lags = {topic: lag[end - counts[topic] : end] for topic, end in zip(topics, ends, strict=True)}
    sources = sources_of(group.samples, topics, counts) if planning.rules.racks else None
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
            name: replace(capacity, at=min(capacity.at, looks.now))
            for name, capacity in group.capacities.items()
        },
        costs=group.costs,
        changes=[min(at, looks.now) for at in group.changes],
        reports=reports_of(
            group.samples, topics, [counts[topic] for topic in topics], looks.members
        ),
        eager=_eager(now),
        record_bytes=None
        if sources is None
        else average_bytes(sources.log_bytes, looks.begin[-1], looks.end[-1]),
    )


def _eager(now: Mapping[str, Any]) -> bool:
    """Whether every partition of a group stands still at each rebalance, as far as Kafka tells."""
    if now["group_type"] != CLASSIC:  # only partitions that move are revoked
        return False
    protocol = now["protocol"]
    if protocol == _FOLLOWING:  # cooperative followers say which generation they own from
        return None in now["generations"]
    return bool(protocol) and protocol != _COOPERATIVE


def lasting(capacities: Mapping[str, Capacity], members: Collection[str]) -> dict[str, Capacity]:
    """Leave out what is known of members that are gone and can never come back under their name."""
    return {
        name: capacity
        for name, capacity in capacities.items()
        if name in members or not _MEMBER_ID.search(name)
    }

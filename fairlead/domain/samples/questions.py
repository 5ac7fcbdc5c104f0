"""Input of the analysis of a group, from its samples, its policy and remembered estimates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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
#: Columns of the newest sample that describe a group and its members, without offsets.
_NOW: Final = [
    *("group", "sample_id", "at", "state", "protocol", "group_type", "error"),
    *("topics", "topic_ids", "counts", "owner", "members", "client_ids", "instance_ids"),
    *("member_racks", "generations", "subscriptions"),
]


@dataclass(frozen=True)
class PlanningOptions:
    """Options for analysing the groups of one policy.

    Parameters
    ----------
    rules
        The policy's rules.
    assignors, options, choose
        As for `fairlead.domain.analysis.decide.decide`.
    latest
        Whether consumers without a commit start at the log's end.
    compare
        Whether to compute candidates even if no plan is needed.
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
    """Samples of one group, and results of its earlier analyses.

    Parameters
    ----------
    samples
        Rows of the schema `fairlead.domain.samples.SAMPLES`, at least one, in order of time.
    capacities
        Remembered capacities of its members.
    changes
        Times at which recent plans took effect, seconds since the epoch, ascending.
    costs
        Remembered costs of its partitions, as returned by `Costs.rows`.
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


def question_about(group: Group, planning: PlanningOptions) -> Question:
    """Return the input of the analysis of a group whose samples have no error.

    Raises
    ------
    ValueError
        The end offset of a partition is not known.
    """
    now, owned = group.now, ownership(group.now)
    columns = ("members", "subscriptions", "generations", "instance_ids", "member_racks")
    members = {
        name: Member(
            topics=topics,
            owned=owned[name],
            generation=generation,
            instance_id=instance_id,
            rack=rack if planning.rules.racks else None,
        )
        for name, topics, generation, instance_id, rack in zip(
            *(now[column] for column in columns), strict=True
        )
    }
    read = {topic for member in members.values() for topic in member.topics}
    sizes = dict(zip(now["topics"], now["counts"], strict=True))
    counts = {topic: sizes[topic] for topic in sorted(sizes.keys() & read, key=kafka_order)}
    topics, numbers = list(counts), list(counts.values())
    series = arrays_of(
        group.samples,
        topics,
        numbers,
        sorted(members, key=kafka_order),
        latest=planning.latest,
    )
    cuts = np.cumsum(numbers)[:-1]
    lags = dict(zip(topics, np.split(series.lag[-1], cuts) if topics else (), strict=True))
    sources = sources_of(group.samples, topics, counts) if planning.rules.racks else None
    racks = None if sources is None else sources.racks
    problem = Problem.of(counts, members, lags, replica_racks=racks)
    unknown = np.flatnonzero(series.end[-1] < 0)
    if unknown.size:
        topic, _ = problem.partition_name(int(unknown[0]))
        raise ValueError(f"topic {topic}: the lag of some partition is not known")
    return Question(
        problem=problem,
        series=series,
        rules=planning.rules,
        capacities={  # a time after now is wrong, and would hide newer measurements
            name: replace(capacity, at=min(capacity.at, series.now))
            for name, capacity in group.capacities.items()
        },
        costs=group.costs,
        changes=[min(at, series.now) for at in group.changes],
        reports=reports_of(group.samples, topics, numbers, series.members),
        eager=_eager(now),
        record_bytes=None
        if sources is None
        else average_bytes(sources.log_bytes, series.begin[-1], series.end[-1]),
    )


def _eager(now: Mapping[str, Any]) -> bool:
    """Return whether consumers stop reading all their partitions in each rebalance (eager)."""
    if now["group_type"] != CLASSIC:  # the broker revokes only partitions that move
        return False
    protocol = now["protocol"]
    if protocol == _FOLLOWING:  # only cooperative plan followers report a generation
        return None in now["generations"]
    return bool(protocol) and protocol != _COOPERATIVE

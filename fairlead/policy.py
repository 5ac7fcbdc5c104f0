"""Policies: which groups are planned, by which assignor, and what may be published unasked.

Belongs here: what `fairlead.toml` says of groups, and which rule holds for one. Does not: carrying
a decision out (`fairlead.plans`).
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: What stands for any characters in a shell pattern; [!]] is a set too.
_WILDCARDS = re.compile(r"[*?]|\[!?.[^]]*\]", re.DOTALL)

Status = Literal["OK", "WARN", "STALL", "STOP", "REWIND", "DATA_LOSS"]


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Approval(_Rule):
    """What a plan must satisfy to be approved without a person.

    With `automatic` false, every plan waits for a person.
    """

    automatic: bool = False
    max_moves: int | None = Field(default=None, ge=0, description="Owned partitions moved at most.")
    min_improvement: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="The heaviest member's load falls by this share at least.",
    )
    forbidden_statuses: tuple[Status, ...] = Field(
        default=("STOP", "DATA_LOSS"), description="No partition of the group has one of these."
    )


class Policy(_Rule):
    """How the groups that match a pattern are planned.

    The most specific pattern that matches decides: the one with the most literal characters, the
    earlier one where these are equal.
    """

    groups: str = Field(default="*", description="A shell pattern over group ids: orders-*")
    cohort: str | None = Field(
        default=None,
        description="Plan all matching groups in one cohort of this name; default: each its own.",
    )
    assignors: tuple[str, ...] = Field(
        default=("sticky-lag-aware", "lag-aware", "sticky", "fair", "roundrobin", "range"),
        min_length=1,
        description="Candidates, each computed on the same snapshot.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Assignor name to its options."
    )
    choose: Literal["first", "lightest"] = Field(
        default="first",
        description="first: the first of `assignors`; the others are for comparison. lightest: the "
        "lightest heaviest member, then the fewest moves, then the order of `assignors`.",
    )
    min_improvement: float = Field(
        default=0.01,
        ge=0.0,
        le=1.0,
        description="Below this share the answer is 'no change': the heaviest member's load must "
        "fall by it, unless a partition lacks an owner.",
    )
    auto_offset_reset: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="The consumers' auto.offset.reset: the lag of a partition without a commit.",
    )
    expires_after: timedelta | None = Field(
        default=None, gt=timedelta(0), description="ISO 8601 (PT6H) or seconds; default: never."
    )
    approval: Approval = Approval()


class Discovery(_Rule):
    """Which consumer groups of the cluster are planned at all."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def covers(self, group: str) -> bool:
        """Whether some include pattern and no exclude pattern matches."""
        return any(fnmatchcase(group, pattern) for pattern in self.include) and not any(
            fnmatchcase(group, pattern) for pattern in self.exclude
        )


def policy_for(group: str, policies: Iterable[Policy]) -> Policy:
    """Return the policy that decides for a group; the defaults where none matches.

    Examples
    --------
    >>> rules = [Policy(groups="*"), Policy(groups="orders-*", choose="first")]
    >>> policy_for("orders-eu", rules).groups
    'orders-*'
    """
    matching = [policy for policy in policies if fnmatchcase(group, policy.groups)]
    return max(matching, key=_specificity, default=Policy())


def _specificity(policy: Policy) -> int:
    return len(_WILDCARDS.sub("", policy.groups))

"""Which candidate becomes the plan: the policy's choice, in numbers and in words.

Belongs here: comparing candidates with each other and with the group's current assignment. Does
not: computing them (`assignors`), storing the decision (`fairlead.store`), nor whether the plan
may be published unasked (`approval`). Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from fairlead.policy import Policy

Outcome = Literal["plan", "no change", "failed"]


@dataclass(frozen=True)
class Candidate:
    """What one assignor would do with a snapshot.

    Parameters
    ----------
    assignor
        Its name.
    metrics
        Those of its assignment (`lag_max`, `moved`, ...); None where it failed.
    outcome
        What the assignor says of its result, if anything.
    error
        Why it failed; None where it did not.
    frontier
        What fewer moves would have bought: (moves, load of the heaviest member in records),
        ascending by moves; empty where the assignor has none.
    """

    assignor: str
    metrics: Mapping[str, Any] | None = None
    outcome: str | None = None
    error: str | None = None
    frontier: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Choice:
    """What a look at a group comes to.

    Parameters
    ----------
    outcome
        `plan`: the candidate is to be proposed. `no change`: it is not worth it. `failed`: there
        is none.
    candidate
        The candidate that the policy prefers, whether worth it or not; None where there is none.
    reason
        Why, in words.
    """

    outcome: Outcome
    candidate: Candidate | None
    reason: str


def choose(policy: Policy, candidates: Iterable[Candidate], observed: Mapping[str, Any]) -> Choice:
    """Choose what to do with a group.

    The policy prefers the lightest heaviest member, then the fewest moves, then its own order of
    assignors (`choose = "lightest"`), or its first assignor (`choose = "first"`; the next one
    where that failed). Candidates that move more than `max_moves` are passed over. The preferred
    one becomes a plan when it places partitions that have no owner, or else when it moves any and
    lightens the heaviest member by `min_improvement`.

    Parameters
    ----------
    policy
        The group's.
    candidates
        All computed from the same snapshot. Those that the policy does not name are ignored. None
        at all: the group has no members.
    observed
        Metrics of the group's current assignment, on the same snapshot.

    Examples
    --------
    >>> policy = Policy(assignors=("lag-aware",), min_improvement=0.1)
    >>> plan = Candidate("lag-aware", {"lag_max": 110_000, "moved": 1, "placed": 0})
    >>> choose(policy, [plan], {"lag_max": 160_000}).reason
    'lag-aware: the heaviest member goes from 160,000 to 110,000 records (-31.2 %)'
    >>> choose(policy, [plan], {"lag_max": 111_000}).outcome
    'no change'
    """
    named = {candidate.assignor: candidate for candidate in candidates}
    if not named:
        return Choice("no change", None, "the group has no members: there is nothing to plan")
    ordered = [named[name] for name in policy.assignors if name in named]
    usable = [candidate for candidate in ordered if candidate.metrics is not None]
    if not usable:
        errors = "; ".join(f"{one.assignor}: {one.error or 'no assignment'}" for one in ordered)
        return Choice(
            "failed", None, f"every assignor of the policy failed: {errors or 'none ran'}"
        )
    limit = policy.max_moves
    usable = [one for one in usable if limit is None or (one.metrics or {})["moved"] <= limit]
    if not usable:
        return Choice(
            "no change", None, f"every candidate moves more than {_partitions(limit or 0)}"
        )
    candidate = usable[0] if policy.choose == "first" else min(usable, key=_burden)
    outcome, reason = _worth(policy, candidate.metrics or {}, observed)
    return Choice(outcome, candidate, f"{candidate.assignor}: {reason}")


def cool_down(
    choice: Choice, policy: Policy, *, changed_at: datetime | None, now: datetime
) -> Choice:
    """Hold a plan back while the policy's cooldown lasts, unless it places ownerless partitions.

    Parameters
    ----------
    choice
        What is to be done otherwise.
    policy
        The group's.
    changed_at
        When a plan of the group was last published or retired; None: never.
    now
        Time-zone-aware, as `changed_at`.

    Examples
    --------
    >>> from datetime import UTC, timedelta
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> choice = Choice("plan", Candidate("fair", {"placed": 0}), "fair: better")
    >>> policy = Policy(cooldown=timedelta(hours=1))
    >>> cool_down(choice, policy, changed_at=noon, now=noon).reason
    'cooldown until 2026-01-01T13:00:00+00:00; fair: better'
    """
    placed = choice.candidate is not None and (choice.candidate.metrics or {}).get("placed", 0)
    if choice.outcome != "plan" or placed or policy.cooldown is None or changed_at is None:
        return choice
    until = changed_at + policy.cooldown
    if now >= until:
        return choice
    reason = f"cooldown until {until.isoformat(timespec='seconds')}; {choice.reason}"
    return replace(choice, outcome="no change", reason=reason)


def improvement(observed: Mapping[str, Any], predicted: Mapping[str, Any]) -> float:
    """Return the share by which the heaviest member's load falls; negative where it rises.

    Examples
    --------
    >>> improvement({"lag_max": 200}, {"lag_max": 150})
    0.25
    """
    before, after = float(observed["lag_max"]), float(predicted["lag_max"])
    if before == 0:
        return 0.0 if after == 0 else float("-inf")
    return (before - after) / before


def _burden(candidate: Candidate) -> tuple[Any, Any]:
    metrics = candidate.metrics or {}
    return metrics["lag_max"], metrics["moved"]  # min() keeps the policy's order between equals


def _worth(
    policy: Policy, predicted: Mapping[str, Any], observed: Mapping[str, Any]
) -> tuple[Outcome, str]:
    if predicted["placed"]:
        return "plan", f"{_partitions(predicted['placed'])} without an owner would get one"
    if not predicted["moved"]:
        return "no change", "the group already has this assignment"
    if not observed["lag_max"]:
        change = "no member has any lag"
    else:
        change = (
            f"the heaviest member goes from {observed['lag_max']:,.0f} to "
            f"{predicted['lag_max']:,.0f} records ({-improvement(observed, predicted):+.1%})"
        ).replace("%", " %")
    gain = improvement(observed, predicted)
    if gain <= 0 or gain < policy.min_improvement:
        asked = f"{policy.min_improvement:.1%}".replace("%", " %")
        return "no change", f"{change}; the policy asks for {asked} less at least"
    return "plan", change


def _partitions(count: int) -> str:
    return f"{count:,} partition{'' if count == 1 else 's'}"

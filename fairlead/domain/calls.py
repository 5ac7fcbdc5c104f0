"""Which groups are to be planned now, and why: called for by a look, or due by their cadence.

Belongs here: what a look leaves for whoever starts runs, and what of it still holds beside the last
decisions. Does not: taking looks and judging them (`fairlead.workflows`), starting runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fairlead.domain.cohorts import cadence_of, cohort_of, stretch_began
from fairlead.domain.policy import Policy


@dataclass(frozen=True)
class Call:
    """A look found that a plan is worth its price for a group.

    Parameters
    ----------
    what
        The diagnosis with its names: what makes it another call than the one before.
    why
        In words, for people.
    since
        When a look first said so, without another look in between that did not; time-zone-aware.
    """

    what: str
    why: str
    since: datetime


def lasting(found: Mapping[str, Call], before: Mapping[str, Call]) -> dict[str, Call]:
    """Return the calls of a look, each dated by the first look that said the same.

    Examples
    --------
    >>> from datetime import UTC
    >>> def at(minute): return datetime(2026, 1, 1, 9, minute, tzinfo=UTC)
    >>> before = {"a": Call("slow member: m", "late", at(1)), "b": Call("hot", "late", at(1))}
    >>> found = {"a": Call("slow member: m", "later", at(2)), "b": Call("slow", "late", at(2))}
    >>> [(group, call.since.minute) for group, call in lasting(found, before).items()]
    [('a', 1), ('b', 2)]
    """
    return {
        group: Call(call.what, call.why, before[group].since)
        if group in before and before[group].what == call.what
        else call
        for group, call in found.items()
    }


def unanswered(
    calls: Mapping[str, Call],
    looked_at: datetime,
    decided_at: Mapping[str, datetime],
    *,
    again: timedelta,
    now: datetime,
) -> dict[str, Call]:
    """Return the calls that no decision has answered.

    A decision that is newer than the look knows more than it. One that came after the call began
    has heard it: the call is repeated after `again`, as the plan it led to may wait for a person.

    Parameters
    ----------
    calls
        Of the newest look, by group.
    looked_at
        When that look began.
    decided_at
        Group to when it was last decided on; groups that never were are missing.
    again
        After so long the same call asks again.

    Examples
    --------
    >>> from datetime import UTC
    >>> def at(minute): return datetime(2026, 1, 1, 9, minute, tzinfo=UTC)
    >>> calls = {name: Call("slow member: m", "late", at(2)) for name in ("new", "heard", "long")}
    >>> decided = {"new": at(1), "heard": at(18), "long": at(5)}
    >>> again = timedelta(minutes=10)
    >>> [*unanswered(calls, at(20), decided, again=again, now=at(20))]
    ['new', 'long']
    """

    def waits(group: str, call: Call) -> bool:
        decided = decided_at.get(group)
        if decided is None:
            return True
        return decided < looked_at and (decided < call.since or now - decided >= again)

    return {group: call for group, call in calls.items() if waits(group, call)}


def overdue(
    groups: Iterable[str],
    policies: Sequence[Policy],
    decided_at: Mapping[str, datetime],
    now: datetime,
) -> list[str]:
    """Return the groups that were not decided on in this stretch of their cohort's cadence.

    Groups of cohorts without a cadence are due at each tick of the schedule, and never here.

    Examples
    --------
    >>> from datetime import UTC
    >>> def at(hour, minute): return datetime(2026, 1, 1, hour, minute, tzinfo=UTC)
    >>> rules = [Policy(groups="hourly-*", cadence=timedelta(hours=1))]
    >>> decided = {"hourly-a": at(9, 59), "hourly-b": at(10, 0)}
    >>> overdue(["hourly-a", "hourly-b", "other"], rules, decided, at(10, 5))
    ['hourly-a']
    """
    if all(policy.cadence is None for policy in policies):
        return []
    began: dict[str, datetime | None] = {}

    def is_due(group: str) -> bool:
        cohort = cohort_of(group, policies)
        if cohort not in began:
            cadence = cadence_of(cohort, policies)
            began[cohort] = None if cadence is None else stretch_began(cadence, now)
        start = began[cohort]
        return start is not None and (group not in decided_at or decided_at[group] < start)

    return [group for group in groups if is_due(group)]

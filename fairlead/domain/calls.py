"""Which groups a look has called for, and why.

Belongs here: what a look leaves for whoever starts runs, and what of it still holds beside the last
decisions. Does not: taking looks and judging them (`fairlead.workflows`),
what is due by its cadence (`cohorts`), starting runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


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

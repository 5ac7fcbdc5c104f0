"""Which groups need a plan by what a look found, and why.

Belongs here: what a look leaves for whoever starts runs, and what of it still holds beside the last
decisions. Does not: taking looks and analysing them (`fairlead.workflows`), what is due by its
cadence (`cohorts`), starting runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class PlanRequest:
    """A look found that a plan is worth its price for a group.

    Parameters
    ----------
    what
        The diagnosis with its names: what makes it another request than the one before.
    why
        In words, for people.
    """

    what: str
    why: str


@dataclass(frozen=True)
class StandingRequest:
    """A request, and when looks said so; as the database keeps it beside the diagnosis.

    Parameters
    ----------
    request
        What the last look said.
    since, at
        When a look first said the same, without another one in between that did not, and when the
        last one did; time-zone-aware.
    """

    request: PlanRequest
    since: datetime
    at: datetime


def unanswered(
    requests: Mapping[str, StandingRequest],
    decided_at: Mapping[str, datetime],
    *,
    again: timedelta,
    now: datetime,
) -> dict[str, PlanRequest]:
    """Return the requests that no decision has answered.

    A decision that is newer than the look knows more than the look. A decision that came after the
    request began has answered it until `again` is over: the plan it led to may wait for a person.

    Parameters
    ----------
    requests
        By group.
    decided_at
        Group to when it was last decided on; groups that never were are missing.
    again
        After so long the same request is unanswered again.

    Examples
    --------
    >>> from datetime import UTC
    >>> def at(minute): return datetime(2026, 1, 1, 9, minute, tzinfo=UTC)
    >>> request = PlanRequest("slow member: m", "late")
    >>> standing = StandingRequest(request, since=at(2), at=at(20))
    >>> requests = dict.fromkeys(("new", "heard", "long"), standing)
    >>> decided = {"new": at(1), "heard": at(18), "long": at(5)}
    >>> [*unanswered(requests, decided, again=timedelta(minutes=10), now=at(20))]
    ['new', 'long']
    """

    def waits(group: str, standing: StandingRequest) -> bool:
        decided = decided_at.get(group)
        if decided is None:
            return True
        return decided < standing.at and (decided < standing.since or now - decided >= again)

    return {
        group: standing.request for group, standing in requests.items() if waits(group, standing)
    }

"""Requests for plans: the analysis of samples makes requests, and decisions answer them.

Belongs here: the requests, and which of them are open. Belongs elsewhere: sampling and analysing
(`fairlead.workflows`), cadences (`cohorts`), starting runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class PlanRequest:
    """A request for a plan, because the plan's benefit would outweigh its moves.

    Parameters
    ----------
    what
        The diagnosis with its names; requests with the same text are the same request.
    why
        A sentence for people.
    """

    what: str
    why: str


@dataclass(frozen=True)
class StandingRequest:
    """A stored request, with the times of its samples.

    Parameters
    ----------
    request
        The request of the last sample.
    since, at
        Times of the first and last of the consecutive samples with this request; time-zone-aware.
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
    """Return the open requests: those that no decision has answered.

    A decision after a request's last sample answers the request. A decision between its first and
    last sample answers it only for the time `again`, in which the plan may wait for approval.

    Parameters
    ----------
    requests
        Group to its request.
    decided_at
        Group to the time of its last decision, if any.
    again
        Time after which the same request is open again.

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

"""Requests for plans: the analysis of samples makes a request, and a decision answers it.

Belongs here: the requests, and which of them no decision has answered yet. Belongs elsewhere:
sampling and analysing (`fairlead.workflows`), cadences (`cohorts`), and starting planning runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class PlanRequest:
    """A request for a plan that would be worth its moves.

    Parameters
    ----------
    what
        The diagnosis, with the names of members or partitions. Two requests with the same text are
        regarded as the same request.
    why
        A sentence for people.
    """

    what: str
    why: str


@dataclass(frozen=True)
class StandingRequest:
    """A stored request, with the times of the samples that led to it.

    Parameters
    ----------
    request
        The request to which the last sample led.
    since, at
        Times of the first and of the last of the consecutive samples that led to this request;
        time-zone-aware.
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

    A decision answers a request permanently if it was made after the last sample that led to the
    request. If it was made between the first and the last of these samples, the request is open
    again when the time `again` has passed since the decision. Until then, the plan may wait for
    approval.

    Parameters
    ----------
    requests
        Maps each group to its request.
    decided_at
        Maps each group to the time of its last decision; a group without a decision is missing.
    again
        Time after a decision until the same request is open again.

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

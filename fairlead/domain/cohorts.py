"""Cohorts: sets of consumer groups that are planned together, in one run and one Spark job.

Belongs here: which cohort a group belongs to, when a cohort is due, and which stretches of cohorts
one run can cover. Does not: Dagster's partitions, which are named like cohorts.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from fairlead.domain.policy import Discovery, Policy, policy_for

#: What stretches of a cadence are counted from: midnight, so that PT6H means four times a day.
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def cohort_of(group: str, policies: Iterable[Policy]) -> str:
    """Return the cohort a group is planned in: its policy's, else one of its own.

    Examples
    --------
    >>> cohort_of("orders-eu", [Policy(groups="orders-*", cohort="orders")])
    'orders'
    >>> cohort_of("audit", [Policy(groups="orders-*", cohort="orders")])
    'audit'
    """
    return policy_for(group, policies).cohort or group


def discover(
    groups: Iterable[str], discovery: Discovery, policies: Sequence[Policy]
) -> dict[str, list[str]]:
    """Gather the groups that are to be planned into their cohorts.

    Parameters
    ----------
    groups
        Every consumer group of the cluster.
    discovery
        Which of them are planned at all.
    policies
        Which of them share a cohort.

    Returns
    -------
    Cohort to its groups, both ascending.

    Examples
    --------
    >>> discover(["b", "a", "test-1"], Discovery(exclude=("test-*",)), [])
    {'a': ['a'], 'b': ['b']}
    """
    cohorts: dict[str, list[str]] = {}
    for group in sorted(groups):
        if discovery.covers(group):
            cohorts.setdefault(cohort_of(group, policies), []).append(group)
    return dict(sorted(cohorts.items()))


def groups_in(
    cohorts: Iterable[str],
    groups: Iterable[str],
    discovery: Discovery,
    policies: Sequence[Policy],
) -> dict[str, str]:
    """Return the groups of some cohorts, each with its cohort.

    A cohort without any group in the cluster stands for the group of its own name, unless a policy
    names it: the group that vanished is then reported, not passed over.

    Examples
    --------
    >>> groups_in(["orders", "gone"], ["orders-eu", "audit"], Discovery(),
    ...           [Policy(groups="orders-*", cohort="orders")])
    {'orders-eu': 'orders', 'gone': 'gone'}
    """
    found = discover(groups, discovery, policies)
    named = {policy.cohort for policy in policies}
    return {
        group: cohort
        for cohort in cohorts
        for group in found.get(cohort, [] if cohort in named else [cohort])
    }


def cadence_of(cohort: str, policies: Sequence[Policy]) -> timedelta | None:
    """Return how often a cohort is planned: as often as the policy that asks for it most often.

    Returns
    -------
    None: at every tick of the schedule.

    Examples
    --------
    >>> rules = [Policy(groups="orders-*", cadence=timedelta(hours=6))]
    >>> cadence_of("orders-eu", rules), cadence_of("audit", rules)
    (datetime.timedelta(seconds=21600), None)
    """
    named = [policy for policy in policies if policy.cohort == cohort]
    asked = [policy.cadence for policy in named or [policy_for(cohort, policies)]]
    given = [cadence for cadence in asked if cadence is not None]
    return min(given) if len(given) == len(asked) else None


def stretch_began(cadence: timedelta, now: datetime) -> datetime:
    """Return when the stretch of a cadence began that `now` lies in (time-zone-aware).

    Examples
    --------
    >>> stretch_began(timedelta(hours=6), datetime(2026, 1, 1, 13, 5, tzinfo=UTC)).hour
    12
    """
    return now - (now - _EPOCH) % cadence


def due(
    cohorts: Iterable[str],
    policies: Sequence[Policy],
    decided_at: Mapping[str, datetime],
    now: datetime,
) -> list[str]:
    """Return the cohorts that are to be planned now: once in each stretch of their cadence.

    Stretches are counted from midnight UTC, not from the run before, which would drift by the
    length of a run each time.

    Parameters
    ----------
    cohorts
        Those known.
    policies
        With their cadences.
    decided_at
        Group to when it was last decided on; groups that never were are missing.
    now
        The schedule's tick; time-zone-aware.

    Examples
    --------
    >>> at = lambda hour, minute: datetime(2026, 1, 1, hour, minute, tzinfo=UTC)
    >>> hourly = [Policy(cadence=timedelta(hours=1))]
    >>> [due(["a"], hourly, {"a": at(9, 2)}, at(*tick)) for tick in ((9, 45), (10, 0))]
    [[], ['a']]
    """
    last: dict[str, datetime] = {}
    for group, at in decided_at.items():
        cohort = cohort_of(group, policies)
        last[cohort] = max(at, last.get(cohort, at))

    def waits(cohort: str) -> bool:
        cadence = cadence_of(cohort, policies)
        if cadence is None or cohort not in last:
            return False
        return last[cohort] >= stretch_began(cadence, now)

    return [cohort for cohort in cohorts if not waits(cohort)]


def stretches(chosen: Iterable[str], ordered: Sequence[str]) -> list[tuple[str, str]]:
    """Cover a choice of cohorts by as few runs as there are gaps in it.

    A Dagster run covers either one partition or a range of partitions in the order in which they
    were added; a choice that is no range needs several runs.

    Parameters
    ----------
    chosen
        The cohorts to be planned.
    ordered
        Every cohort, in the order in which Dagster knows them.

    Returns
    -------
    First and last cohort of each stretch; cohorts that `ordered` lacks are left out.

    Examples
    --------
    >>> stretches(["a", "b", "d"], ["a", "b", "c", "d"])
    [('a', 'b'), ('d', 'd')]
    """
    wanted = set(chosen)
    found: list[tuple[str, str]] = []
    previous_taken = False
    for cohort in ordered:
        if cohort in wanted:
            found.append((found.pop()[0], cohort) if previous_taken else (cohort, cohort))
        previous_taken = cohort in wanted
    return found

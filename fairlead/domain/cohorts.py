"""Cohorts: sets of consumer groups that are planned together, in one run and one Spark job.

Belongs here: the cohort of a group, when a cohort is due, and which ranges of cohorts one run can
cover. Belongs elsewhere: Dagster's partitions, which are named like cohorts.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from fairlead.domain.policy import Discovery, Policy, policy_for

#: Start of the first interval of every cadence: midnight, so that PT6H means four times a day.
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def cohort_of(group: str, policies: Iterable[Policy]) -> str:
    """Return the cohort that a group's policy names, else the group's name.

    Examples
    --------
    >>> cohort_of("orders-eu", [Policy(groups="orders-*", cohort="orders")])
    'orders'
    >>> cohort_of("audit", [Policy(groups="orders-*", cohort="orders")])
    'audit'
    """
    return policy_for(group, policies).cohort or group


def by_cohort(groups: Iterable[str], policies: Sequence[Policy]) -> dict[str, list[str]]:
    """Return each cohort with its groups, in the order of the groups.

    Examples
    --------
    >>> by_cohort(["b", "a2", "a1"], [Policy(groups="a*", cohort="a")])
    {'b': ['b'], 'a': ['a2', 'a1']}
    """
    groups_of: dict[str, list[str]] = {}
    for group in groups:
        groups_of.setdefault(cohort_of(group, policies), []).append(group)
    return groups_of


def discover(
    groups: Iterable[str], discovery: Discovery, policies: Sequence[Policy]
) -> dict[str, list[str]]:
    """Return the groups that are planned, by cohort.

    Parameters
    ----------
    groups
        All consumer groups of the cluster.
    discovery
        Selects the groups that are planned.
    policies
        The policies, which may name cohorts that groups share.

    Returns
    -------
    Cohort to its groups, both ascending.

    Examples
    --------
    >>> discover(["b", "a", "test-1"], Discovery(exclude=("test-*",)), [])
    {'a': ['a'], 'b': ['b']}
    """
    covered = by_cohort(filter(discovery.covers, sorted(groups)), policies)
    return dict(sorted(covered.items()))


def planned_cohorts(
    cohorts: Iterable[str], discovery: Discovery, policies: Sequence[Policy]
) -> list[str]:
    """Return the cohorts that can have groups.

    These are the cohorts that a policy names, and those with the name of a group. The latter are
    left out if discovery excludes the group, or if a policy puts it into another cohort.

    Examples
    --------
    >>> rules = [Policy(groups="orders-*", cohort="orders")]
    >>> discovery = Discovery(exclude=("test-*",))
    >>> planned_cohorts(["orders", "orders-eu", "test-1", "audit"], discovery, rules)
    ['orders', 'audit']
    """
    named = {policy.cohort for policy in policies}
    return [
        cohort
        for cohort in cohorts
        if cohort in named or (discovery.covers(cohort) and cohort_of(cohort, policies) == cohort)
    ]


def groups_in(
    cohorts: Iterable[str],
    groups: Iterable[str],
    discovery: Discovery,
    policies: Sequence[Policy],
) -> dict[str, str]:
    """Return the groups of some cohorts, each with its cohort.

    A cohort that no policy names stands for the group of the same name. Unless discovery excludes
    this group, the result has it even if it no longer exists, so that its absence is reported.

    Examples
    --------
    >>> groups_in(["orders", "gone"], ["orders-eu", "audit"], Discovery(),
    ...           [Policy(groups="orders-*", cohort="orders")])
    {'orders-eu': 'orders', 'gone': 'gone'}
    """
    discovered = discover(groups, discovery, policies)
    named = {policy.cohort for policy in policies}
    return {
        group: cohort
        for cohort in planned_cohorts(cohorts, discovery, policies)
        for group in discovered.get(cohort, [] if cohort in named else [cohort])
    }


def cadence_of(cohort: str, policies: Sequence[Policy]) -> timedelta | None:
    """Return the cadence of a cohort: the shortest cadence of its policies.

    Returns
    -------
    None if the cohort is planned at every tick of the schedule.

    Examples
    --------
    >>> rules = [Policy(groups="orders-*", cadence=timedelta(hours=6))]
    >>> cadence_of("orders-eu", rules), cadence_of("audit", rules)
    (datetime.timedelta(seconds=21600), None)
    """
    named = [policy for policy in policies if policy.cohort == cohort]
    cadences = [policy.cadence for policy in named or [policy_for(cohort, policies)]]
    set_cadences = [cadence for cadence in cadences if cadence is not None]
    return min(set_cadences) if len(set_cadences) == len(cadences) else None


def interval_began(cadence: timedelta, now: datetime) -> datetime:
    """Return the start of the present interval of a cadence; both times are time-zone-aware.

    Examples
    --------
    >>> interval_began(timedelta(hours=6), datetime(2026, 1, 1, 13, 5, tzinfo=UTC)).hour
    12
    """
    return now - (now - _EPOCH) % cadence


def overdue(
    groups: Iterable[str],
    policies: Sequence[Policy],
    decided_at: Mapping[str, datetime],
    now: datetime,
) -> list[str]:
    """Return the groups without a decision in the present interval of their cohort's cadence.

    Intervals are counted from midnight UTC. If they were counted from the last run, they would grow
    by the length of a run. Groups of cohorts without a cadence are never overdue.

    Parameters
    ----------
    decided_at
        Group to the time of its last decision, if any.
    now
        Time-zone-aware.

    Examples
    --------
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
            began[cohort] = None if cadence is None else interval_began(cadence, now)
        start = began[cohort]
        return start is not None and (group not in decided_at or decided_at[group] < start)

    return [group for group in groups if is_due(group)]


def due(
    cohorts: Iterable[str],
    policies: Sequence[Policy],
    decided_at: Mapping[str, datetime],
    now: datetime,
    *,
    seen: Iterable[str] = (),
) -> list[str]:
    """Return the cohorts to plan now, which have an `overdue` group or are always due.

    Parameters
    ----------
    cohorts
        All cohorts. A cohort is always due if it has no cadence, or if none of its groups has a
        sample or a decision.
    policies, decided_at, now
        As for `overdue`; `now` is the schedule's tick.
    seen
        Groups in the last sample. If a cohort has none of them, its groups with a decision are used
        instead.

    Examples
    --------
    >>> at = lambda hour, minute: datetime(2026, 1, 1, hour, minute, tzinfo=UTC)
    >>> hourly = [Policy(cadence=timedelta(hours=1))]
    >>> [due(["a"], hourly, {"a": at(9, 2)}, at(*tick)) for tick in ((9, 45), (10, 0))]
    [[], ['a']]
    """
    groups = {group: cohort_of(group, policies) for group in seen}
    sampled = set(groups.values())
    groups |= {
        group: cohort
        for group in decided_at
        if (cohort := cohort_of(group, policies)) not in sampled
    }
    late = {groups[group] for group in overdue(groups, policies, decided_at, now)}
    known = set(groups.values())
    return [
        cohort
        for cohort in cohorts
        if cohort in late or cohort not in known or cadence_of(cohort, policies) is None
    ]


def stretches(chosen: Iterable[str], ordered: Sequence[str]) -> list[tuple[str, str]]:
    """Return the fewest ranges of cohorts that cover the chosen cohorts and no others.

    A Dagster run covers one partition or a range of partitions, in the order in which partitions
    were added.

    Parameters
    ----------
    chosen
        Cohorts to plan. Cohorts that are not in `ordered` are left out.
    ordered
        All cohorts, in Dagster's order.

    Returns
    -------
    First and last cohort of each range.

    Examples
    --------
    >>> stretches(["a", "b", "d"], ["a", "b", "c", "d"])
    [('a', 'b'), ('d', 'd')]
    """
    wanted = set(chosen)
    ranges: list[tuple[str, str]] = []
    previous_taken = False
    for cohort in ordered:
        if cohort in wanted:
            ranges.append((ranges.pop()[0], cohort) if previous_taken else (cohort, cohort))
        previous_taken = cohort in wanted
    return ranges

"""Cohorts: sets of consumer groups that are planned together, in one run and one Spark job.

Belongs here: the cohort of a group, when a cohort is due, and which of the due cohorts a single run
can cover. Belongs elsewhere: the partitions in Dagster, one per cohort.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from fairlead.domain.policy import Discovery, Policy, policy_for

#: All cadences are counted from this midnight: PT6H means at 0:00, 6:00, 12:00 and 18:00 UTC.
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def cohort_of(group: str, policies: Iterable[Policy]) -> str:
    """Return a group's cohort: the one in its policy or, failing that, the name of the group.

    Examples
    --------
    >>> cohort_of("orders-eu", [Policy(groups="orders-*", cohort="orders")])
    'orders'
    >>> cohort_of("audit", [Policy(groups="orders-*", cohort="orders")])
    'audit'
    """
    return policy_for(group, policies).cohort or group


def by_cohort(groups: Iterable[str], policies: Sequence[Policy]) -> dict[str, list[str]]:
    """Return a mapping from cohort to groups, in the order of `groups`.

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
    """Return all groups for which plans are made, by cohort.

    Parameters
    ----------
    groups
        All consumer groups of the cluster.
    discovery
        The settings that include or exclude groups.
    policies
        The policies; a policy may put several groups into one cohort.

    Returns
    -------
    A mapping of each cohort to its groups, both ascending.

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
    """Return the cohorts among `cohorts` to which a group can belong.

    A group can belong to a cohort if a policy names the cohort, or if the cohort has the name of
    the group. A cohort that no policy names is left out if the settings exclude the group of its
    name, or if a policy puts this group into another cohort.

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
    """Return a mapping from group to cohort, for the groups of the given cohorts.

    If no policy names a cohort, the cohort consists of the group of the same name. The result has
    this group even if the group no longer exists, so that its absence is reported. It does not have
    the group if the settings exclude the group.

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
    None if plans for the cohort are made at every tick of the schedule.

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

    Intervals are counted from midnight UTC, not from the last run, because a run takes time and
    each interval would then be longer than the cadence. Groups of cohorts without a cadence are
    never overdue.

    Parameters
    ----------
    decided_at
        Maps each group to the time of its last decision; a group without a decision is missing.
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
    """Return the cohorts for which plans are to be made now.

    Parameters
    ----------
    cohorts
        All cohorts. A cohort is due if one of its groups is `overdue`. It is always due if it has
        no cadence, or if none of its groups has a sample or a decision.
    policies, decided_at, now
        As for `overdue`; `now` is the schedule's tick.
    seen
        Groups in the last sample. If a cohort has no group in this sample, the cohort's groups with
        a decision are used instead.

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
    """Return the fewest ranges of consecutive cohorts that contain exactly the chosen cohorts.

    Each cohort is a partition in Dagster. A Dagster run covers one partition or a range of them, in
    the order in which they were added to Dagster.

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

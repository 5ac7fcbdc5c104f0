"""Cohorts: sets of consumer groups that are planned together, in one run and one Spark job.

Belongs here: which cohort a group belongs to, and which stretches of cohorts one run can cover.
Does not: Dagster's partitions, which are named like cohorts.
"""

from collections.abc import Iterable, Sequence

from fairlead.policy import Discovery, Policy, policy_for


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

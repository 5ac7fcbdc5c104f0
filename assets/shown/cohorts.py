"""Metadata of each cohort in a run. In Dagster, a cohort is a partition.

A cohort's metadata shows the cohort's groups. Whenever metadata is added to one partition of a
run, Dagster reads the metadata of all partitions of the run. Therefore at most `DETAILED` cohorts
show their groups: those that need attention most.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from logging import Logger
from typing import Any, Final

import dagster as dg

from assets.presentation import details
from assets.scope import scope_of
from fairlead.domain.cohorts import by_cohort
from fairlead.domain.policy import Policy
from fairlead.settings import Settings, WebSettings

#: Maximum number of cohorts of one run that show their own groups.
DETAILED: Final = 50

#: A function that returns metadata about groups. The argument lists the groups, worst first.
Describe = Callable[[Sequence[str]], Mapping[str, Any]]


def materialized(
    context: dg.AssetExecutionContext,
    groups: Iterable[str],
    settings: Settings,
    describe: Describe,
) -> dg.MaterializeResult[None]:
    """Return a step's result, in which the metadata of each cohort describes its groups.

    Parameters
    ----------
    context
        The step's context.
    groups
        The groups of the run, most urgent first.
    settings
        The settings; their policies define the cohort of each group.
    describe
        Returns the metadata of some groups.
    """
    scope = scope_of(context)

    def show(groups: Sequence[str]) -> Mapping[str, Any]:
        return step_metadata(context.log, groups, settings.web, describe)

    cohorts = gathered(groups, scope.cohorts, settings.policies)
    if len(cohorts) == 1:
        (members,) = cohorts.values()  # without groups of other cohorts
        return dg.MaterializeResult(metadata=show(members))
    if scope.chosen:
        return _materialized_each(context, cohorts, show)
    for cohort, members in islice(cohorts.items(), DETAILED):
        context.add_asset_metadata(show(members), partition_key=cohort)
    if len(cohorts) <= DETAILED:
        return dg.MaterializeResult()
    run = (
        f"one of {len(cohorts):,} cohorts; the {DETAILED} that need attention most show their "
        "groups, and all are in Postgres"
    )
    return dg.MaterializeResult(metadata={"planned together": run})


def step_metadata(
    log: Logger, groups: Sequence[str], web: WebSettings, describe: Describe
) -> Mapping[str, Any]:
    """Return a step's metadata about some groups, with a link to the page of the first one.

    If `describe` fails, log and show the error, because the step itself has succeeded.
    """
    first = {"details": details("Open the group's page", web, groups[0])} if groups else {}
    try:
        return {**describe(groups), **first}
    except Exception as error:
        log.exception("The step succeeded, but its result cannot be shown")
        return {"not shown": f"{type(error).__name__}: {error}"}


def _materialized_each(
    context: dg.AssetExecutionContext, cohorts: Mapping[str, Sequence[str]], show: Describe
) -> dg.MaterializeResult[None]:
    """Log a materialization for every cohort that the run's configuration names.

    Dagster can only run ranges of adjacent partitions, and the named cohorts need not be adjacent.
    Therefore, the run has only one partition in Dagster. Dagster logs the materialization of this
    partition, from the returned result. This function logs those of the other cohorts.
    """
    own: Mapping[str, Any] = {}
    for place, (cohort, members) in enumerate(cohorts.items()):
        metadata = show(members) if place < DETAILED else {}
        if cohort == context.partition_key:
            own = metadata
        else:
            context.log_event(
                dg.AssetMaterialization(context.asset_key, partition=cohort, metadata=metadata)
            )
    return dg.MaterializeResult(metadata=own)


def gathered(
    groups: Iterable[str], cohorts: Iterable[str], policies: Sequence[Policy]
) -> dict[str, list[str]]:
    """Return, for each cohort in `cohorts`, the groups in `groups` that belong to it.

    Each cohort's groups are in the order of `groups`. Cohorts are in the order of their first
    groups; cohorts without groups come last.

    Examples
    --------
    >>> gathered(["b", "a1", "c"], ["a1", "b"], [])
    {'b': ['b'], 'a1': ['a1']}
    """
    wanted = dict.fromkeys(cohorts)
    members = by_cohort(groups, policies)
    return {cohort: members.get(cohort, []) for cohort in [*members, *wanted] if cohort in wanted}

"""The scope of a run: which groups it covers.

Groups that are planned together are a cohort, and each cohort is a partition in Dagster. A run
covers the groups that its configuration names. If it names none, the run covers all groups of its
partitions.

Belongs here: reading the scope from a run, for every step and check. Belongs elsewhere: choosing
the scope (`orchestration`), and which group belongs to which cohort (`fairlead.domain.cohorts`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dagster as dg
from pydantic import Field

from assets.resources import SettingsResource
from fairlead.domain.cohorts import cohort_of

#: The step whose configuration names the scope. Every step reads the scope from there.
_STEP: Final = "group_offsets"


class ScopeConfig(dg.Config):
    """The groups that a run covers; if none are named, all groups of the run's partitions."""

    only: dict[str, list[str]] = Field(
        default_factory=dict,
        description="Maps each cohort to the groups that the run covers; an empty list means all "
        "groups of the cohort. By default, the run covers all groups of its cohorts.",
    )


@dataclass(frozen=True)
class Scope:
    """The groups that a run covers.

    Parameters
    ----------
    cohorts
        The cohorts that the run covers, completely or in part.
    only
        Maps a cohort to the groups of this cohort that the run covers. If a cohort is missing here,
        or has no groups here, the run covers all its groups.
    chosen
        Whether the cohorts come from the run's configuration, not from its partitions in Dagster.
    """

    cohorts: Sequence[str]
    only: Mapping[str, frozenset[str]]
    chosen: bool

    def has(self, group: str, cohort: str) -> bool:
        """Whether a group of a cohort is in the run.

        Examples
        --------
        >>> scope = Scope(["fleet", "audit"], {"fleet": frozenset({"a"})}, chosen=True)
        >>> [scope.has(*one) for one in (("a", "fleet"), ("b", "fleet"), ("audit", "audit"))]
        [True, False, True]
        """
        wanted = self.only.get(cohort)
        return cohort in self.cohorts and (not wanted or group in wanted)

    def of(self, groups: Iterable[str], settings: SettingsResource) -> list[str]:
        """Return the given groups that are in the run."""
        policies = settings.get().policies
        return [group for group in groups if self.has(group, cohort_of(group, policies))]


def scope_of(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> Scope:
    """Return the groups that a run covers; the run must have partitions in Dagster."""
    config: Mapping[str, Any] = context.run.run_config
    for key in ("ops", _STEP, "config", "only"):
        config = config.get(key) or {}
    only: Mapping[str, list[str]] = config
    if not only:
        return Scope(context.partition_keys, {}, chosen=False)
    return Scope(list(only), {key: frozenset(keys) for key, keys in only.items()}, chosen=True)


def run_config(only: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the configuration of a run that covers the groups in `only` (cohort to groups)."""
    return {"ops": {_STEP: {"config": {"only": {key: list(keys) for key, keys in only.items()}}}}}

"""The scope of a run: which groups it covers.

Either the run's configuration names groups, or the run's partitions in Dagster are its cohorts.

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
    """The groups that a run covers, if not those of the run's partitions in Dagster."""

    only: dict[str, list[str]] = Field(
        default_factory=dict,
        description="Cohort to its groups in the run; no groups: all of them. Empty: every group "
        "of the run's partitions.",
    )


@dataclass(frozen=True)
class Scope:
    """The scope of a run.

    Parameters
    ----------
    cohorts
        The run's cohorts.
    only
        Cohort to those of its groups that are in the run. If a cohort of the run is not a key, all
        its groups are in the run.
    chosen
        Whether the cohorts come from the configuration, not from the run's partitions.
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
    """Return the scope of a run that has partitions in Dagster."""
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

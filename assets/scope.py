"""What a run is about: the cohorts of its partitions, or some groups of some cohorts.

Belongs here: reading that from a run, for every step and check. Does not: who chooses
(`orchestration`), nor which group belongs to which cohort (`fairlead.domain.cohorts`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dagster as dg
from pydantic import Field

from assets.resources import SettingsResource
from fairlead.domain.cohorts import cohort_of

#: The step that is told, and says it to all others by the run's own configuration.
_TOLD: Final = "group_offsets"


class ScopeConfig(dg.Config):
    """Which groups a run is about, of cohorts that need not lie beside each other."""

    only: dict[str, list[str]] = Field(
        default_factory=dict,
        description="Cohort to those of its groups that the run is about, or to none for all of "
        "them. Empty: every group of the run's partitions.",
    )


@dataclass(frozen=True)
class Scope:
    """What a run is about.

    Parameters
    ----------
    cohorts
        Those covered.
    only
        Cohort to the groups that are meant of it; empty: all are.
    chosen
        Whether somebody chose: the cohorts are not those of the run's partitions.
    """

    cohorts: Sequence[str]
    only: Mapping[str, frozenset[str]]
    chosen: bool

    def has(self, group: str, cohort: str) -> bool:
        """Whether the run is about a group of a cohort.

        Examples
        --------
        >>> scope = Scope(["fleet", "audit"], {"fleet": frozenset({"a"})}, chosen=True)
        >>> [scope.has(*one) for one in (("a", "fleet"), ("b", "fleet"), ("audit", "audit"))]
        [True, False, True]
        """
        wanted = self.only.get(cohort)
        return cohort in self.cohorts and (not wanted or group in wanted)

    def of(self, groups: Iterable[str], settings: SettingsResource) -> list[str]:
        """Return those of some groups that the run is about."""
        policies = settings.get().policies
        return [group for group in groups if self.has(group, cohort_of(group, policies))]


def scope_of(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> Scope:
    """Read what a run with partitions is about."""
    config: Mapping[str, Any] = context.run.run_config
    for key in ("ops", _TOLD, "config", "only"):
        config = config.get(key) or {}
    only: Mapping[str, list[str]] = config
    if not only:
        return Scope(context.partition_keys, {}, chosen=False)
    return Scope(list(only), {key: frozenset(keys) for key, keys in only.items()}, chosen=True)


def run_config(only: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the configuration of a run about some groups of some cohorts."""
    return {"ops": {_TOLD: {"config": {"only": {key: list(keys) for key, keys in only.items()}}}}}

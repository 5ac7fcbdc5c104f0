"""Regressions: plans that made their groups worse, each with the version to roll back to.

Belongs here: storing and reading regressions and back-offs. Belongs elsewhere: detecting a
regression (`fairlead.domain.regression`), and the rollback
(`fairlead.workflows.automatic_rollback`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine, func, select, text

from fairlead.store.engine import transaction

if TYPE_CHECKING:
    from fairlead.domain.regression import Regression

_BACK_OFFS: Final = text("""
    SELECT group_id, version, back_off_until, evidence FROM fairlead.back_off
    WHERE CAST(:groups AS text[]) IS NULL OR group_id = ANY(:groups) ORDER BY group_id
""")
#: Leaves out versions for which a rollback was proposed already: a person may have rejected it.
_OPEN: Final = text("""
    SELECT said.group_id, said.version, said.back_to, said.automatic, said.evidence
    FROM fairlead_raw.regression said
    JOIN fairlead_raw.plan USING (group_id, version)
    WHERE plan.state = 'published' AND NOT EXISTS (
        SELECT FROM fairlead_raw.plan later
        WHERE later.group_id = said.group_id AND later.version > said.version
            AND later.rolled_back_from IS NOT NULL
    )
    ORDER BY said.group_id
""")


@dataclass(frozen=True)
class BackOff:
    """A period after a regression in which a group gets no plan that moves partitions.

    Parameters
    ----------
    group, version
        The version that made the group worse.
    until
        End of the back-off; time-zone-aware.
    evidence
        The evidence, in a sentence.
    """

    group: str
    version: int
    until: datetime
    evidence: str

    def __str__(self) -> str:
        """Return a sentence with the group, the end of back-off, the version and the evidence."""
        return (
            f"group {self.group} is in back-off until {self.until:%Y-%m-%d %H:%M} UTC: version "
            f"{self.version} caused a regression: {self.evidence}"
        )


@dataclass(frozen=True)
class OpenRegression:
    """A version that made its group worse and is still in force.

    Parameters
    ----------
    group, version
        The version.
    back_to
        The version to roll back to; None: withdraw the plan instead.
    automatic
        Whether the planner rolls back or withdraws without a person's approval.
    evidence
        The evidence, in a sentence.
    """

    group: str
    version: int
    back_to: int | None
    automatic: bool
    evidence: str


def record_regression(
    engine: Engine, group: str, version: int, regression: "Regression", *, automatic: bool
) -> bool:
    """Store that a version made its group worse.

    Returns
    -------
    False if the version is not in force, or its regression was stored before.
    """
    verdict = group, version, regression.evidence, automatic
    with transaction(engine) as connection:
        row = connection.scalar(select(func.fairlead_raw.record_regression(*verdict)))
    return row is not None


def open_regressions(engine: Engine) -> list[OpenRegression]:
    """Return the versions to roll back or withdraw, ordered by group."""
    with transaction(engine) as connection:
        return [OpenRegression(*row) for row in connection.execute(_OPEN)]


def back_offs(engine: Engine, groups: Iterable[str] | None = None) -> dict[str, BackOff]:
    """Return the present back-offs of some or all groups, by group."""
    names = None if groups is None else list(groups)
    with transaction(engine) as connection:
        rows = connection.execute(_BACK_OFFS, {"groups": names})
        return {
            row.group_id: BackOff(
                row.group_id, row.version, row.back_off_until.astimezone(UTC), row.evidence
            )
            for row in rows
        }

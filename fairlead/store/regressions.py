"""Plans that made their groups worse, each recorded once, and what is to follow.

Belongs here: the database's function, which groups are in back-off, and what is to be withdrawn.
Does not: the verdict (`fairlead.domain.regression`), nor going back
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

_RESTS: Final = text("""
    SELECT group_id, version, rests_until, evidence FROM fairlead.rest
    WHERE CAST(:groups AS text[]) IS NULL OR group_id = ANY(:groups) ORDER BY group_id
""")
# What was proposed since to go back was proposed once: a person may have rejected it.
_OPEN: Final = text("""
    SELECT said.group_id, said.version, said.back_to, said.automatic, said.evidence
    FROM fairlead_raw.made_worse said
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
    """A group that gets no plan with moves until a time.

    Parameters
    ----------
    group, version
        The version that made it worse.
    until
        Time-zone-aware.
    evidence
        What shows it.
    """

    group: str
    version: int
    until: datetime
    evidence: str

    def __str__(self) -> str:
        """Return a sentence."""
        return (
            f"group {self.group} rests until {self.until:%Y-%m-%d %H:%M} UTC: version "
            f"{self.version} made it worse: {self.evidence}"
        )


@dataclass(frozen=True)
class OpenRegression:
    """A version that made its group worse and is still in force.

    Parameters
    ----------
    group, version
        The version.
    back_to
        The version before; None: it is to be withdrawn.
    automatic
        Whether it happens without a person.
    evidence
        What shows that it made the group worse.
    """

    group: str
    version: int
    back_to: int | None
    automatic: bool
    evidence: str


def record_regression(
    engine: Engine, group: str, version: int, found: "Regression", *, automatic: bool
) -> bool:
    """Store that a version in force made its group worse; False: not in force, or known."""
    figures = (found.seen_s, found.before_s, found.error_s, found.late, found.late_before)
    how = (*figures, found.evidence, automatic)
    with transaction(engine) as connection:
        row = connection.scalar(select(func.fairlead_raw.record_made_worse(group, version, *how)))
    return row is not None


def open_regressions(engine: Engine) -> list[OpenRegression]:
    """Return the versions to roll back or withdraw, by group."""
    with transaction(engine) as connection:
        return [OpenRegression(*row) for row in connection.execute(_OPEN)]


def back_offs(engine: Engine, groups: Iterable[str] | None = None) -> dict[str, BackOff]:
    """Return the back-offs of some groups, or of all, by group."""
    wanted = None if groups is None else list(groups)
    with transaction(engine) as connection:
        rows = connection.execute(_RESTS, {"groups": wanted})
        return {
            row.group_id: BackOff(
                row.group_id, row.version, row.rests_until.astimezone(UTC), row.evidence
            )
            for row in rows
        }

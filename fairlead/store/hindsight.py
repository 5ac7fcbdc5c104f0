"""Plans that made their groups worse: saying so once, and what is to follow.

Belongs here: the database's function, who rests, and what is to be withdrawn. Does not: the verdict
(`fairlead.domain.regression`), nor going back (`fairlead.workflows.taking_back`).
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
class Rest:
    """A group that gets no plan that moves anything, until then.

    Parameters
    ----------
    group, version
        The version that made it worse.
    until
        Time-zone-aware.
    evidence
        By what.
    """

    group: str
    version: int
    until: datetime
    evidence: str

    def __str__(self) -> str:
        """Say so."""
        return (
            f"group {self.group} rests until {self.until:%Y-%m-%d %H:%M} UTC: version "
            f"{self.version} made it worse: {self.evidence}"
        )


@dataclass(frozen=True)
class Regret:
    """A version in force that made its group worse, that is still in force.

    Parameters
    ----------
    group, version
        The version.
    back_to
        The version before; None: it is to be withdrawn.
    automatic
        Whether that takes no person.
    evidence
        By what it made it worse.
    """

    group: str
    version: int
    back_to: int | None
    automatic: bool
    evidence: str


def say_made_worse(
    engine: Engine, group: str, version: int, found: "Regression", *, automatic: bool
) -> bool:
    """Store that a version in force made its group worse; False: it is not, or was said before."""
    figures = (found.seen_s, found.before_s, found.error_s, found.late, found.late_before)
    how = (*figures, found.evidence, automatic)
    with transaction(engine) as connection:
        said = connection.scalar(select(func.fairlead_raw.record_made_worse(group, version, *how)))
    return said is not None


def regrets(engine: Engine) -> list[Regret]:
    """Return the versions to roll back or withdraw, by group."""
    with transaction(engine) as connection:
        return [Regret(*row) for row in connection.execute(_OPEN)]


def rests(engine: Engine, groups: Iterable[str] | None = None) -> dict[str, Rest]:
    """Return those of some groups, or of all, that rest; by group."""
    wanted = None if groups is None else list(groups)
    with transaction(engine) as connection:
        rows = connection.execute(_RESTS, {"groups": wanted})
        return {
            row.group_id: Rest(
                row.group_id, row.version, row.rests_until.astimezone(UTC), row.evidence
            )
            for row in rows
        }

"""What all tables share, and the columns of an assignment's metrics.

Belongs here: the schemas, names for constraints, Postgres types. Does not: any table.
"""

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import BigInteger, DateTime, Double, LargeBinary, MetaData, Numeric, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

if TYPE_CHECKING:
    from sqlalchemy import Table

SCHEMA: Final = "fairlead"
"""What people read and call: views and functions."""
RAW: Final = "fairlead_raw"
"""The tables, and what guards them."""


def one_of(column: str, values: tuple[str, ...]) -> str:
    """Return a check that a column has one of these values."""
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class Base(DeclarativeBase):
    """What all tables share: the schema, names for constraints, and Postgres types."""

    metadata = MetaData(
        schema=RAW,
        naming_convention={
            "pk": "%(table_name)s_pkey",
            "fk": "%(table_name)s_%(referred_table_name)s_fkey",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
            "ck": "%(table_name)s_%(constraint_name)s_check",
        },
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's declaration
        str: Text,
        int: BigInteger,
        float: Double,
        Decimal: Numeric,
        bytes: LargeBinary,
        datetime: DateTime(timezone=True),
    }

    def __init_subclass__(cls, **options: Any) -> None:
        """Make a table of a model; its docstring becomes the comment in the database."""
        super().__init_subclass__(**options)
        cast("Table", cls.__table__).comment = cls.__doc__


class MeasuredBalance:
    """The metrics of an assignment and its forecast, as columns.

    Lag sums are numeric: the sum of int64 lags need not fit an int64. Columns of a candidate's own
    stand among these, by their `sort_order`.
    """

    count_min: Mapped[int | None] = mapped_column(comment="Fewest partitions of a member.")
    count_max: Mapped[int | None] = mapped_column(comment="Most partitions of a member.")
    balance_score: Mapped[Decimal | None] = mapped_column(
        comment="KIP-54: sum of the pairwise differences of partition counts; 0 is even."
    )
    lag_max: Mapped[Decimal | None] = mapped_column(
        comment="Load of the heaviest member, in records."
    )
    lag_mean: Mapped[float | None] = mapped_column(comment="Load a member on average, in records.")
    lag_lower_bound: Mapped[Decimal | None] = mapped_column(
        comment="No assignment has a heaviest member lighter than this, in records."
    )
    gap: Mapped[float | None] = mapped_column(comment="How far lag_max is above its lower bound.")
    kept: Mapped[int | None] = mapped_column(comment="Partitions that stay with their owner.")
    moved: Mapped[int | None] = mapped_column(
        comment="Partitions taken from an owner that is present."
    )
    placed: Mapped[int | None] = mapped_column(
        comment="Partitions without an owner, or whose owner is gone, that get one."
    )
    late_s: Mapped[float | None] = mapped_column(
        sort_order=2,
        comment="Seconds the worst partition is forecast to be behind at the policy's horizon.",
    )
    utilisation: Mapped[float | None] = mapped_column(
        sort_order=2,
        comment="Share of what it can do that the fullest member gets: above 1 it falls behind.",
    )
    caught_up_s: Mapped[float | None] = mapped_column(
        sort_order=2,
        comment="Seconds until the group is within its objective: 0 where it is; null: never.",
    )
    topic_spread: Mapped[float | None] = mapped_column(
        sort_order=4,
        comment="The worst topic's largest share on one member over its even share; 1 is even.",
    )
    rack_gb_per_day: Mapped[float | None] = mapped_column(
        sort_order=4,
        comment="Gigabytes a day that consumers read from other racks, on average.",
    )
    rack_cost_per_day: Mapped[float | None] = mapped_column(
        sort_order=4,
        comment="What they cost a day, by the price of the policy.",
    )

"""The base class of all tables, and the columns of an assignment's metrics.

Belongs here: the schemas, the naming of constraints, Postgres types. Belongs elsewhere: tables.
"""

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from sqlalchemy import (
    BigInteger,
    DateTime,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Text,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped

from fairlead.domain.figures import figure

if TYPE_CHECKING:
    from sqlalchemy import Table

#: Type of 32-bit integer columns; the columns of other integers have 64 bits.
Int32 = Annotated[int, 32]
#: Schema of the views and functions for people.
SCHEMA: Final = "fairlead"
#: Schema of the tables and their triggers.
RAW: Final = "fairlead_raw"


def one_of(column: str, values: tuple[str, ...]) -> str:
    """Return the SQL condition that a column has one of these values."""
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


def one_per_group(name: str, condition: str) -> Index:
    """Return a unique index: at most one row of each group can satisfy the condition."""
    return Index(name, "group_id", unique=True, postgresql_where=text(condition))


class Base(DeclarativeBase):
    """Base class of all tables: the schema, the naming of constraints, and Postgres types."""

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
        Int32: Integer,
        float: Double,
        Decimal: Numeric,
        bytes: LargeBinary,
        datetime: DateTime(timezone=True),
    }

    def __init_subclass__(cls, **options: Any) -> None:
        """Create a model's table and its comments.

        The table's comment is the docstring of its class. If a column has no comment, its comment
        is the meaning of the figure that has the same name as the column.
        """
        super().__init_subclass__(**options)
        table = cast("Table", cls.__table__)
        table.comment = cls.__doc__
        for column in table.columns:
            if column.comment is None:
                column.comment = figure(column.name).meaning


class MeasuredBalance:
    """Metrics and forecast of an assignment; sums of lags are Decimal, as they may exceed int64."""

    count_min: Mapped[int | None]
    count_max: Mapped[int | None]
    balance_score: Mapped[Decimal | None]
    lag_max: Mapped[Decimal | None]
    lag_mean: Mapped[float | None]
    lag_lower_bound: Mapped[Decimal | None]
    gap: Mapped[float | None]
    kept: Mapped[int | None]
    moved: Mapped[int | None]
    placed: Mapped[int | None]
    forecast_time_lag_s: Mapped[float | None]
    utilisation: Mapped[float | None]
    catch_up_s: Mapped[float | None]
    topic_spread: Mapped[float | None]
    rack_gb_per_day: Mapped[float | None]
    rack_cost_per_day: Mapped[float | None]
    imbalance: Mapped[Decimal | None]

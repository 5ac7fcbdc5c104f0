"""`copy_rows` stores every value unchanged."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, column, table, text

from fairlead.store.bulk import copy_rows
from fairlead.store.engine import transaction

pytestmark = pytest.mark.postgres

TARGET = table("copied", column("name"), column("value"), column("at"))


def round_trip(engine: Engine, rows: pa.Table) -> list[tuple[object, ...]]:
    with transaction(engine) as connection:
        connection.execute(
            text(
                "CREATE TEMP TABLE copied (row serial, name text, value float8, at timestamptz)"
                " ON COMMIT DROP"
            )
        )
        copy_rows(connection, TARGET, rows)
        stored = connection.execute(text("SELECT name, value, at FROM copied ORDER BY row"))
        return [tuple(row) for row in stored]


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            st.none() | st.floats(allow_nan=False),
            st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001
        ),
        max_size=20,
    )
)
def test_texts_numbers_and_times_are_stored_unchanged(
    engine: Engine, rows: list[tuple[str | None, float | None, datetime | None]]
) -> None:
    """Rows are read back as written, also with quotes, newlines, backslashes and nulls."""
    zoned = [(name, value, at and at.replace(tzinfo=UTC)) for name, value, at in rows]
    names, values, times = zip(*zoned, strict=True) if zoned else ((), (), ())
    arrow = pa.table(
        {
            "name": pa.array(names, pa.string()),
            "value": pa.array(values, pa.float64()),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    assert round_trip(engine, arrow) == zoned

"""Bulk loading with Postgres's COPY.

Belongs here: copying an Arrow table into a Postgres table. Belongs elsewhere: the choice of rows.
"""

from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
from psycopg import sql
from sqlalchemy import Connection, FromClause

_CHUNK_ROWS: Final = 65_536
#: Arrow quotes every string and writes null as an empty field, as COPY's CSV format expects.
_CSV: Final = pa.csv.WriteOptions(include_header=False, quoting_style="needed")


def copy_rows(connection: Connection, table: FromClause, rows: pa.Table) -> None:
    """Append rows within the connection's transaction.

    Parameters
    ----------
    connection
        Must use psycopg 3.
    table
        The table to append to.
    rows
        Columns with the names of the table's columns; missing columns get their defaults. For
        speed, Arrow writes the CSV and libpq sends it, so that no row becomes a Python object.
    """
    driver: Any = connection.connection.driver_connection
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
        sql.Identifier(*str(table).split(".")),
        sql.SQL(", ").join(map(sql.Identifier, rows.column_names)),
    )
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in rows.to_batches(max_chunksize=_CHUNK_ROWS):
            sink = pa.BufferOutputStream()
            pa.csv.write_csv(batch, sink, _CSV)
            copy.write(sink.getvalue().to_pybytes())

"""Moves the dates of docs/sql.md's sample week to the present: pages show only recent groups."""

from typing import Final

import psycopg

_MOVED: Final = (
    ("decision", "decided_at"),
    ("decision", "snapshot_at"),
    ("lag_snapshot", "snapshot_at"),
    ("partition_lag", "snapshot_at"),
    ("group_sample", "sampled_at"),
    ("group_sample_last", "sampled_at"),
    ("balance", "measured_at"),
    ("plan", "created_at"),
    ("group_diagnosis", "until"),
    ("group_diagnosis", "last_seen"),
    ("group_diagnosis", "since"),
    ("candidate", "snapshot_at"),
    ("plan_balance", "measured_at"),
    ("last_adoption", "observed_at"),
)


def end_now(url: str) -> None:
    """Move the dates of the sample week, which has groups `orders` and `billing`, to end today.

    Some values are also changed. Group `orders` is overloaded, is forecast to catch up, and has a
    stuck partition. The diagnosis of `billing` is "stuck partition". Each stored balance has
    cross-rack traffic. Plans expire tomorrow.
    """
    with psycopg.connect(url) as connection:
        connection.execute(
            "SET session_replication_role = replica"
        )  # disables triggers, which would refuse the updates
        connection.execute(
            "CREATE TEMP TABLE moved AS SELECT current_date - max(decided_at)::date AS days"
            " FROM fairlead.decision"
        )
        connection.execute(
            "SELECT fairlead_raw.ensure_day(day + days) FROM fairlead.history_days(), moved"
        )
        for table, column in _MOVED:
            connection.execute(
                f"UPDATE fairlead_raw.{table} SET {column} = {column} + days * interval '1 day'"
                " FROM moved".encode()
            )
        for group, diagnosis in (("orders", "overloaded"), ("billing", "stuck partition")):
            connection.execute(
                "UPDATE fairlead_raw.group_diagnosis SET diagnosis = %s"
                " WHERE group_id = %s AND until IS NULL",
                (diagnosis, group),
            )
        connection.execute(  # as if a sample had just been taken
            "UPDATE fairlead_raw.group_diagnosis SET last_seen = now(),"
            " since = least(since, now() - interval '1 hour') WHERE until IS NULL"
        )
        connection.execute(
            "UPDATE fairlead_raw.group_diagnosis SET catch_up_s = 5400"
            " WHERE group_id = 'orders' AND until IS NULL"
        )
        connection.execute("UPDATE fairlead_raw.balance SET rack_gb_per_day = 12.5")
        connection.execute("UPDATE fairlead_raw.plan SET expires_at = now() + interval '1 day'")
        connection.execute(
            "UPDATE fairlead_raw.partition_lag SET status = 'STALL'"
            " WHERE group_id = 'orders' AND partition = 5"
        )

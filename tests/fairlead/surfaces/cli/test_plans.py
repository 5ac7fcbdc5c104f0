"""`fairlead plans`, `groups`, `lag` and `history`: their output and exit codes."""

import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlalchemy import Engine, text
from typer.testing import CliRunner, Result

from fairlead.domain.diagnoses import NO_MEMBERS
from fairlead.domain.regression import Regression
from fairlead.errors import ConfigurationError, GroupError, PlanStateError, TamperedPlanError
from fairlead.store.engine import transaction
from fairlead.store.group_history import insert_samples, read_samples, replace_last_samples
from fairlead.store.plans import PlanStore
from fairlead.store.regressions import record_regression
from fairlead.surfaces.cli import app
from fairlead.surfaces.web.group import group_page
from fairlead.surfaces.web.groups_list import groups_page
from tests.programs import FAIRLEAD, ended
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

APPROVE = ("plans", "approve", "billing", "1", "--reason", "agreed")


def run(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"FAIRLEAD_POSTGRES__URL": url})


def document(url: str, *arguments: str) -> Any:
    result = run(url, *arguments, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_every_output_is_one_json_document(week: str) -> None:
    """With `--json`, each command prints a single document; times include the time zone."""
    assert [row["group"] for row in document(week, "groups")] == ["billing", "orders"]
    assert len(document(week, "lag", "orders")) == 6
    assert document(week, "history", "orders")[0]["at"] == "2026-01-07T11:30:00+00:00"
    assert [row["version"] for row in document(week, "plans", "list", "orders")] == [3, 2, 1]
    assert document(week, "plans", "show", "orders", "2")["moves"][0]["partition"] == 1
    assert len(document(week, "plans", "diff", "orders", "1", "3")["partitions"]) == 2
    assert document(week, "policy", "explain", "orders")["planned"]


def test_worst_group_comes_first_with_evidence_and_next_step(week: str) -> None:
    """`groups` lists the worst group first, with next steps, in lines of at most 80 characters."""
    lines = run(week, "groups").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["billing", "orders"]
    assert max(map(len, lines[:4])) <= 80
    assert lines[2].split()[-1] == "decide"
    assert lines[4].startswith("billing: billing-1 is at 127% of its capacity")
    with psycopg.connect(week) as connection:
        connection.execute(
            "UPDATE fairlead_raw.group_diagnosis"
            " SET loss_s = CASE group_id WHEN 'orders' THEN 60 END"
        )
    assert run(week, "groups").stdout.splitlines()[2].startswith("orders")


def test_why_explains_a_diagnosis_and_moves_of_a_partition(week: str) -> None:
    """`why` shows a group's evidence and next step, and which plan versions move a partition."""
    text = run(week, "why", "orders").stdout
    assert text.startswith("orders: unbalanced since ")
    assert "orders-2 is at 115% of its capacity" in text
    assert "plan: version 2 is published; followed: yes" in text
    assert "next: turn planning on" in text
    for partition, expected in (
        ("orders-1", (2, "orders-1", "orders-3")),
        ("orders-4", (1, None, "orders-3")),
    ):
        (move,) = document(week, "why", "orders", partition)["moves"]
        assert (move["version"], move["previous_member"], move["member"]) == expected
    assert "relieves orders-1" in run(week, "why", "orders", "orders-1").stdout
    with psycopg.connect(week) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM fairlead_raw.moved_partition WHERE partition = 5")
    nothing = run(week, "why", "orders", "orders-5").stdout
    assert "no stored version of the plan moves orders-5" in nothing
    for wrong in (["orders", "orders-77"], ["nobody"]):
        assert isinstance(run(week, "why", *wrong).exception, GroupError)


def test_times_are_in_utc(week: str) -> None:
    """Commands show times in UTC, in any time zone of the database session."""
    tokyo = f"{week}&options=-c%20timezone%3DAsia/Tokyo"
    for command in (["plans", "list"], ["lag", "orders"], ["history", "orders", "--json"]):
        assert run(tokyo, *command).stdout == run(week, *command).stdout
    early = run(week, "lag", "orders", "--at", "2020-01-01")
    assert (early.exit_code, type(early.exception)) == (1, GroupError)
    assert str(early.exception) == "group orders: no lag is stored from before then"


def test_figures_have_their_age(week: str, week_engine: Engine) -> None:
    """`groups` and `lag` mark old figures; `groups` explains why a group has no recent sample."""
    groups = run(week, "groups").output
    assert "billing, orders: no sample since " in groups
    lag = run(week, "lag", "orders")
    assert lag.stdout.splitlines()[0].strip() == "orders, 2026-01-07 09:00:00 UTC"
    assert "orders: this lag is more than 20 minutes old" in lag.stderr
    assert "is the Dagster daemon running?" in groups
    PlanStore(week_engine).record_sample(datetime.now(UTC), timedelta(minutes=1))
    groups = run(week, "groups").output
    assert "Dagster daemon" not in groups
    assert "these groups read nothing, no longer exist, or are excluded by discovery" in groups


def test_group_without_members_is_shown_as_such(week: str, week_engine: Engine) -> None:
    """If a group has no members, "no members" is shown, and not how far its plan is followed.

    This is so even if the group's samples are old.
    """
    now = datetime.now(UTC)
    PlanStore(week_engine).record_sample(now, timedelta(minutes=1))
    with psycopg.connect(week) as connection:
        connection.execute(
            "UPDATE fairlead_raw.group_diagnosis SET diagnosis = 'unknown', evidence = %s"
            " WHERE group_id = 'orders' AND until IS NULL",
            [NO_MEMBERS],
        )
    text = run(week, "groups").stdout
    assert "billing: no sample since " in text
    assert "no members" in text
    listed, page = groups_page(week_engine, now=now), group_page(week_engine, "orders", now=now)
    assert "<strong>billing: no sample for more than a quarter of an hour" in listed
    assert "no members" in listed
    assert "% followed" not in listed
    assert " has no consumers" in page


def test_current_time_lag_is_shown_beside_the_forecast(week: str, week_engine: Engine) -> None:
    """`groups`, `why` and pages show the newest sample's time lag beside the forecast.

    An older sample that is stored later changes nothing. The charts of the group's page end with
    the newest sample.
    """
    now = datetime.now(UTC)
    series = read_samples(week_engine, "orders")
    last = replace(
        series[-1], at=now, forecast_time_lag_s=0.0, behind_s=[180.0, 9.0, 8.0, 7.0, 6.0, 5.0]
    )
    with transaction(week_engine) as connection:
        replace_last_samples(connection, {"orders": last})
        replace_last_samples(connection, {"orders": replace(series[-1], behind_s=[1.0] * 6)})
        connection.execute(
            text(
                "UPDATE fairlead_raw.group_diagnosis SET forecast_time_lag_s = 0"
                " WHERE group_id = 'orders' AND until IS NULL"
            )
        )
    assert [row.at for row in read_samples(week_engine, "orders")] == [
        *(row.at for row in series),
        now,
    ]
    page = group_page(week_engine, "orders", now=now)
    header, _, *rows = run(week, "groups").stdout.splitlines()
    (row,) = (row for row in rows if row.startswith("orders  "))
    columns = header.index("behind"), header.index("forecast"), header.index("caught up")
    assert [row[first:end].strip() for first, end in pairwise(columns)] == ["3 min", "0 s"]
    assert "behind now: 3 min; forecast lag: 0 s" in (run(week, "why", "orders").stdout)
    assert "Behind now</dt><dd>3 min" in page
    assert '<td class="number">3 min</td>' in page


def test_rebalances_since_yesterday_are_counted(week: str, week_engine: Engine) -> None:
    """`groups` counts changes of owners or members between samples of the last 24 hours."""
    now = datetime.now(UTC)
    (*_, last) = read_samples(week_engine, "orders")
    with transaction(week_engine) as connection:
        for day in (now, now - timedelta(days=1)):
            connection.execute(text("SELECT fairlead_raw.ensure_day(:day)"), {"day": day.date()})
        for number in range(52):  # in 50 of these, owners have changed since the previous sample
            at = now - timedelta(minutes=52 - number)
            digest = last.digest + min(number, 50) % 2
            insert_samples(connection, {"orders": replace(last, at=at, digest=digest)})
    (orders,) = (row for row in document(week, "groups") if row["group"] == "orders")
    assert orders["rebalances"] == 50


def test_lag_is_that_of_the_newest_sample_or_run(week: str, week_engine: Engine) -> None:
    """`lag` shows the newest lag and its age; with `--at`, it shows the lag of an earlier time.

    The lag is listed by partition, by member or by topic.
    """
    now = datetime.now(UTC)
    last = replace(
        read_samples(week_engine, "orders")[-1],
        at=now - timedelta(minutes=3),
        lag=[30, 10, 25, 20, 6, 4],
    )
    with transaction(week_engine) as connection:
        for day in (now, now - timedelta(days=1)):
            connection.execute(text("SELECT fairlead_raw.ensure_day(:day)"), {"day": day.date()})
        insert_samples(connection, {"orders": last})
    result = run(week, "lag", "orders")
    assert re.search(r" UTC, \d+ min ago$", result.stdout.splitlines()[0].strip())
    assert result.stderr == ""
    found = {row["partition"]: row for row in document(week, "lag", "orders")}
    assert [found[number]["lag"] for number in range(6)] == last.lag
    arrivals = [found[number]["arrival_rate"] for number in range(6)]
    assert arrivals == pytest.approx(last.arrival_rate, rel=1e-4)
    assert (found[1]["member"], found[1]["status"]) == ("orders-3", None)
    by_member = document(week, "lag", "orders", "--by-member")
    assert {row["member"]: row["lag"] for row in by_member} == {
        "orders-1": 30,
        "orders-2": 45,
        "orders-3": 20,
    }
    (by_topic,) = document(week, "lag", "orders", "--by-topic")
    assert (by_topic["lag"], by_topic["partitions"]) == (95, 6)
    assert by_topic["time_share"] == pytest.approx(2.06, rel=1e-2)
    assert by_topic["seconds_per_record"] == pytest.approx(2.06 / 182, rel=1e-2)
    before = document(week, "lag", "orders", "--at", str(now.date() - timedelta(days=2)))
    assert before[0]["lag"] == 9522


def test_lag_and_why_show_reported_times_per_record(week: str) -> None:
    """Reported times are shown for a partition even if its relative cost is unknown."""
    with psycopg.connect(week) as connection:
        connection.execute("UPDATE fairlead_raw.group_diagnosis SET costs = '{}'")
    found = {row["partition"]: row for row in document(week, "lag", "orders")}
    low, mean, high = (found[1][f"seconds_{end}"] for end in ("low", "per_record", "high"))
    assert low < mean < high
    assert mean == pytest.approx(0.03, rel=0.02)
    assert found[1]["time_share"] == pytest.approx(12 * 0.03, rel=0.02)
    line = next(line for line in run(week, "lag", "orders").output.splitlines() if "12/s" in line)
    assert line.split()[-5:] == ["30", "ms", "36.0", "%", "OK"]
    busy = {row["member"]: row["busy"] for row in document(week, "lag", "orders", "--by-member")}
    assert busy["orders-2"] == pytest.approx(0.8, rel=0.01)
    assert document(week, "lag", "orders", "--at", "2026-01-06")[0]["seconds_per_record"] is None
    assert "The time per record is unknown" in run(week, "lag", "billing").output
    text = run(week, "why", "orders").output
    assert "  time per record: orders 10 ms, orders-1 30 ms\n" in text
    assert "  busy: orders-2 80.0 %, orders-3 67.0 %, orders-1 53.3 %\n" in text
    text = run(week, "why", "orders", "orders-1").output
    assert (
        "for a record of orders-1; the arriving records take 36.0 % of one consumer's time" in text
    )


def test_next_step_during_a_back_off_is_to_wait(week: str, week_engine: Engine) -> None:
    """Commands and pages show that the group is in back-off, until when, and the reason."""
    at = datetime.now(UTC)
    worse = Regression("it is 14 min later", np.zeros(6, np.int32))
    assert record_regression(week_engine, "orders", 2, worse, automatic=True)
    with psycopg.connect(week) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "UPDATE fairlead_raw.group_diagnosis SET since = now(), last_seen = now()"
            " WHERE group_id = 'orders' AND until IS NULL"
        )
    lines = run(week, "why", "orders").stdout.splitlines()
    assert lines[-2].startswith("  group orders is in back-off until ")
    assert lines[-2].endswith(" UTC: version 2 caused a regression: it is 14 min later")
    assert lines[-1] == "  next: wait: back-off"
    assert "wait: back-off" in run(week, "groups").stdout
    for page in (groups_page(week_engine, now=at), group_page(week_engine, "orders", now=at)):
        assert "No plan changes group orders until " in page
        assert "wait: back-off" in page


def test_approval_of_another_hash_is_refused(week: str) -> None:
    """Approval requires the plan's hash and, without a terminal, `--yes`."""
    assert run(week, *APPROVE).exit_code == 2
    refused = run(week, *APPROVE, "--yes", "--sha256", "0" * 64)
    assert isinstance(refused.exception, TamperedPlanError)
    assert document(week, *APPROVE, "--yes")["state"] == "approved"


def test_impossible_rollback_is_refused_without_a_question(week: str) -> None:
    """A rollback to the published version fails at once, even without `--yes` and without Kafka."""
    result = run(week, "plans", "rollback", "orders", "2", "--reason", "x")
    assert (result.exit_code, result.output) == (1, "")
    error = "group orders: version 2 is already published; `fairlead plans withdraw orders`"
    assert str(result.exception).startswith(error)


def test_errors_have_the_reason(week: str, services: Any) -> None:
    """Each kind of mistake, such as an unknown group, raises an error of a separate class."""
    for arguments, error in (
        (("plans", "show", "nonsense"), GroupError),
        (("plans", "diff", "orders", "1", "9"), PlanStateError),
        (("plans", "publish", "orders"), PlanStateError),
        (("plans", "withdraw", "billing", "--reason", "x", "--yes"), PlanStateError),
    ):
        result = run(week, *arguments)
        assert (result.exit_code, type(result.exception)) == (1, error)
    empty = run(services.postgres_url, "groups")
    assert isinstance(empty.exception, ConfigurationError)
    assert run(week, "plans", "list", "--state", "nonsense").exit_code == 2
    assert run(week, "plans", "show", "orders", f"{2**31}").exit_code == 2
    assert run(week, "plans", "list", "\udcff").exit_code == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fairlead lag o", ["orders"]),
        ("fairlead plans list --state s", ["sending", "superseded", "stale"]),
    ],
)
def test_shell_completes_groups_and_states(week: str, typed: str, offered: list[str]) -> None:
    """Bash completion of the installed command offers group names and states."""
    words = typed.split(" ")
    variables = {
        "FAIRLEAD_POSTGRES__URL": week,
        "_FAIRLEAD_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }

    def complete() -> bool:
        done = ended(FAIRLEAD, env={**os.environ, **variables})
        assert done.stderr == ""
        return done.stdout.split() == offered

    eventually(complete, f"{offered} are offered")  # nothing if the database needs two seconds


def test_freeze_is_shown_until_it_ends(week: str) -> None:
    """`groups` shows a freeze of one group or all, with its reason and the command that ends it."""
    assert "name one group, or give --all" in run(week, "freeze", "--reason", "why", "--yes").stderr
    both = run(week, "freeze", "orders", "--all", "--reason", "why", "--yes")
    assert "name one group, or give --all" in both.stderr
    assert "there is no terminal" in run(week, "freeze", "orders", "--reason", "why").stderr
    for scope in ("orders", "--all"):
        frozen = run(week, "freeze", scope, "--reason", "incident 4711", "--yes")
        assert frozen.exit_code == 0
        assert "No new plan is sent" in frozen.stdout
        text = " ".join(run(week, "groups").output.split())
        assert "incident 4711. No new plan is sent until `fairlead unfreeze " in text
        assert f" {scope}" in text.partition("`fairlead unfreeze")[2]
        assert document(week, "history", "orders", "--limit", "1")[0]["event"] == "freeze"
        released = run(week, "unfreeze", scope, "--reason", "over", "--yes", "--json")
        assert json.loads(released.stdout)["frozen"] is False
        assert "No new plan" not in run(week, "groups").output
    assert isinstance(
        run(week, "unfreeze", "--all", "--reason", "x", "--yes").exception, PlanStateError
    )

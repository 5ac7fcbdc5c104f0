"""The review page of a plan: its figures, its risks, and commands to copy."""

import html
import re
import subprocess
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner, Result

from fairlead.common.visible import visible
from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.domain.policy import Approval, Policy
from fairlead.errors import GroupError, PlanStateError
from fairlead.store.history_queries import read_candidates
from fairlead.store.monitoring import read_all_groups
from fairlead.store.plans import PlanStore
from fairlead.surfaces.cli import app
from fairlead.surfaces.review import review_page
from fairlead.wire.document import MemberShare
from tests.docs.scenario import at
from tests.fixtures.plans import make_draft, make_metrics
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

NOON = at(3, 12)
HOSTILE = "a'\"\\$(x)<script>alert(1)</script>&-\x03\N{RIGHT-TO-LEFT OVERRIDE}"


class Page(HTMLParser):
    """A parsed page: its tags, link targets, table rows and text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._cell = False
        self.feed(source)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the tag and its link target; start a new row or cell."""
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        """End a table cell."""
        if tag in {"td", "th"}:
            self._cell = False

    def handle_data(self, data: str) -> None:
        """Add the text to the page's text and, within a cell, to the cell."""
        self.text += f" {data}"
        if self._cell:
            self.rows[-1][-1] += data


def change_protected_data(url: str, statement: str) -> None:
    """Run a statement as a superuser, without the triggers that protect the data."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("ALTER TABLE fairlead_raw.plan DROP CONSTRAINT plan_sha256_check")
        connection.execute(statement.encode())


def run(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"FAIRLEAD_POSTGRES__URL": url})


def codes(page: str) -> list[str]:
    """Return the commands and SQL on the page that users can copy."""
    return [html.unescape(code) for code in re.findall("<pre><code>(.*?)</code>", page, re.DOTALL)]


def test_a_plan_is_explained(week_engine: Engine) -> None:
    """A review shows consumers before and after, moves with reasons, candidates and risks."""
    page = Page(review_page(week_engine, "billing", 1, now=NOON))
    assert "13,680 → 7,920" in page.text
    assert ["billing-1", "13,680", "5,760", "2", "1"] in page.rows
    assert ["billing-2", "0", "7,920", "0", "1"] in page.rows
    (why,) = (row[4] for row in page.rows if row[:2] == ["billing-0", "7,920"])
    assert why.startswith("relieves billing-1")
    assert {"lag-aware", "sticky", "sticky-lag-aware"} <= {row[0] for row in page.rows}
    assert "2 partitions are in DATA_LOSS (billing-0, billing-1)" in page.text
    assert "read 3 h ago" in page.text


def test_rack_traffic_is_shown_with_each_plan(week: str, week_engine: Engine) -> None:
    """Pages, commands and SQL show cross-rack traffic and its cost, before and after the plan."""
    before, after = ({"rack_gb_per_day": gb, "rack_cost_per_day": gb / 50} for gb in (12.5, 1.0))
    record_decision(
        PlanStore(week_engine),
        make_draft(
            group="clicks",
            snapshot_at=datetime.now(UTC),
            observed=make_metrics(**before),
            predicted=make_metrics(**after),
            candidates=(SnapshotCandidate("sticky", make_metrics(**after)),),
        ),
    )
    page = Page(review_page(week_engine, "clicks"))
    assert "Cross-rack traffic a day 12.5 GB → 1.00 GB" in page.text
    assert "costs 0.25 → 0.02" in page.text
    done = run(week, "plans", "show", "clicks").stdout
    line = "racks     12.5 GB a day from other racks, predicted 1.00 GB; 0.25 a day, predicted 0.02"
    assert line in done
    (candidate,) = read_candidates(week_engine, "clicks", "s1")
    assert candidate.metrics is not None
    assert {name: candidate.metrics[name] for name in after} == after
    measured = read_all_groups(week_engine)["balance"]
    by_group = {row["group_id"]: row["rack_bytes_per_day"] for row in measured}
    assert by_group == {"clicks": 12.5e9}


def test_page_loads_no_files_and_runs_no_scripts(week_engine: Engine) -> None:
    """The page refers to no scripts, style sheets or images; its only links are to Dagster."""
    source = review_page(week_engine, "billing", now=NOON, dagster_url="http://dagster:3000")
    page = Page(source)
    outside = [address for address in page.addresses if not address.startswith("#")]
    assert [link.partition("/playground")[0] for link in outside] == [
        "http://dagster:3000/assets/assignment_plan?view=partitions&partition=billing",
        "http://dagster:3000/locations/fairlead/jobs/approve",
        "http://dagster:3000/locations/fairlead/jobs/reject",
    ]
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert "url(" not in source
    assert "@import" not in source
    assert "<img" not in source
    assert "http" not in review_page(week_engine, "billing", now=NOON)


def test_approval_on_the_page_can_be_copied(week: str, week_engine: Engine) -> None:
    """If a user runs the page's SQL, the plan is approved; the page then offers no approval."""
    page = review_page(week_engine, "billing", now=NOON)
    (statement,) = [code for code in codes(page) if "approve_plan" in code]
    with psycopg.connect(week) as connection:
        connection.execute(statement.encode())
    assert PlanStore(week_engine).get("billing", 1).state == "approved"
    after = review_page(week_engine, "billing", now=NOON)
    assert "approve_plan" not in after
    assert "<h2>Decide" not in after


def test_names_with_markup_are_text(week: str, week_engine: Engine) -> None:
    """HTML in names and reasons is shown as text; the page's commands and SQL quote such names."""
    share = MemberShare(("t0",), {"t0": np.arange(3, dtype=np.int32)})
    record_decision(
        PlanStore(week_engine),
        make_draft(group=HOSTILE, reason="<b>why</b>", members={HOSTILE: share}),
    )
    page = review_page(week_engine, HOSTILE, now=NOON)
    assert "script" not in Page(page).tags
    assert visible(HOSTILE) in [row[0] for row in Page(page).rows]
    assert "<b>why" not in page
    assert all(code.isprintable() for code in codes(page))
    (statement,) = [code for code in codes(page) if "reject_plan" in code]
    with psycopg.connect(week) as connection:
        connection.execute(statement.encode())
        connection.rollback()
    (command,) = [code for code in codes(page) if code.startswith("fairlead plans approve")]
    words = subprocess.check_output(["/bin/bash", "-c", f"printf '%s\\0' {command}"], text=True)
    assert run(week, *words.split("\0")[1:-1], "--yes").exit_code == 0
    assert "your reason" in review_page(week_engine, HOSTILE, now=NOON)


def test_page_of_a_large_plan_has_its_largest_moves_and_risks(week_engine: Engine) -> None:
    """Of 600 moves, the page shows the 500 with the most lag, and the command that lists all.

    The page shows two risks: a consumer loses all its partitions, and a topic's partitions are
    spread less evenly over consumers. The page also shows that four eyes are required.
    """
    every = np.arange(600, dtype=np.int32)
    moves = {"topic": ["t0"] * 600, "partition": every, "weight": every.astype(float)}
    members = {"new": MemberShare(("t0",), {"t0": every}), "old": MemberShare(("t0",), {})}
    record_decision(
        PlanStore(week_engine),
        make_draft(
            group="wide",
            members=members,
            partition_counts={"t0": 600},
            weights={"t0": every.astype(float)},
            moves=pa.table(moves | {"previous_member": ["old"] * 600, "member": ["new"] * 600}),
            observed=make_metrics(topic_spread=1.25),
            predicted=make_metrics(moved=600, lag_max=179_700, topic_spread=3.0),
            four_eyes="database",
        ),
    )
    source = review_page(week_engine, "wide", now=NOON, dagster_url="http://dagster:3000")
    page = Page(source)
    assert "600 partitions, most lag first; 500 are shown" in page.text
    partitions = [row[0] for row in page.rows if row[0].startswith("t0-")]
    assert (len(partitions), partitions[0]) == (500, "t0-599")
    assert "fairlead plans show wide 1 --json" in codes(source)
    assert "600 of 600 partitions (100.0 %) change their consumer" in page.text
    assert "1 consumer would have no partitions: old." in page.text
    assert "Worst topic 1.25 x \N{RIGHTWARDS ARROW} 3.00 x" in page.text
    assert "One consumer would have 3.00 x its even share of a topic" in page.text
    assert "a database user who neither proposed the plan nor is a planner" in page.text
    assert "jobs/reject" in source
    assert "jobs/approve" not in source


def test_page_reports_a_changed_document(week: str, week_engine: Engine) -> None:
    """If the stored document was changed, the page warns, shows no plan and offers no approval."""
    assert "Verified for this page" in Page(review_page(week_engine, "billing", now=NOON)).text
    change_protected_data(week, "UPDATE fairlead_raw.plan SET document = document || ' '")
    page = review_page(week_engine, "billing", now=NOON)
    assert "Do not approve this plan" in page
    assert "Verified for this page" not in Page(page).text
    assert "approve_plan" not in page
    assert 'id="consumers"' not in page


def test_policy_and_expiry_are_current(week: str, week_engine: Engine) -> None:
    """The page applies the present policy, and offers no approval of an expired plan."""
    policies = [Policy(approval=Approval(automatic=True))]
    assert "partitions are in DATA_LOSS" in review_page(
        week_engine, "billing", policies=policies, now=NOON
    )
    change_protected_data(
        week, f"UPDATE fairlead_raw.plan SET expires_at = '{NOON - timedelta(hours=2)}'"
    )
    page = review_page(week_engine, "billing", policies=policies, now=NOON)
    assert "expired 2 h ago" in page
    assert "approve_plan" not in page
    assert "reject_plan" in page


def test_every_state_has_a_page(week_engine: Engine) -> None:
    """A plan has a review page in every state; an unknown group or version is an error."""
    texts = [Page(review_page(week_engine, "orders", version)).text for version in (1, 2, 3)]
    assert "gives 2 partitions without an owner one" in texts[0]
    assert (
        "Most loaded consumer now 18,251 records, measured" in texts[1]
    )  # as measured in the last sample
    assert "fairlead.plans-0, offset 42" in texts[1]
    assert "not before the release" in texts[2]
    for group, version, error in (("nonsense", None, GroupError), ("orders", 9, PlanStateError)):
        with pytest.raises(error):
            review_page(week_engine, group, version)


def test_the_command_writes_a_file(
    week: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--output` names the file to which the page is written; `-` prints the page.

    Without `--output`, the file's name contains group and version.
    """
    monkeypatch.chdir(tmp_path)
    review = ("plans", "review")
    assert run(week, *review, "orders").stdout == "review-orders-3.html\n"
    assert "orders</bdi>, version 3" in (tmp_path / "review-orders-3.html").read_text()
    assert run(week, *review, "orders", "2", "--output", "two.html").exit_code == 0
    assert "version 2" in (tmp_path / "two.html").read_text()
    page = run(week, *review, "orders", "1", "--output", "-").stdout
    assert page.startswith("<!doctype html>")
    refused = run(week, *review, "orders", "1", "--output", "no/such/folder.html")
    assert (refused.exit_code, "No such file or directory" in refused.output) == (2, True)
    unknown = run(week, *review, "nonsense")
    assert (unknown.exit_code, type(unknown.exception)) == (1, GroupError)


def test_untested_load_is_the_first_risk(week_engine: Engine, week: str) -> None:
    """The first risk is a load above the highest rate that the group's consumers ever processed."""
    assert "Untested load" not in review_page(week_engine, "orders", 3, now=NOON)
    less = "regexp_replace(analysed::text, '\"seen\": [0-9.]+', '\"seen\": 80', 'g')::jsonb"
    change_protected_data(
        week, f"UPDATE fairlead_raw.plan SET analysed = {less} WHERE analysed IS NOT NULL"
    )
    assert "Untested load" not in review_page(
        week_engine, "orders", 3, now=NOON
    )  # no risk, because the capacity, 100/s, was measured
    guess = "replace(analysed::text, '\"measured\": true', '\"measured\": false')::jsonb"
    with psycopg.connect(week) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(f"UPDATE fairlead_raw.plan SET analysed = {guess}".encode())
    page = review_page(week_engine, "orders", 3, now=NOON)
    risks = re.findall(r"<li[^>]*><b>([^<]*)\.</b>", page)
    assert risks[0] == "Untested load"
    more = "orders-1 would get more than any consumer of the group has ever processed: up to 1.19"
    assert more in Page(page).text


def test_figures_are_those_of_the_analysis(week: str, week_engine: Engine) -> None:
    """Speeds, costs and lag that are measured later do not change the figures of a plan."""
    before = review_page(week_engine, "orders", 3, now=NOON)
    with psycopg.connect(week) as connection:
        connection.execute("UPDATE fairlead_raw.member_capacity SET records_per_s = 7")
        connection.execute("UPDATE fairlead_raw.partition_lag SET arrival_rate = 7")
        connection.execute("UPDATE fairlead_raw.group_diagnosis SET costs = '{}'")
    assert review_page(week_engine, "orders", 3, now=NOON) == before
    assert re.search(r"; analysed [^.]* ago", before)
    policies = [Policy(approval=Approval(automatic=True, forbidden_statuses=("STALL",)))]
    stall = "jsonb_set(analysed, '{statuses}', '[\"STALL\"]')"
    change_protected_data(week, f"UPDATE fairlead_raw.plan SET analysed = {stall}")
    assert "partitions are in STALL" in review_page(
        week_engine, "billing", policies=policies, now=NOON
    )

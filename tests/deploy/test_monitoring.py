"""The Grafana dashboard and the alerts use only metrics, labels and label values that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import promql_parser
import psycopg
import pytest
import yaml
from markdown.extensions.toc import slugify
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from sqlalchemy import Engine

from fairlead.domain.regression import Regression
from fairlead.store.freezes import freeze_plans
from fairlead.store.plans import PlanStore
from fairlead.store.regressions import record_regression
from fairlead.surfaces.web.metrics import build_registry
from tests.fairlead.surfaces.web.week import end_now

pytestmark = pytest.mark.postgres

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/fairlead.json").read_text())
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
LINKS = ("page", "runbook_url")
LINK = re.compile(
    r'\{\{ with query "fairlead_web_info" \}\}\{\{ \. \| first \| label "(?P<label>\w+)" \}\}'
    r"\{\{ end \}\}(?P<path>/.*)"
)
#: Variable of the dashboard -> its value if the user chooses all groups.
VARIABLES = {"$group": ".*"}


def panel_queries() -> Iterator[tuple[str, str]]:
    """Yield every query in the dashboard: the title of its panel, and the PromQL expression."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            yield panel["title"], expression


QUERIES = [*panel_queries(), *((rule["alert"], rule["expr"]) for rule in RULES)]


@pytest.fixture
def exposed(week: str, week_engine: Engine) -> list[Metric]:
    """Return all metrics of Fairlead, and the metric `up`, which Prometheus adds."""
    end_now(week)
    approve_for_another_group(week)
    freeze_plans(week_engine, "orders", reason="incident")
    published = next(plan for plan in PlanStore(week_engine).in_state("published"))
    found = Regression("later than before", np.zeros(1, np.int32), sure=True)
    assert record_regression(
        week_engine, published.group, published.version, found, automatic=False
    )
    metrics = list(build_registry(week_engine).collect())
    up = GaugeMetricFamily("up", "Prometheus's own.", labels=["job", "instance"])
    up.add_metric(["fairlead", "localhost:9464"], 1)
    return [*metrics, up]


def approve_for_another_group(url: str) -> None:
    """Insert reported work, a third group's approved plan, and regressions of old versions."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")  # disables triggers
        for statement in (
            (
                "UPDATE fairlead_raw.group_diagnosis SET reported = "
                """'{"partitions": {"t": {"0": [0.1, 0.2, 0.3]}}, "consumers": {"c": 0.5}}'"""
            ),
            "INSERT INTO fairlead_raw.consumer_group (group_id) VALUES ('invoices')",
            (
                "INSERT INTO fairlead_raw.plan"
                " (group_id, version, plan_id, state, assignor, reason, snapshot_id,"
                " snapshot_at, created_at, document, sha256)"
                " SELECT 'invoices', version, gen_random_uuid(), 'approved', assignor, reason,"
                " snapshot_id, snapshot_at, created_at, document, sha256"
                " FROM fairlead_raw.plan WHERE group_id = 'billing'"
            ),
            (
                "INSERT INTO fairlead_raw.plan_event (group_id, version, state, at, actor,"
                " database_user, reason, sha256, transaction_id)"
                " SELECT group_id, version, 'approved', now(), 'ada', 'ada', 'fine', sha256, 1"
                " FROM fairlead_raw.plan WHERE group_id = 'invoices'"
            ),
            (
                "INSERT INTO fairlead_raw.decision"
                " (group_id, snapshot_id, snapshot_at, outcome, reason, version)"
                " VALUES ('invoices', 's', now(), 'plan', 'better', 1)"
            ),
            (  # a regression (more lag after the plan) of each superseded version
                "INSERT INTO fairlead_raw.regression"
                " (group_id, version, at, evidence, automatic, back_off_until)"
                " SELECT group_id, version, now(), 'later', false, now()"
                " FROM fairlead_raw.plan_event WHERE state = 'superseded'"
            ),
        ):
            connection.execute(statement)


def test_every_query_has_a_metric(exposed: list[Metric]) -> None:
    """Each selector in a query of the dashboard or an alert matches an exposed metric."""
    found = [sample for metric in exposed for sample in metric.samples]
    missing = [
        (title, selector.prettify())
        for title, expression in QUERIES
        for selector in selectors(expression)
        if not any(matches(selector, sample.name, sample.labels) for sample in found)
    ]
    assert missing == []


def test_labels_of_queries_and_legends_exist(exposed: list[Metric]) -> None:
    """Labels in `by`, `on`, legends and annotations exist on all metrics of their query."""
    labels = {
        name: set(sample.labels)
        for metric in exposed
        for sample in metric.samples
        for name in (sample.name,)
    }
    names = [
        *(
            (target["expr"], target["legendFormat"])
            for panel in DASHBOARD["panels"]
            for target in panel["targets"]
        ),
        *((rule["expr"], " ".join(rule["annotations"].values())) for rule in RULES),
    ]
    wrong = []
    for expression, text in names:
        named = set(re.findall(r"\{\{ *(?:\$labels\.)?([a-z]+)(?: \| \w+)? *\}\}", text)) - {
            "else",
            "end",
        }
        named |= set(re.findall(r"\b(?:by|on) \(([a-z]+)\)", expression))
        for selector in selectors(expression):
            wrong += [(expression, label) for label in named - labels[selector.name]]
    assert wrong == []


def test_every_alert_links_to_a_page_and_a_runbook(exposed: list[Metric]) -> None:
    """Each alert has a link to a web page, and one to an existing heading of a runbook."""
    info = {
        label: value
        for metric in exposed
        for sample in metric.samples
        if sample.name == "fairlead_web_info"
        for label, value in sample.labels.items()
    }
    for rule in RULES:
        page, runbook = (LINK.fullmatch(rule["annotations"][name]) for name in LINKS)
        assert page is not None, rule["alert"]
        assert runbook is not None, rule["alert"]
        assert {page["label"], runbook["label"]} == {"url", "docs_url"} == info.keys()
        assert page["path"].partition("?")[0] in {"/", "/group", "/review"}
        name, _, anchor = runbook["path"].strip("/").partition(".html#")
        headings = re.findall(
            "^## (.+)$", (DEPLOY.parent / f"docs/{name}.md").read_text(), re.MULTILINE
        )
        assert anchor in {slugify(heading, "-") for heading in headings}, rule["alert"]


def test_page_lists_every_metric(exposed: list[Metric]) -> None:
    """docs/monitoring.md lists each metric with its labels, and each metric has a help text."""
    page = (DEPLOY.parent / "docs/monitoring.md").read_text()
    metrics = [
        (metric.name + {"counter": "_total", "info": "_info"}.get(metric.type, ""), metric)
        for metric in exposed
        if metric.name.startswith("fairlead")
    ]
    rows = [
        f"- `{name}`{': ' if labels_of(metric) else ''}{', '.join(sorted(labels_of(metric)))}\n"
        for name, metric in metrics
    ]
    assert [row for row in rows if row not in page] == []
    assert all(metric.documentation for _, metric in metrics)
    assert len(re.findall(r"\n- `fairlead_", page)) == len(rows)


def labels_of(metric: Metric) -> set[str]:
    return {label for sample in metric.samples for label in sample.labels}


def selectors(expression: str) -> list[Any]:
    """Return the vector selectors in a PromQL expression."""
    found: list[Any] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        if isinstance(node, promql_parser.MatrixSelector):
            found.append(node.vector_selector)

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def matches(selector: Any, name: str, labels: dict[str, str]) -> bool:
    """Return whether a selector selects a sample with this name and these labels."""

    def matched(matcher: Any) -> bool:
        value = labels.get(matcher.name, "")
        if matcher.op == promql_parser.MatchOp.Equal:
            return bool(value == matcher.value)
        assert matcher.op == promql_parser.MatchOp.Re
        return re.fullmatch(matcher.value, value) is not None

    return selector.name == name and all(map(matched, selector.matchers.matchers))

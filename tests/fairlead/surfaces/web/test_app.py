"""The pages and their errors, as a browser receives them."""

import re
from email.message import Message
from html import unescape
from urllib.error import HTTPError
from urllib.parse import parse_qs, urljoin, urlsplit
from urllib.request import Request, urlopen

import psycopg
import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from fairlead.store.freezes import freeze_plans, unfreeze_plans
from fairlead.surfaces.cli import app
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.postgres

#: A valid group name with characters that have a meaning in HTML, URLs, templates and metrics.
ODD = """</td><script>alert(1)</script>"'&?#%20 {{ 7 * 7 }}\\\né"""
REFUSED = [
    ("/review?group=nobody", 404, "group nobody: nothing is stored about it"),
    ("/review?group=orders&version=9", 404, "group orders has no version 9"),
    ("/review", 400, "The address needs the name of a group"),
    ("/review?group=%00", 400, "The address needs the name of a group"),
    ("/review?group=orders&version=two", 400, "version must be a whole number"),
    ("/review?group=orders&version=0", 400, "version must be a whole number"),
    ("/review?group=orders&version=99999999999", 400, "version must be a whole number"),
    ("/group?group=nobody", 404, "group nobody: nothing is stored about it"),
    ("/group", 400, "The address needs the name of a group"),
    ("/nowhere", 404, "Not Found"),
    ("/act/", 404, "Not Found"),  # not a redirect, which would use the request's Host header
]


def get(url: str) -> tuple[int, str, str]:
    """Return the status, content type and text of the answer."""
    try:
        with urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own address
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def get_as(host: str, url: str) -> tuple[int, Message]:
    """Send a request with this Host header; return the status and headers of the answer."""
    request = Request(url, headers={"Host": host})  # noqa: S310 - our own address
    try:
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return answer.status, answer.headers
    except HTTPError as error:
        with error:
            return error.code, error.headers


def test_names_may_have_any_characters(week: str, served: str) -> None:
    """A group name with markup is shown as text, and links contain the whole name."""
    with psycopg.connect(week) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in ("consumer_group", "decision", "plan", "plan_event"):
            connection.execute(
                f"UPDATE fairlead_raw.{table} SET group_id = %s"
                " WHERE group_id = 'billing'".encode(),
                (ODD,),
            )
    _, _, page = get(served)
    assert "<script>" not in page
    assert ODD in unescape(page)
    for to, query in (("group", {"group": [ODD]}), ("review", {"group": [ODD], "version": ["1"]})):
        links = [link for link in re.findall(rf'href="({to}[^"]*)"', page) if "alert" in link]
        found = [urljoin(served, unescape(link)) for link in links]
        assert [parse_qs(urlsplit(link).query) for link in found] == [query] * len(links) != []
        there = get(found[0])[2]
        assert "<script>" not in there
        assert ODD in unescape(there)
    assert (
        ODD.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        in get(f"{served}/metrics")[2]
    )


def test_freeze_is_shown_above_the_groups(week_engine: Engine, served: str) -> None:
    """Pages show who froze the groups and why; a metric has the time of the freeze."""
    assert "No new plan is sent" not in get(served)[2]
    freeze_plans(week_engine, None, reason="<b>incident</b>", actor="kim")
    freeze_plans(week_engine, "orders", reason="deploy", actor="ann")
    page, metrics = get(served)[2], get(f"{served}/metrics")[2]
    assert "No new plan is sent: all groups are frozen by kim since" in page
    assert "&lt;b&gt;incident" in page
    assert "No new plan is sent to orders" in page
    for path in ("group?group=orders", "review?group=orders"):
        own = get(f"{served}/{path}")[2]
        assert own.count("No new plan is sent") == 2, path
        assert "frozen by ann since" in own
    assert 'fairlead_freeze_timestamp_seconds{group=""} 1' in metrics
    assert 'fairlead_freeze_timestamp_seconds{group="orders"} 1' in metrics
    unfreeze_plans(week_engine, None, reason="over")
    unfreeze_plans(week_engine, "orders", reason="over")
    assert "fairlead_freeze_timestamp_seconds{" not in get(f"{served}/metrics")[2]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("orders", "orders --reason 'your reason'"),
        ("--all", "--reason 'your reason' -- --all"),
        ("o; reboot", "'o; reboot' --reason 'your reason'"),
    ],
)
def test_command_that_ends_a_freeze_can_be_copied(
    week: str, week_engine: Engine, served: str, group: str, words: str
) -> None:
    """The page and `fairlead groups` show the command, with the group name quoted for a shell."""
    with psycopg.connect(week) as connection:
        connection.execute(
            "INSERT INTO fairlead_raw.consumer_group VALUES (%s) ON CONFLICT DO NOTHING", (group,)
        )
    freeze_plans(week_engine, group, reason="deploy")
    command = f"fairlead unfreeze {words}"
    assert f"To unfreeze: <code>{command}</code>" in unescape(get(served)[2])
    result = CliRunner().invoke(app, ["groups"], env={"FAIRLEAD_POSTGRES__URL": week})
    assert f"until `{command}`" in " ".join(result.output.split())


def test_errors_are_plain_text_with_their_status(served: str) -> None:
    """An error page has its HTTP status and plain text that begins with the reason."""
    for path, status, message in REFUSED:
        answered, content_type, text = get(f"{served}{path}")
        assert (answered, content_type) == (status, "text/plain; charset=utf-8"), path
        assert text.startswith(message)


def test_groups_are_filtered(served: str) -> None:
    """Groups can be filtered by diagnosis, by policy, and by whether their plan is followed."""
    for query, listed in (
        ("diagnosis=overloaded", ["orders"]),
        ("diagnosis=stuck+partition&policy=*", ["billing"]),
        ("follows=no+plan", ["billing"]),
        ("policy=other", []),
        ("", ["billing", "orders"]),
    ):
        page = get(f"{served}/?{query}")[2]
        assert re.findall(r'<a href="group\?group=(\w+)"', page) == listed, query


def test_group_has_its_own_page(served: str) -> None:
    """A group's page shows earlier diagnoses, charts, times per record, and a partition's moves."""
    _, _, page = get(f"{served}/group?group=orders&partition=orders-1")
    text = unescape(page)
    waits = get(f"{served}/group?group=billing")[2]
    assert re.search(r"without a new plan; <a [^>]+>version 1</a>: at [-\d: ]+ UTC", waits)
    assert "before: healthy" in text
    assert "orders-2 is at 115% of its capacity" in text
    assert page.count('role="img"') == 11
    assert "usual kind" not in text
    takes = "<bdi>orders-3</bdi> takes 30 ms for a record of <bdi>orders-1</bdi>"
    assert f"{takes}; the arriving records take 36.0 % of one consumer's time." in text
    work = text[text.index('<section id="work">') : text.index('<section id="time">')]
    assert re.search(r"orders-1</bdi></a></th>.*30 ms</td>.*36.0 %</td></tr>", work)
    assert re.search(r"orders-2</bdi></th>.*80.0 %</td></tr>", work)
    assert "The time per record is unknown" in waits
    moves = text[text.index("Versions that move") :]
    assert moves.index('version=2">') < moves.index("Changes of its owner that samples show")
    assert "<bdi>orders-1</bdi></a>: <bdi>orders-1</bdi> → <bdi>orders-3</bdi>" in text


def test_group_without_a_sample_has_a_page_and_a_row(week: str, served: str) -> None:
    """If a group has no samples, its page and its row in the list state this."""
    with psycopg.connect(week) as connection:
        connection.execute("INSERT INTO fairlead_raw.consumer_group VALUES ('found')")
    assert "0 of 6 samples" in get(served)[2]
    page = get(f"{served}/group?group=found")[2]
    for text in ("0 of 6 samples", "No sample of this group is stored yet", "There is no plan yet"):
        assert text in page


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("evil.example:9464", 421),
        ("fairlead.example", 200),
        ("fairlead.example:443", 200),
        ("web:9464", 200),
        ("localhost", 200),
        ("[::1]:9464", 200),
        ("10.0.0.7", 200),
        ("[::", 400),
    ],
)
@pytest.mark.parametrize("path", ["/", "/metrics"])
def test_unknown_host_is_refused(served: str, path: str, host: str, status: int) -> None:
    """Unknown names in the Host header are refused, so that DNS rebinding cannot reveal plans."""
    answered, headers = get_as(host, f"{served}{path}")
    assert answered == status
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/group", "/review", "/act", "/acted", "/nowhere"])
def test_unknown_host_is_refused_on_every_path(served: str, path: str) -> None:
    """Only `/health`, which load balancers check, answers under any host name."""
    assert get_as("evil.example", f"{served}{path}")[0] == 421
    assert get_as("evil.example", f"{served}/health")[0] == 200

"""Actions by a browser behind a proxy: the confirmation page, its form, and the result."""

import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from urllib.parse import urlencode

import psycopg
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fairlead.store.acts import answer, asked
from fairlead.store.freezes import read_freezes
from fairlead.surfaces.web.forms import require_own_page
from tests.fairlead.surfaces.web.conftest import KIM, Desks, as_person, propose
from tests.fairlead.surfaces.web.proxies import post
from tests.stored import a_session_waits
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.postgres


def form_of(page: str) -> dict[str, str]:
    """Return the hidden fields of the form on a page."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    return {name: unescape(value) for name, value in found}


def walk(desks: Desks, query: str, who: str = KIM) -> tuple[str, str]:
    """Get the confirmation page, send its form, and get the result page; return both pages."""
    before = desks.get(f"/act?{query}", who)
    assert before.status == 200
    fields = form_of(before.text) | {"reason": "agreed with the team"}
    sent = post(desks.address, fields, as_person(who))
    assert (sent.status, sent.text) == (303, "")
    after = desks.get(f"/{sent.headers['location']}", who)
    assert after.status == 200
    return unescape(before.text), unescape(after.text)


def test_a_plan_is_approved_on_its_page(desks: Desks) -> None:
    """The review links to a page with version, hash, moves, and a form that approves the plan."""
    review = desks.get("/review?group=orders").text
    assert f"You are <b><bdi>{KIM}</bdi></b>" in review
    link = re.search(r'href="act\?(do=approve[^"]*)"', review)
    assert link is not None
    before, after = walk(desks, unescape(link[1]))
    for text in ("version 1 of orders?", desks.plans["orders"].sha256, "Age of the snapshot"):
        assert text in before
    assert re.search(r"<bdi>t0-1</bdi>.*orders-1.*orders-2", before)
    assert f"{KIM} requested to approve (orders, version 1): agreed with the team." in after
    assert "Version 1 is now approved." in after
    assert desks.state("orders") == "approved"


def test_waiting_steps_delay_neither_pages_nor_a_freeze(desks: Desks) -> None:
    """While a database session locks a group, only actions on that group wait."""
    with ThreadPoolExecutor(8) as pool:
        with psycopg.connect(desks.url) as connection:
            connection.execute("SELECT fairlead_raw.lock_group('orders')")
            waiting = [
                pool.submit(desks.post, "reject", "orders", f"{number}@example.com")
                for number in range(6)
            ]
            eventually(lambda: a_session_waits(desks.url), "the steps wait")
            assert not any(answer.done() for answer in waiting)
            assert pool.submit(desks.get, "/").result(PATIENCE_S).status == 200
            assert pool.submit(desks.post, "freeze").result(PATIENCE_S).status == 303
            connection.rollback()
        assert sorted(answer.result(PATIENCE_S).status for answer in waiting) == [303] + [409] * 5


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://fairlead.example:443", "https://fairlead.example"),
        ("http://localhost:80/pages", "http://localhost"),
        ("https://Fairlead.example:8443", "https://fairlead.example:8443"),
    ],
)
def test_own_pages_are_recognised_by_the_address_of_browsers(url: str, origin: str) -> None:
    """Origin headers match `web.url` although browsers omit the path and the default port."""
    headers = [(b"origin", origin.encode()), (b"sec-fetch-site", b"same-origin")]
    require_own_page(Request({"type": "http", "headers": headers}), url)
    headers[0] = (b"origin", f"{origin}0".encode())
    with pytest.raises(HTTPException, match="was not sent by a page of"):
        require_own_page(Request({"type": "http", "headers": headers}), url)


@pytest.mark.parametrize("group", ["orders", None])
def test_group_is_frozen_and_unfrozen(desks: Desks, group: str | None) -> None:
    """Pages show who froze a group or all groups, and can end freezes.

    If a plan requires a second database user, the pages cannot end the freeze of all groups.
    """
    named = {} if group is None else {"group": group}
    desks.post("approve", "orders")
    before, after = walk(desks, urlencode({"do": "freeze"} | named))
    assert "A rollback is still" in before
    assert "frozen by kim@example.com since" in after
    overview = desks.get("/group?group=orders").text
    assert "No new plan is sent" in overview
    if group is None:
        number = read_freezes(desks.planner.engine)[0].number
        refused = desks.post("unfreeze", version=number)
        assert refused.status == 409  # `billing` requires a second database user
        return
    before, after = walk(desks, urlencode({"do": "unfreeze"} | named))
    assert "Approved plans are sent within 30 s: orders version 1." in before
    assert "Not frozen now: group orders." in after


def test_read_only_database_is_reported(desks: Desks) -> None:
    """If the database is read-only, pages are shown, and the answer to a form has the reason."""
    writable = f"{desks.url}&options=-c%20default_transaction_read_only%3Doff"
    setting = "EXECUTE format('ALTER DATABASE %I {}', current_database())"
    with psycopg.connect(writable, autocommit=True) as connection:

        def alter(what: str) -> None:
            connection.execute(f"DO $$ BEGIN {setting.format(what)}; END $$".encode())
            connection.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'fairlead'"
            )

        alter("SET default_transaction_read_only = on")
        refused = desks.post("freeze")
        assert (refused.status, desks.get("/").status) == (503, 200)
        assert "accepts no changes (cannot execute" in refused.text
        alter("RESET default_transaction_read_only")
    assert desks.post("freeze").status == 303


def test_two_people_agree(desks: Desks) -> None:
    """A plan that needs two people is not approved by two spellings of one name."""
    query = "do=approve&group=payments&version=1"
    before, after = walk(desks, query)
    assert "This step takes two people." in before
    assert "another person must request the same" in after
    before, _ = walk(desks, query, "KIM@EXAMPLE.COM")
    assert "kim@example.com has already requested it" in before
    assert desks.state("payments") == "proposed"
    _, after = walk(desks, query, "lee@example.com")
    assert desks.state("payments") == "approved"
    assert "Version 1 is now approved." in after


def test_pages_cannot_approve_under_four_eyes_of_the_database(desks: Desks) -> None:
    """Pages neither offer nor accept an approval that needs a second database user."""
    review = desks.get("/review?group=billing").text
    assert "requires a second database user" in review
    assert "act?do=approve" not in review
    assert "act?do=reject" in review
    refused = desks.post("approve", "billing")
    assert refused.status == 409
    assert "needs a second database user: take it in SQL or at the command line" in refused.text
    assert desks.state("billing") == "proposed"


@pytest.mark.parametrize(("verb", "version"), [("withdraw", 2), ("rollback", 1)])
def test_the_planner_answers_steps_with_kafka(desks: Desks, verb: str, version: int) -> None:
    """Withdrawals and rollbacks wait for the planner; the page then shows the planner's answer."""
    _, after = walk(desks, f"do={verb}&group=stock&version={version}")
    assert "within 30 s" in after
    (act,) = asked(desks.planner.engine)
    assert (act.act, act.group, act.version, act.actor) == (verb, "stock", version, KIM)
    answer(desks.planner.engine, act.id, "done", "it is so")
    assert ": it is so." in desks.get(f"/acted?id={act.id}").text


def test_approval_of_an_outdated_page_is_refused(desks: Desks) -> None:
    """A page's form approves only the version shown: after a newer proposal, the form fails."""
    page = desks.get("/act?do=approve&group=orders&version=1")
    propose(desks.planner, "orders", "s2")
    refused = post(desks.address, form_of(page.text) | {"reason": "ok"}, as_person(KIM))
    assert refused.status == 409
    assert "version 1 is expired: too late to approve it" in refused.text
    again = desks.get("/act?do=approve&group=orders&version=1")
    assert again.status == 409
    assert "version 1 is expired, not proposed: version 2 is proposed" in again.text
    assert desks.state("orders", 2) == "proposed"


def test_pages_are_read_only_without_a_proof(desks: Desks) -> None:
    """Without proof of identity, pages show the reason and commands, but no forms."""
    for path in ("/", "/group?group=stock", "/review?group=stock"):
        page = desks.get(path, None)
        assert page.status == 200
        assert "This page is read-only: the request has no header X-Fairlead-Secret" in page.text
        assert "act?do=" not in page.text
    assert "fairlead plans withdraw stock --reason" in page.text
    before = desks.get("/act?do=withdraw&group=stock&version=2", None)
    assert "<form" not in before.text
    assert "Read-only:" in before.text

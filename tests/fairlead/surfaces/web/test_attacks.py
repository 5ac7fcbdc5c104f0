"""Attacks on web actions must leave every row of every table unchanged.

Belongs here: forged, replayed, smuggled and cross-site requests, invalid tokens, and SQL with the
web server's login. `docs/trust.md` describes the attacks and gives their number.
"""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import psycopg
import pytest
from psycopg import sql

from fairlead.settings import Settings, WebSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.freezes import read_freezes
from fairlead.surfaces.web import build_app
from tests.fairlead.surfaces.web.conftest import KIM, SECRET, Desks, as_person
from tests.fairlead.surfaces.web.proxies import (
    AUDIENCE,
    FORM,
    ISSUER,
    PUBLIC,
    Issuer,
    Pairs,
    post,
    publishing,
    send,
)
from tests.fairlead.surfaces.web.test_identity import BAD_HEADERS, BAD_TOKENS, FAILING, ONE
from tests.logins import logins
from tests.serving import serving
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.postgres

TRUST = Path(__file__).parents[4] / "docs" / "trust.md"
TABLES = """
    SELECT relname FROM pg_class WHERE relnamespace = 'fairlead_raw'::regnamespace
        AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname
"""


class Rows:
    """A watcher that detects changes in any row of any table.

    Parameters
    ----------
    url
        URL of the database, as a superuser.
    """

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        tables = [name for (name,) in self._connection.execute(TABLES)]
        query = sql.SQL(
            "SELECT {name}, md5(string_agg(t::text, '' ORDER BY t::text)) FROM {table} t"
        )
        self._query = sql.SQL(" UNION ALL ").join(
            query.format(name=name, table=sql.Identifier("fairlead_raw", name)) for name in tables
        )
        self._before = self._now()

    def _now(self) -> dict[str, str]:
        return dict(self._connection.execute(self._query).fetchall())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def changed(self) -> list[str]:
        """Return the tables that were written to since the last call."""
        before, self._before = self._before, self._now()
        return [name for name, rows in self._before.items() if rows != before[name]]


@pytest.fixture
def rows(desks: Desks) -> Iterator[Rows]:
    """Return a watcher of all rows."""
    with closing(Rows(desks.url)) as rows:
        yield rows


@dataclass(frozen=True)
class Forged:
    """A valid request to approve a plan, changed as an attacker would change it.

    Parameters
    ----------
    headers
        Headers to add; they replace headers of the valid request that have the same names.
    without
        Headers to leave out.
    fields
        Form fields to replace; None removes the field.
    body
        Body to send instead of the form.
    method, path
        Method and path of the request.
    """

    headers: Pairs = ()
    without: tuple[str, ...] = ()
    fields: tuple[tuple[str, str | None], ...] = ()
    body: bytes | None = None
    method: str = "POST"
    path: str = "/act"

    def send(self, desks: Desks) -> int:
        """Send the request and return the status."""
        own = [
            ("Origin", PUBLIC),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", FORM),
            *as_person(KIM),
        ]
        replaced = {name.lower() for name, _ in self.headers} | {*map(str.lower, self.without)}
        headers = [(name, value) for name, value in own if name.lower() not in replaced]
        plan = desks.plans["orders"]
        fields: dict[str, Any] = {"do": "approve", "group": "orders", "version": plan.version}
        fields |= {"sha256": plan.sha256, "id": uuid.uuid4(), "reason": "forged"}
        sent = {name: value for name, value in (fields | dict(self.fields)).items() if value}
        body = urlencode(sent).encode() if self.body is None else self.body
        path = f"{self.path}?{urlencode(sent)}" if self.method != "POST" else self.path
        to = desks.address
        return send(to, self.method, path, [*headers, *self.headers], body).status


APPROVE = "do=approve&group=orders&version=1&reason=forged"
#: Requests that another site could send from the browser of an authorised person.
CROSS_SITE = {
    "another origin": Forged([("Origin", "https://evil.example")]),
    "another scheme": Forged([("Origin", "http://fairlead.example")]),
    "another port": Forged([("Origin", "https://fairlead.example:8443")]),
    "a subdomain": Forged([("Origin", "https://x.fairlead.example")]),
    "a longer name": Forged([("Origin", "https://fairlead.example.evil.example")]),
    "a name before ours": Forged([("Origin", "https://fairlead.example@evil.example")]),
    "an opaque origin": Forged([("Origin", "null")]),
    "no origin": Forged(without=("Origin",)),
    "an empty origin": Forged([("Origin", "")]),
    "two origins": Forged([("Origin", PUBLIC), ("Origin", "https://evil.example")]),
    "a list of origins": Forged([("Origin", f"{PUBLIC}, https://evil.example")]),
    "an origin with a path": Forged([("Origin", f"{PUBLIC}/act")]),
    "cross-site by the browser": Forged([("Sec-Fetch-Site", "cross-site")]),
    "same-site by the browser": Forged([("Sec-Fetch-Site", "same-site")]),
    "typed by hand": Forged([("Sec-Fetch-Site", "none")]),
    "two sites": Forged([("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")]),
    "as plain text": Forged([("Content-Type", "text/plain")]),
    "as JSON": Forged([("Content-Type", "application/json")], body=b'{"do": "approve"}'),
    "as parts": Forged([("Content-Type", "multipart/form-data; boundary=x")]),
    "without a type": Forged(without=("Content-Type",)),
    "two types": Forged([("Content-Type", FORM), ("Content-Type", "text/plain")]),
    "by GET": Forged(method="GET"),
    "by HEAD": Forged(method="HEAD"),
    "by PUT": Forged(method="PUT"),
    "by DELETE": Forged(method="DELETE"),
    "by PATCH": Forged(method="PATCH"),
    "by GET that says POST": Forged([("X-HTTP-Method-Override", "POST")], method="GET"),
    "to the page after": Forged(path="/acted"),
    "to the review": Forged(path="/review"),
    "to the list": Forged(path="/"),
    "in the query": Forged(path=f"/act?{APPROVE}", body=b""),
    "to another host": Forged([("Host", "evil.example")]),
}
#: Malformed or contradictory forms, as only a hand-written client sends them.
MALFORMED = {
    "no body": Forged(body=b""),
    "too large": Forged(fields=(("reason", "x" * 20_000),)),
    "too long a reason": Forged(fields=(("reason", "x" * 501),)),
    "a field twice": Forged(body=f"{APPROVE}&do=reject".encode()),
    "a field that is none": Forged(fields=(("actor", "lee"),)),
    "a proof of one's own": Forged(fields=(("proof", "token 7"),)),
    "many fields": Forged(body=b"&".join(b"do=approve" for _ in range(1000))),
    "no text": Forged(body=b"\xff\xfe"),
    "no pairs": Forged(body=b"approve"),
    "a null in the group": Forged(fields=(("group", "orders\0"),)),
    "a null in the reason": Forged(fields=(("reason", "why\0"),)),
    "no form's id": Forged(fields=(("id", None),)),
    "an id that is none": Forged(fields=(("id", "1"),)),
    "no reason": Forged(fields=(("reason", None),)),
    "a reason of blanks": Forged(fields=(("reason", " \u200b\u00a0"),)),
    "no hash": Forged(fields=(("sha256", None),)),
    "another hash": Forged(fields=(("sha256", "0" * 64),)),
    "a part of the hash": Forged(fields=(("sha256", "0"),)),
    "no version": Forged(fields=(("version", None),)),
    "another version": Forged(fields=(("version", "2"),)),
    "a version that is none": Forged(fields=(("version", "1; DROP TABLE plan"),)),
    "no group": Forged(fields=(("group", None),)),
    "an empty group, which is not all": Forged(
        body=f"do=freeze&group=&reason=forged&id={uuid.uuid4()}".encode()
    ),
    "another group": Forged(fields=(("group", "stock"),)),
    "a group that is SQL": Forged(fields=(("group", "orders' OR true --"),)),
    "a step that is none": Forged(fields=(("do", "publish"),)),
    "a step in capitals": Forged(fields=(("do", "APPROVE"),)),
    "what the database is to see": Forged(fields=(("group", "billing"),)),
    "a rollback to what waits": Forged(fields=(("do", "rollback"),)),
    "a withdrawal of what waits": Forged(fields=(("do", "withdraw"),)),
    "a release of no freeze": Forged(fields=(("do", "unfreeze"), ("sha256", None))),
    "a freeze with a version": Forged(fields=(("do", "freeze"),)),
}
#: Requests that bypass the proxy, or carry forged headers through it.
UNPROVEN = {
    name: Forged(headers, without=("X-Forwarded-Email", "X-Fairlead-Secret"))
    for name, headers in BAD_HEADERS.items()
} | {
    "nobody": Forged(without=("X-Forwarded-Email", "X-Fairlead-Secret")),
    "a token in its place": Forged(
        [("Authorization", "Bearer kim")], without=("X-Fairlead-Secret",)
    ),
    "the secret in another header": Forged(
        [("Authorization", SECRET)], without=("X-Fairlead-Secret",)
    ),
    "the secret as a cookie": Forged(
        [("Cookie", f"X-Fairlead-Secret={SECRET}")], without=("X-Fairlead-Secret",)
    ),
    "the secret in the form": Forged(
        fields=(("X-Fairlead-Secret", SECRET),), without=("X-Fairlead-Secret",)
    ),
}
REQUESTS = {
    f"{kind}: {name}": forged
    for kind, forms in (("site", CROSS_SITE), ("form", MALFORMED), ("proof", UNPROVEN))
    for name, forged in forms.items()
}


def test_forged_requests_write_nothing(desks: Desks, rows: Rows) -> None:
    """Requests that differ in one point from a valid approval write nothing.

    The valid approval is sent last, and accepted.
    """
    for name, forged in REQUESTS.items():
        status = forged.send(desks)
        assert status == (200 if forged.method in {"GET", "HEAD"} else status), name
        assert status < 300 if forged.method in {"GET", "HEAD"} else status >= 400, (name, status)
        assert status < 500, (name, status)
        assert rows.changed() == [], name
    assert Forged().send(desks) == 303
    assert rows.changed() == ["page_act", "plan", "plan_event"]


RAW = {
    "two lengths": "Content-Length: {size}\r\nContent-Length: 5\r\n",
    "a length and chunks": "Content-Length: {size}\r\nTransfer-Encoding: chunked\r\n",
    "chunks by another name": "Content-Length: {size}\r\nTransfer-Encoding: xchunked\r\n",
    "two hosts": "Content-Length: {size}\r\nHost: evil.example\r\n",
    "a folded header": "Content-Length: {size}\r\nX-Fairlead-Secret:\r\n\tx\r\n",
    "a header with a blank": "Content-Length: {size}\r\nX-Forwarded-Email : lee@example.com\r\n",
    "a header with a null": "Content-Length: {size}\r\nX-Forwarded-Email: lee\0\r\n",
    "lines that end with LF": "Content-Length: {size}\nX-Forwarded-Email: lee@example.com\r\n",
    "a length with a sign": "Content-Length: +{size}\r\n",
    "no length": "",
}


def test_smuggled_requests_write_nothing(desks: Desks, rows: Rows) -> None:
    """A request is refused if two servers could parse its length or headers differently."""
    body = f"{APPROVE}&sha256={desks.plans['orders'].sha256}&id={uuid.uuid4()}"
    proof = "".join(f"{name}: {value}\r\n" for name, value in as_person(KIM))
    head = f"Origin: {PUBLIC}\r\nContent-Type: {FORM}\r\n{proof}"
    for name, lines in RAW.items():
        host = urlsplit(desks.address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE_S) as connection:
            given = lines.format(size=len(body))
            request = f"POST /act HTTP/1.1\r\nHost: localhost\r\n{head}{given}\r\n{body}"
            connection.sendall(request.encode())
            connection.shutdown(socket.SHUT_WR)
            answered = connection.makefile("rb").readline()
        assert answered.split()[1:2] != [b"303"], (name, answered)
        assert rows.changed() == [], name


def test_replayed_forms_write_nothing(desks: Desks, rows: Rows) -> None:
    """A form that was sent before gets 409, even with other fields or from another person."""
    given = {"id": str(uuid.uuid4())}
    assert desks.post("freeze", "orders", **given).status == 303
    (freeze,) = read_freezes(desks.planner.engine)
    assert desks.post("unfreeze", "orders", version=freeze.number).status == 303
    assert desks.post("approve", "orders").status == 303
    rows.changed()
    replays: list[Callable[[], int]] = [
        lambda: desks.post("freeze", "orders", **given).status,
        lambda: desks.post("freeze", "orders", "lee@example.com", **given).status,
        lambda: desks.post("freeze", "stock", **given).status,
        lambda: desks.post("reject", "payments", **given).status,
        lambda: desks.post("unfreeze", "orders", version=freeze.number).status,
        lambda: desks.post("approve", "orders").status,
        lambda: desks.post("reject", "orders").status,
    ]
    assert len(replays) == REPLAYS
    for number, replay in enumerate(replays):
        assert replay() == 409, number
        assert rows.changed() == [], number


REPLAYS = 7
#: Spellings of one person's name.
SPELLINGS = ("kim@example.com", "KIM@example.com", " Kim@Example.Com ", "k\uff49m@example.com")


def test_spellings_of_a_name_are_one_person(desks: Desks) -> None:
    """Approvals in several spellings of a name count once, so the plan stays proposed."""
    for name in SPELLINGS:
        assert desks.post("approve", "payments", name).status == 303
        assert desks.state("payments") == "proposed"
    with psycopg.connect(desks.url) as connection:
        people = connection.execute("SELECT DISTINCT actor FROM fairlead.page_act").fetchall()
    assert people == [("kim@example.com",)]


@pytest.fixture
def by_token(desks: Desks) -> Iterator[tuple[Desks, Issuer]]:
    """Return a web application that identifies people by tokens, and the issuer of these tokens."""
    with publishing(Issuer({"one": ONE})) as issuer, logins(desks.url) as make:
        token = {"jwks_url": issuer.url, "issuer": ISSUER, "audience": AUDIENCE}
        web = WebSettings.model_validate({"url": PUBLIC, "token": token})
        engine = create_store_engine(make("fairlead_web", name="tokens"))
        with serving(build_app(engine, Settings(web=web))) as address:
            yield replace(desks, address=address), issuer
        engine.dispose()


def test_bad_tokens_write_nothing(by_token: tuple[Desks, Issuer], rows: Rows) -> None:
    """Every invalid token gets 403 and writes nothing; afterwards a valid one is accepted."""
    desks, issuer = by_token
    plan = desks.plans["orders"]
    fields = {"do": "approve", "group": "orders", "version": 1, "sha256": plan.sha256}
    fields |= {"id": uuid.uuid4(), "reason": "forged"}

    def sent(*headers: tuple[str, str]) -> int:
        return post(desks.address, fields, headers).status

    good = ("Authorization", f"Bearer {issuer.token()}")
    bad: dict[str, Pairs] = {
        name: [("Authorization", make(issuer))] for name, make in BAD_TOKENS.items()
    }
    bad |= {
        "none at all": [],
        "two": [good, good],
        "one that counts and one that does not": [good, ("Authorization", "Bearer x")],
        "another spelling besides": [good, ("Authorization_", "x"), ("authorization", "x")],
        "the other proof": as_person(KIM),
    }
    assert len(bad) == TOKENS
    for name, headers in bad.items():
        assert sent(*headers) == 403, name
        assert rows.changed() == [], name
    assert sent(good) == 303
    assert rows.changed() == ["page_act", "plan", "plan_event"]


TOKENS = len(BAD_TOKENS) + 5


def test_without_the_issuers_keys_pages_are_read_only(desks: Desks, rows: Rows) -> None:
    """While the issuer's keys cannot be fetched, pages report that, and forms get 403."""
    for name, fail in FAILING.items():
        with publishing(Issuer({"one": ONE})) as issuer, logins(desks.url) as make:
            fail(issuer)
            token = {"jwks_url": issuer.url, "issuer": ISSUER, "audience": AUDIENCE}
            web = WebSettings.model_validate({"url": PUBLIC, "token": token})
            engine = create_store_engine(make("fairlead_web"))
            with serving(build_app(engine, Settings(web=web))) as address:
                header = [("Authorization", issuer.token())]
                page = send(address, "GET", "/", header)
                form = {"do": "freeze", "id": uuid.uuid4(), "reason": "forged"}
                assert post(address, form, header).status == 403, name
            engine.dispose()
        assert "the issuer&#39;s keys are not available" in page.text, name
        assert rows.changed() == [], name


def test_login_of_the_server_can_call_only_one_function(desks: Desks, rows: Rows) -> None:
    """In SQL, the web login can change data only through the function `act_as`.

    The login can also call some functions that only read, and can take no other role.
    """
    allowed = {
        *("act_as", "time_share", "history_days", "objection_to_pages"),
        *("plan_diff", "plan_owners"),
    }
    with psycopg.connect(desks.url) as superuser:
        relations = superuser.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p', 'v')"
            " AND relnamespace IN ('fairlead'::regnamespace, 'fairlead_raw'::regnamespace)"
        ).fetchall()
        functions = superuser.execute(
            "SELECT oid::regproc::text, array(SELECT format_type(type, NULL)"
            " FROM unnest(proargtypes) type) FROM pg_proc WHERE pronamespace IN"
            " ('fairlead'::regnamespace, 'fairlead_raw'::regnamespace) AND prokind = 'f'"
            " AND prorettype <> 'trigger'::regtype"
        ).fetchall()
    calls = {
        f"SELECT {name}({', '.join(f'NULL::{kind}' for kind in kinds)})"
        for name, kinds in functions
        if name.partition(".")[2] not in allowed
    }
    writes = {
        statement.format(name)
        for (name,) in relations
        for statement in (
            "INSERT INTO {} DEFAULT VALUES",
            "DELETE FROM {}",
            "TRUNCATE {}",
            "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
            "CREATE TRIGGER t BEFORE INSERT ON {} EXECUTE FUNCTION fairlead_raw.refuse_change()",
            "DROP TABLE {}",
        )
    }
    others = {
        "SET ROLE fairlead_planner",
        "SET ROLE fairlead_approver",
        "SET SESSION AUTHORIZATION postgres",
        "SET session_replication_role = replica",
        "CREATE TABLE fairlead.mine ()",
        "CREATE FUNCTION fairlead.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER ROLE fairlead_web SUPERUSER",
        "GRANT fairlead_planner TO fairlead_web",
        "UPDATE fairlead_raw.plan SET state = 'approved'",
        "UPDATE fairlead_raw.page_act SET actor = 'lee'",
        "SELECT pg_advisory_lock(1)",
        "SELECT lo_create(0)",
        "COPY fairlead_raw.plan_event FROM PROGRAM 'echo'",
    }
    with logins(desks.url) as make, psycopg.connect(make("fairlead_web"), autocommit=True) as web:
        done = []
        for statement in sorted(calls | writes | others):
            try:
                with web.transaction(force_rollback=True):
                    web.execute(statement.encode())
            except psycopg.Error as error:
                if error.sqlstate in {
                    "42501",
                    "42809",
                    "55000",
                }:  # permission denied, or the relation is a view that cannot be changed
                    continue
            done.append(statement)
    assert done == []
    assert rows.changed() == []
    assert len(calls) > 20
    assert len(writes) > 150
    assert len(calls | writes | others) > 300  # docs/trust.md has this number


def test_stolen_server_can_only_act_as_people_on_pages(desks: Desks, rows: Rows) -> None:
    """With the web server's login, a thief can act as any person, but not as a database user.

    A plan that requires the approval of a second database user therefore stays protected.
    """
    with logins(desks.url) as make:
        stolen = make("fairlead_web", name="stolen")
        login = urlsplit(stolen).netloc.partition("@")[0]
        with psycopg.connect(stolen, autocommit=True) as web:

            def act(who: str, do: str, group: str | None, number: int | None = None) -> str:
                plan = desks.plans.get(group or "")
                of_plan = plan is not None and do not in {"freeze", "unfreeze"}
                version = plan.version if plan is not None and of_plan else number
                given = [who, "none", uuid.uuid4(), do, group, version]
                given += [plan.sha256 if plan is not None and of_plan else None, "stolen"]
                try:
                    web.execute("SELECT fairlead.act_as(%s, %s, %s, %s, %s, %s, %s, %s)", given)
                except psycopg.Error as error:
                    return error.sqlstate or ""
                return "done"

            # Accepted: actions of invented people, even as the two people that a plan requires.
            assert act("nobody", "approve", "orders") == "done"
            assert act("one", "approve", "payments") == act("two", "approve", "payments") == "done"
            assert act("one", "withdraw", "stock") == "done"
            assert act("one", "freeze", None) == act("one", "freeze", "billing") == "done"
            assert act("one", "reject", "billing") == "done"
            written = set(rows.changed())
            # Refused: approval of a rejected version, and actions that need a second database user.
            assert act("one", "approve", "billing") == "FL001"  # the version is already rejected
            assert act("one", "unfreeze", "billing", 2) == "FL004"
            assert act("two", "unfreeze", None, 1) == "FL004"
            assert act("one", "rollback", "billing") == "FL004"
            assert rows.changed() == []
        with psycopg.connect(desks.url) as superuser:
            users = superuser.execute(
                "SELECT DISTINCT database_user FROM fairlead.page_act UNION"
                " SELECT database_user FROM fairlead.plan_event WHERE reason = 'stolen' UNION"
                " SELECT database_user FROM fairlead.freeze_event"
            ).fetchall()
    assert users == [(login,)]
    assert written == {"freeze_event", "page_act", "plan", "plan_event"}
    assert (
        desks.planner.get("stock", 2).state == "published"
    )  # "withdraw" was only requested; the planner carries requests out


def test_documentation_has_the_number_of_attacks() -> None:
    """`docs/trust.md` gives the number of requests in these tests."""
    attacks = len(REQUESTS) + len(RAW) + REPLAYS + len(SPELLINGS) + TOKENS + len(FAILING)
    assert f"{attacks} requests" in " ".join(TRUST.read_text().split())

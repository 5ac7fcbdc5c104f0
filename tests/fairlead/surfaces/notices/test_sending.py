"""Sending: signed, once, to receivers that are slow, dead, or lie; nobody else waits for them."""

import hashlib
import hmac
import json
import socket
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from fairlead.domain.notices import NotifySettings
from fairlead.settings import Settings
from fairlead.store import create_store_engine
from fairlead.store.brakes import put_on
from fairlead.store.engine import transaction
from fairlead.surfaces.notices import sending
from fairlead.surfaces.notices.sending import NotToldError, send, tell, trial
from tests.receiver import Receiver, receiving
from tests.waiting import PATIENCE_S, eventually

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - the one of the published example
FAIRLEAD = Path(sys.executable).with_name("fairlead")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver that takes everything."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def engine(migrated: str) -> Iterator[Engine]:
    """Return an engine on a migrated database."""
    engine = create_store_engine(migrated)
    yield engine
    engine.dispose()


def settings_for(url: str, **changes: Any) -> Settings:
    return Settings(notify=NotifySettings.model_validate({"url": url, "secret": SECRET} | changes))


def is_signed(headers: Any, body: bytes) -> bool:
    """Verify a message as Standard Webhooks has its receivers do."""
    content = f"{headers['Webhook-Id']}.{headers['Webhook-Timestamp']}.".encode() + body
    key = b64decode(SECRET.removeprefix("whsec_"))
    expected = b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    recent = abs(time.time() - int(headers["Webhook-Timestamp"])) < 300
    return recent and headers["Webhook-Signature"] == f"v1,{expected}"


def wait_for_next(engine: Engine) -> float:
    """Move what is waited for nearer, until the next notice is due; returns by how many seconds."""
    waiting = "FROM fairlead_raw.notice WHERE ended_at IS NULL"
    with transaction(engine) as connection:
        left = connection.scalar(text(f"SELECT extract(epoch FROM min(next_at) - now()) {waiting}"))
        connection.execute(
            text("UPDATE fairlead_raw.notice SET next_at = next_at - make_interval(secs => :left)"),
            {"left": left},
        )
    return float(left)


def test_message_is_signed(receiver: Receiver) -> None:
    """By the bytes that were sent, with the moment and the id."""
    notice = trial()
    assert send(notice, settings_for(receiver.url)) == "the receiver answered 200: ok"
    ((headers, body),) = receiver.came
    assert headers["Webhook-Id"] == notice.id
    assert headers["Content-Type"] == "application/json"
    assert is_signed(headers, body)
    assert not is_signed(headers, body + b" ")


LYING: dict[str, tuple[dict[str, Any], str]] = {
    "a redirect": ({"status": 302}, "the receiver answered 302: ok"),
    "an error": ({"status": 404, "body": b"no_service\x1b[31m"}, "404: no_service\\x1b"),
    "garbage": ({"raw": b"\x00\xff" * 100 + b"\r\n"}, "no HTTP"),
    "nothing": ({"raw": b"\r\n"}, "does not answer"),
    "a status that is none": ({"raw": b"HTTP/1.0 999999 x\r\n\r\n"}, "no HTTP"),
    "a part of what it promised": (
        {"raw": b"HTTP/1.0 200 OK\r\nContent-Length: 900\r\n\r\nok"},
        "its answer ended too early",
    ),
    "a hang": ({"pause": 30.0}, "did not answer within 0.4 s"),
    "a byte now and then": ({"pause": 0.1}, "did not answer within 0.4 s"),
}


@pytest.mark.parametrize("how", LYING)
def test_receiver_that_lies_has_not_taken_it(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It is said in words without the address, no redirect is followed, no thread is left."""
    changes, said = LYING[how]
    if "did not answer" in said:
        monkeypatch.setattr(sending, "TIMEOUT_S", 0.4)
    for name, value in changes.items():
        setattr(receiver, name, value)
    before = set(threading.enumerate())
    with pytest.raises(NotToldError) as error:
        send(trial(), settings_for(receiver.url))
    assert said in str(error.value)
    assert "hunter2" not in str(error.value)
    eventually(lambda: len(receiver.came) == 1, "it came")
    receiver.pause = 0.0
    for thread in set(threading.enumerate()) - before:
        if "ask" in thread.name:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    "said", ["Cannot POST /hook?token=hunter2", r'{"at": "\/hook?token=Hunter2"}', "hunter%32"]
)
def test_answer_that_repeats_the_address_does_not_give_it_away(
    receiver: Receiver, said: str
) -> None:
    """Servers that know no such path say which: what is kept of it, all who read could post to."""
    receiver.status, receiver.body = 404, said.encode()
    url = receiver.url.replace("hunter2", "hunter%32") if "%" in said else receiver.url
    with pytest.raises(NotToldError, match=r"the receiver answered 404: .*…") as error:
        send(trial(), settings_for(url))
    assert "hunter" not in str(error.value).lower()


def test_proxy_gets_nothing_that_it_could_read(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes to this machine without TLS does not leave it, whatever HTTP_PROXY says."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with receiving() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        send(trial(), settings_for(receiver.url))
        assert (len(proxy.came), len(receiver.came)) == (0, 1)


def test_receiver_whose_name_takes_long_keeps_no_thread(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked nothing any more, or it could answer byte by byte for days."""
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.2)
    looked_up, found = socket.getaddrinfo, threading.Event()

    def slowly(*asked: Any) -> Any:
        found.wait(PATIENCE_S)
        return looked_up(*asked)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    receiver.pause = 0.1
    before = set(threading.enumerate())
    with pytest.raises(NotToldError, match=r"did not answer within 0\.2 s"):
        send(trial(), settings_for(receiver.url))
    found.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert receiver.came == []


def test_answer_without_end_is_read_in_part(receiver: Receiver) -> None:
    """The status says that it was taken; nobody keeps the rest."""
    receiver.body = b"x" * 50_000_000
    assert send(trial(), settings_for(receiver.url)) == f"the receiver answered 200: {'x' * 200}"


def test_receiver_that_is_dead_or_not_there(receiver: Receiver) -> None:
    """Nobody listens, or the name is none."""
    for url in ("http://127.0.0.1:1/hunter2", "https://nowhere.invalid/hunter2"):
        with pytest.raises(NotToldError, match="does not answer") as error:
            send(trial(), settings_for(url))
        assert "hunter2" not in str(error.value)
    assert receiver.came == []


def test_certificate_that_nobody_vouches_for_is_refused(receiver: Receiver) -> None:
    """Nor is a message sent to who speaks no TLS at all."""
    with pytest.raises(NotToldError, match="does not answer"):
        send(trial(), settings_for(receiver.url.replace("http:", "https:")))
    assert receiver.came == []


@pytest.mark.postgres
def test_outage_of_an_hour_loses_and_doubles_nothing(receiver: Receiver, engine: Engine) -> None:
    """Later and later, the same id each time, and once it recovers each message once more."""
    for group in range(3):
        put_on(engine, None, reason=f"{group}", actor="kim")
    receiver.status, settings = 500, settings_for(receiver.url)
    waited = 0.0
    while waited < 3600:
        told = tell(engine, settings)
        assert (told.sent, told.failed) == (0, "the receiver answered 500: ok")
        waited += wait_for_next(engine)
    tried = [headers["Webhook-Id"] for headers, _ in receiver.came]
    assert len(set(tried)) == 3
    assert len(tried) < 30
    receiver.status = 200
    assert tell(engine, settings).sent
    while len(receiver.came) < len(tried) + 3:
        assert wait_for_next(engine) < 3600
        tell(engine, settings)
    assert tell(engine, settings).sent == 0
    came = [headers["Webhook-Id"] for headers, _ in receiver.came[len(tried) :]]
    assert sorted(came) == sorted(set(tried))
    bodies = {headers["Webhook-Id"]: body for headers, body in receiver.came}
    assert all(
        is_signed(*request) and request[1] == bodies[request[0]["Webhook-Id"]]
        for request in receiver.came
    )


@pytest.mark.postgres
def test_message_that_is_refused_holds_up_no_other(receiver: Receiver, engine: Engine) -> None:
    """It is tried again after those that wait behind it."""
    put_on(engine, None, reason="first")
    put_on(engine, None, reason="second")
    receiver.status = 400
    tell(engine, settings_for(receiver.url))
    receiver.status = 200
    assert tell(engine, settings_for(receiver.url)).sent == 1
    texts = [json.loads(body)["data"]["text"].rpartition(" ")[2] for _, body in receiver.came]
    assert texts == ["first", "second"]


@pytest.mark.postgres
def test_tick_is_over_in_time(
    receiver: Receiver, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 messages at most; a receiver that takes its time gets fewer, and the others wait."""
    assert sending.WITHIN_S + sending.TIMEOUT_S <= 15
    for name in ("WITHIN_S", "TIMEOUT_S"):
        monkeypatch.setattr(sending, name, PATIENCE_S)
    for number in range(25):
        put_on(engine, None, reason=f"{number}")
    assert tell(engine, settings_for(receiver.url)).sent == 20
    monkeypatch.setattr(sending, "WITHIN_S", 1.0)
    receiver.raw, receiver.pause = b"HTTP/1.0 200\r\n\r\n", 0.04
    assert 1 <= tell(engine, settings_for(receiver.url)).sent < 5


@pytest.mark.postgres
def test_killed_before_the_answer_counts_is_sent_again_with_the_same_id(
    receiver: Receiver, engine: Engine, migrated: str
) -> None:
    """At least once: the receiver tells the second by its id."""
    put_on(engine, None, reason="incident")
    receiver.pause = 30.0
    program = (
        "import sys\n"
        "from fairlead.store import create_store_engine\n"
        "from fairlead.surfaces.notices.sending import tell\n"
        "from tests.fairlead.surfaces.notices.test_sending import settings_for\n"
        "tell(create_store_engine(sys.argv[1]), settings_for(sys.argv[2]))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, migrated, receiver.url])
    eventually(lambda: receiver.came, "it came")
    process.kill()
    process.wait()
    receiver.pause = 0.0
    assert tell(engine, settings_for(receiver.url)).sent == 0, "not twice in a row"
    assert wait_for_next(engine) > 20
    assert tell(engine, settings_for(receiver.url)).sent == 1
    (first, _), (second, _) = receiver.came
    assert first["Webhook-Id"] == second["Webhook-Id"]


@pytest.mark.postgres
def test_without_an_address_nothing_gathers(receiver: Receiver, engine: Engine) -> None:
    """Whoever sets one later hears of what happens from then on."""
    put_on(engine, None, reason="before")
    assert tell(engine, Settings()).sent == 0
    put_on(engine, None, reason="after")
    assert tell(engine, settings_for(receiver.url)).sent == 1
    assert b"after" in receiver.came[0][1]


@pytest.mark.long
@pytest.mark.parametrize(("status", "code"), [(200, 0), (403, 1)])
def test_command_says_what_came_back(
    receiver: Receiver, tmp_path: Path, status: int, code: int
) -> None:
    """One message now, and what to do where it is not taken; the secret is not shown."""
    receiver.status = status
    Path(tmp_path, "fairlead.toml").write_text(
        f'[notify]\nurl = "{receiver.url}"\nformat = "slack"\n'
    )
    done = subprocess.run(
        [FAIRLEAD, "notify", "test"],
        cwd=tmp_path,
        env={"PATH": "", "FAIRLEAD_CONFIG": "fairlead.toml"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert f"the receiver answered {status}" in (done.stderr if code else done.stdout)
    assert ("Are notify.url and notify.format" in done.stderr) == bool(code)
    assert "hunter2" not in done.stdout + done.stderr
    assert len(receiver.came) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "http://chat.example/x"}, "https, or http to this machine"),
        ({"url": "ftp://chat.example/x"}, "https, or http to this machine"),
        ({"url": "https://kim:hunter2@chat.example/"}, "no address such as"),
        ({"url": "https://chat.example:x/"}, "no address such as"),
        ({"url": "https://chat.example:0/"}, "no address such as"),
        ({"url": "https://chat.example/\n"}, "no address such as"),
        ({"secret": None}, "takes one: nobody else could tell"),
        ({"secret": "hunter2"}, "openssl rand -base64 32"),
        ({"secret": "whsec_" + "a" * 16}, "of 24 to 64 bytes"),
        ({"secret": SECRET.replace("whsec", "whpk")}, "whsec_ and the base64"),
        ({"events": []}, "at least 1"),
    ],
)
def test_settings_that_would_not_do_are_refused(given: dict[str, Any], said: str) -> None:
    """At the start, and without the secret."""
    valid = {"url": "https://chat.example/x", "secret": SECRET}
    with pytest.raises(ValueError, match=said) as error:
        NotifySettings.model_validate(valid | given)
    messages = [problem["msg"] for problem in error.value.errors()]  # type: ignore[attr-defined]
    assert "hunter2" not in "".join(messages)
    assert SecretStr(SECRET) == NotifySettings.model_validate(valid).secret

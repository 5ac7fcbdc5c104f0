"""Sending: one message to the webhook, and what is due by those who send.

Belongs here: the signature (Standard Webhooks), what counts as an answer, and how much is sent at a
time. Does not: which notice is next (`fairlead.store.notices`).
"""

import hashlib
import hmac
import re
import time
import uuid
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import Request

from pydantic import SecretStr
from sqlalchemy import Engine

from fairlead.common.http import fetch
from fairlead.common.visible import visible
from fairlead.domain.notices import TEST, Notice, key_of
from fairlead.errors import FairleadError
from fairlead.settings import Settings
from fairlead.store.notices import answered, end_notices, next_notice
from fairlead.surfaces.notices.messages import body_of

#: Messages of a tick, and for how long it begins another one: it ends 5 s later at the latest.
AT_MOST: Final = 20
WITHIN_S: Final = 10.0
TIMEOUT_S: Final = 5.0
#: What is read, and what is kept, of an answer.
_READ: Final = 4096
_KEPT: Final = 200
#: Shorter parts of an address are no secrets.
_SECRET_SIZE: Final = 6


class NotToldError(FairleadError):
    """The receiver did not take a message."""


@dataclass(frozen=True)
class TickResult:
    """What came of a tick.

    Parameters
    ----------
    sent
        How many messages were.
    failed
        Why it ended before all that was due was sent; None: it did not.
    given_up
        What is not tried any more, a line each.
    """

    sent: int
    failed: str | None
    given_up: Sequence[str]


def tell(engine: Engine, settings: Settings) -> TickResult:
    """Send what is due, for a quarter of a minute at most; raises as `transaction`.

    A receiver that did not take a message is left alone until the next tick.
    """
    wanted = () if settings.notify.url is None else settings.notify.events
    given_up = end_notices(engine, wanted)
    until = time.monotonic() + WITHIN_S
    for sent in range(AT_MOST):
        notice = next_notice(engine) if wanted and time.monotonic() < until else None
        if notice is None:
            return TickResult(sent, None, given_up)
        try:
            answer = send(notice, settings)
        except NotToldError as error:
            answered(engine, notice, str(error), sent=False)
            return TickResult(sent, str(error), given_up)
        answered(engine, notice, answer, sent=True)
    return TickResult(AT_MOST, None, given_up)


def trial() -> Notice:
    """Return a notice of nothing."""
    said = "Somebody has asked for it: `fairlead notify test`."
    return Notice(f"msg_{uuid.uuid4().hex}", TEST, datetime.now(UTC), None, None, None, said)


def send(notice: Notice, settings: Settings) -> str:
    """Send a message to `notify.url`, which is set; returns what the receiver answered.

    Raises
    ------
    NotToldError
        The receiver does not answer, or not that it has taken it.
    """
    notify = settings.notify
    assert notify.url is not None  # noqa: S101 - as documented
    body = body_of(notice, notify.format, settings.web)
    headers = {"Content-Type": "application/json", "User-Agent": "fairlead"}
    if notify.secret is not None:
        headers |= signed(notify.secret, notice.id, int(time.time()), body)
    request = Request(  # noqa: S310 - the settings have looked at the address
        notify.url.get_secret_value(), body, headers, method="POST"
    )
    try:
        status, said = fetch(request, timeout_s=TIMEOUT_S, most_bytes=_READ)
    except (OSError, ValueError) as error:
        raise NotToldError(f"the receiver does not answer: {error}") from None
    text = _without_address(said.decode(errors="replace"), notify.url)
    text = visible(text.strip())[:_KEPT]
    answer = f"the receiver answered {status}{f': {text}' if text else ''}"
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise NotToldError(answer)
    return answer


def _without_address(text: str, url: SecretStr) -> str:
    """Leave out what an answer repeats of the address, which is as good as a password.

    Examples
    --------
    >>> _without_address("Cannot POST /hooks/T0AF55D", SecretStr("https://a.example/hooks/T0AF55D"))
    'Cannot POST /hooks/…'
    """
    address = urlsplit(url.get_secret_value())
    behind = f"{address.path}&{address.query}"
    parts = re.split("[/&=]+", f"{behind}&{unquote(behind)}")
    secrets = sorted({part for part in parts if len(part) >= _SECRET_SIZE}, key=len, reverse=True)
    pattern = "|".join(map(re.escape, secrets))
    return re.sub(pattern, "…", text, flags=re.IGNORECASE) if pattern else text


def signed(secret: SecretStr, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a signed message, as Standard Webhooks has them.

    Examples
    --------
    >>> secret = SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    >>> body = b'{"test": 2432232314}'
    >>> signed(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    content = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(key_of(secret), content, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{b64encode(digest).decode()}",
    }

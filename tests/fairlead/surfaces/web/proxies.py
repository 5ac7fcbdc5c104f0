"""Stand-ins for a token issuer and for a proxy in front of the pages.

Belongs here: keys, tokens, the local server that publishes keys, and requests with any headers.
Belongs elsewhere: assertions.
"""

import base64
import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.waiting import PATIENCE_S

ISSUER: Final = "https://login.example"
AUDIENCE: Final = "fairlead"
#: Public address of the pages (`web.url` in the settings).
PUBLIC: Final = "https://fairlead.example"
FORM: Final = "application/x-www-form-urlencoded"
Pairs = Sequence[tuple[str, str]]


@dataclass
class Issuer:
    """A token issuer whose keys can be rotated and whose server can fail.

    Parameters
    ----------
    keys
        Private keys by id; their public keys are published.
    extra
        Additional keys to publish.
    status, body, raw
        Status and body of the answer, by default 200 and the key set. `raw`: bytes to send
        instead of an HTTP response.
    pieces, pause
        Number of pieces in which the body is sent, and seconds before each piece.
    requests
        Number of requests received so far.
    gone
        If this event is set, pauses end at once.
    """

    keys: dict[str, Any] = field(default_factory=dict)
    extra: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    body: bytes | None = None
    raw: bytes | None = None
    pieces: int = 1
    pause: float = 0.0
    requests: int = 0
    url: str = ""
    gone: threading.Event = field(default_factory=threading.Event)

    def published(self) -> bytes:
        """Return the key set as JSON."""
        keys = [public_jwk(key) | {"kid": name} for name, key in self.keys.items()]
        return json.dumps({"keys": [*keys, *self.extra]}).encode()

    def token(
        self, name: str | None = "kim@example.com", *, key_id: str = "one", **claims: Any
    ) -> str:
        """Return a signed token that names a person; `claims` replace its default claims."""
        key = self.keys[key_id]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(payload(name, **claims), key, algorithm, headers={"kid": key_id})


def payload(name: str | None = "kim@example.com", **claims: Any) -> dict[str, Any]:
    """Return the claims of a valid token, changed by `claims`; None removes a claim."""
    now = int(time.time())
    whole = {"iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 300, "jti": "t-1"}
    whole |= {"email": name, "email_verified": True, **claims}
    return {claim: value for claim, value in whole.items() if value is not None}


def public_jwk(key: Any) -> dict[str, Any]:
    """Return the public key as a JSON web key."""
    kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    found: dict[str, Any] = kind.to_jwk(key.public_key(), as_dict=True)
    return found


def public_pem(key: Any) -> bytes:
    """Return the public key in PEM format."""
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def unsigned(claims: Mapping[str, Any], **header: Any) -> str:
    """Return a token without a signature."""
    parts = [{"typ": "JWT", "alg": "none", **header}, claims]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*coded, b""]).decode()


@contextmanager
def publishing(issuer: Issuer) -> Iterator[Issuer]:
    """Publish an issuer's keys on a local server until the block ends."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.requests += 1
            if issuer.raw is not None:
                self.wfile.write(issuer.raw)
                return
            body = issuer.published() if issuer.body is None else issuer.body
            self.send_response(issuer.status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            size = -(-len(body) // issuer.pieces)
            with contextlib.suppress(OSError):  # the client may have given up
                for start in range(0, len(body), size):
                    issuer.gone.wait(issuer.pause)
                    self.wfile.write(body[start : start + size])

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        issuer.url = f"http://127.0.0.1:{server.server_port}/keys"
        yield issuer
        issuer.gone.set()
        server.shutdown()
        thread.join()


@dataclass(frozen=True)
class Answer:
    """A response to a request."""

    status: int
    headers: Mapping[str, str]
    text: str


def send(
    address: str, method: str, path: str, headers: Pairs = (), body: bytes | None = None
) -> Answer:
    """Send a request with exactly these headers, which may repeat; do not follow redirects."""
    parts = urlsplit(address)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_S)
    try:
        named = {name.lower() for name, _ in headers}
        connection.putrequest(method, path, skip_host="host" in named, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value.encode("utf-8"))
        if body is not None and not {"content-length", "transfer-encoding"} & named:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())
    finally:
        connection.close()


def post(address: str, fields: Mapping[str, Any], headers: Pairs = ()) -> Answer:
    """Send a form as a browser does from a page of the application."""
    own = [("Origin", PUBLIC), ("Sec-Fetch-Site", "same-origin"), ("Content-Type", FORM)]
    return send(address, "POST", "/act", [*own, *headers], urlencode(fields).encode())

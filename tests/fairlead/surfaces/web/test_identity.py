"""Request headers that prove a person's identity, and headers that do not."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt
import pytest

from fairlead.domain.identity import HeaderSettings, TokenSettings
from fairlead.surfaces.web import issuer_keys
from fairlead.surfaces.web.identity import ByHeader, ByToken, IdentityProof, NotProvenError
from tests.fairlead.surfaces.web.proxies import (
    AUDIENCE,
    ISSUER,
    Issuer,
    Pairs,
    ec_key,
    payload,
    public_jwk,
    public_pem,
    publishing,
    rsa_key,
    unsigned,
)
from tests.waiting import PATIENCE_S, eventually

SECRET = "s" * 40
ONE, OTHER = rsa_key(), rsa_key()


def who(identity: IdentityProof, *headers: tuple[str, str]) -> str:
    """Return the name that these headers prove, or "nobody:" and the reason."""
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    try:
        return identity.person(raw).name
    except NotProvenError as error:
        return f"nobody: {error}"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """Return an issuer with an RSA key and an elliptic-curve key."""
    with publishing(Issuer({"one": ONE, "curve": ec_key()})) as issuer:
        yield issuer


@pytest.fixture
def by_token(issuer: Issuer) -> ByToken:
    """Return the check that accepts this issuer's tokens."""
    return ByToken(TokenSettings(jwks_url=issuer.url, issuer=ISSUER, audience=AUDIENCE))


@pytest.fixture
def by_header() -> ByHeader:
    """Return the check that accepts oauth2-proxy's header together with a secret."""
    return ByHeader(HeaderSettings.model_validate({"secret": SECRET}))


def bearer(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token}"


@pytest.mark.parametrize("key_id", ["one", "curve"])
def test_token_proves_a_person(issuer: Issuer, by_token: ByToken, key_id: str) -> None:
    """A token proves a person's name, in lower case. The proof has the token's id.

    The word "Bearer" before the token may be missing.
    """
    token = issuer.token("Kim@Example.COM", key_id=key_id)
    assert who(by_token, bearer(token)) == "kim@example.com"
    assert who(by_token, ("Authorization", token)) == "kim@example.com"
    assert by_token.person([(b"authorization", token.encode())]).proof == "token t-1"


def test_new_keys_count(issuer: Issuer, by_token: ByToken, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new key is accepted within 10 s, a removed key for at most five more minutes."""
    now = [1000.0]
    keys = issuer_keys.Keys(issuer.url, lambda: now[0])
    monkeypatch.setattr(by_token, "_keys", keys)
    old = issuer.token()
    assert who(by_token, bearer(old)) == "kim@example.com"
    issuer.keys = {"two": OTHER}
    new = issuer.token(key_id="two")
    assert "has no key 'two'" in who(by_token, bearer(new))  # the keys were fetched a moment ago
    now[0] += issuer_keys.REST_S
    assert who(by_token, bearer(new)) == "kim@example.com"
    assert "has no key 'one'" in who(by_token, bearer(old))
    before = issuer.requests
    for number in range(20):
        who(by_token, bearer(jwt.encode(payload(), OTHER, "RS256", headers={"kid": f"{number}"})))
    assert issuer.requests == before  # unknown keys cause no further requests
    issuer.keys = {"three": ONE}
    now[0] += issuer_keys.KEPT_S
    assert "has no key 'two'" in who(by_token, bearer(new))


FAILING: dict[str, Callable[[Issuer], None]] = {
    "status 500": lambda issuer: setattr(issuer, "status", 500),
    "a redirect": lambda issuer: setattr(issuer, "status", 302),
    "no JSON": lambda issuer: setattr(issuer, "body", b"<html>"),
    "no key set": lambda issuer: setattr(issuer, "body", b'{"keys": 7}'),
    "no HTTP": lambda issuer: setattr(issuer, "raw", b"SSH-2.0-x\r\n"),
    "chunks that are none": lambda issuer: setattr(
        issuer, "raw", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    ),
    "JSON without end": lambda issuer: setattr(issuer, "body", b"[" * 200_000),
    "too much": lambda issuer: setattr(issuer, "body", b" " * 300_000),
    "no server": lambda issuer: setattr(issuer, "url", "http://127.0.0.1:1/keys"),
}


def test_keys_of_a_missing_issuer_count_for_five_minutes(issuer: Issuer, by_token: ByToken) -> None:
    """If the issuer does not answer, its last known keys are accepted for five more minutes."""
    now = [1000.0]
    by_token._keys = issuer_keys.Keys(issuer.url, lambda: now[0])  # noqa: SLF001 - its clock
    assert who(by_token, bearer(issuer.token())) == "kim@example.com"
    issuer.status = 503
    now[0] += issuer_keys.KEPT_S - 1
    assert who(by_token, bearer(issuer.token())) == "kim@example.com"
    now[0] += 1
    assert "keys are not available" in who(by_token, bearer(issuer.token()))


@pytest.mark.long
def test_hanging_issuer_delays_only_unknown_keys(
    issuer: Issuer, by_token: ByToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the issuer does not answer, only the first token with an unknown key waits."""
    now = [1000.0]
    by_token._keys = issuer_keys.Keys(issuer.url, lambda: now[0])  # noqa: SLF001 - its clock
    good = bearer(issuer.token())
    assert who(by_token, good) == "kim@example.com"
    now[0] += issuer_keys.REST_S
    issuer.pause, before = PATIENCE_S, issuer.requests
    monkeypatch.setattr(issuer_keys, "_TIMEOUT_S", PATIENCE_S)
    with ThreadPoolExecutor(1) as pool:
        made_up = pool.submit(who, by_token, bearer(signed_by(OTHER, "RS256", "made up")))
        eventually(lambda: issuer.requests > before, "the issuer is asked")
        assert who(by_token, good) == "kim@example.com"
        assert "has no key 'more'" in who(by_token, bearer(signed_by(OTHER, "RS256", "more")))
        assert not made_up.done()
        issuer.gone.set()


def test_hanging_issuer_occupies_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 requests, only four wait for the issuer, so threads remain for pages and metrics.

    After a failure, later requests do not wait: keys are fetched in the background.
    """
    monkeypatch.setattr(issuer_keys, "_TIMEOUT_S", 600.0)
    now = [1000.0]
    with ThreadPoolExecutor(60) as pool, publishing(Issuer(pause=600.0)) as issuer:
        keys = issuer_keys.Keys(issuer.url, lambda: now[0])

        def ask(key_id: str) -> str:
            try:
                return f"{keys.find(key_id)}"
            except issuer_keys.KeysUnavailableError as error:
                return str(error)

        calls = [pool.submit(ask, f"made up {number}") for number in range(60)]
        eventually(
            lambda: sum(answer.done() for answer in calls) == len(calls) - 4,
            "all but four are answered",
        )
    assert {answer.result() for answer in calls} == {
        "the issuer's keys are not available: it has not answered yet",
        "None",  # returned by each of the four requests that waited
    }
    monkeypatch.setattr(issuer_keys, "_TIMEOUT_S", 0.4)
    now[0] += issuer_keys.KEPT_S
    with publishing(Issuer(pause=600.0)) as issuer:
        keys._url = issuer.url  # noqa: SLF001 - as if the same issuer hung again
        assert "not answer within 0.4 s" in ask("made up")
        monkeypatch.setattr(issuer_keys, "_TIMEOUT_S", 600.0)
        now[0] += issuer_keys.REST_S
        assert "not answer within 0.4 s" in ask("made up")
        eventually(lambda: issuer.requests == 2, "the issuer is asked again in the background")


def test_slow_answer_of_the_issuer_is_given_up(
    issuer: Issuer, by_token: ByToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time-out applies to the issuer's whole answer, even if bytes keep arriving."""
    monkeypatch.setattr(issuer_keys, "_TIMEOUT_S", 0.4)
    issuer.body = issuer.published() + b" " * 3_000
    issuer.pieces, issuer.pause = 3_000, 0.1
    reason = who(by_token, bearer(issuer.token()))
    assert reason.endswith("the issuer's keys are not available: it did not answer within 0.4 s")


def test_requests_without_tls_use_no_proxy(
    issuer: Issuer, by_token: ByToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are fetched directly from an `http` issuer, even if `http_proxy` is set."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with publishing(Issuer()) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert who(by_token, bearer(issuer.token())) == "kim@example.com"
        assert (proxy.requests, issuer.requests) == (0, 1)


def signed_by(key: Any, algorithm: str, key_id: str | None, **claims: Any) -> str:
    headers = {} if key_id is None else {"kid": key_id}
    return jwt.encode(payload(**claims), key, algorithm, headers=headers)


def hmac_with_public_key() -> str:
    """Return a token signed by HMAC, with the public RSA key as the secret."""
    header, claims, _ = unsigned(payload(), alg="HS256", kid="one").split(".")
    key = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = key.sign(f"{header}.{claims}".encode(), public_pem(ONE))
    return f"{header}.{claims}.{jwt.utils.base64url_encode(signature).decode()}"


def with_claims(token: str, claims: Mapping[str, Any]) -> str:
    """Return the token with other claims but its old signature."""
    header, _, signature = token.split(".")
    return ".".join([header, unsigned(claims).split(".")[1], signature])


NOW = int(time.time())
#: Invalid tokens, which `test_attacks` sends.
BAD_TOKENS: dict[str, Callable[[Issuer], str]] = {
    "expired": lambda i: i.token(exp=NOW - 3600),
    "without an end": lambda i: i.token(exp=None),
    "not yet": lambda i: i.token(nbf=NOW + 86_400),
    "issued later": lambda i: i.token(iat=NOW + 86_400),
    "for others": lambda i: i.token(aud="payroll"),
    "for nobody": lambda i: i.token(aud=None),
    "by others": lambda i: i.token(iss="https://evil.example"),
    "by nobody": lambda i: i.token(iss=None),
    "of nobody": lambda i: i.token(None),
    "of a number": lambda i: i.token(email=7),
    "of a list": lambda i: i.token(email=["kim", "lee"]),
    "of an email that nobody vouches for": lambda i: i.token(email_verified=None),
    "of an unverified email": lambda i: i.token(email_verified=False),
    "of an email verified by a word": lambda i: i.token(email_verified="False"),
    "of half a character": lambda i: i.token("kim\ud800"),
    "of what cannot be seen": lambda i: i.token("kim\u202e"),
    "unsigned": lambda _: unsigned(payload(), kid="one"),
    "unsigned, in capitals": lambda _: unsigned(payload(), kid="one", alg="NONE"),
    "unsigned, called signed": lambda _: unsigned(payload(), kid="one", alg="RS256"),
    "without its signature": lambda i: i.token().rpartition(".")[0] + ".",
    "by the public key as a secret": lambda _: hmac_with_public_key(),
    "by an unknown key": lambda _: signed_by(OTHER, "RS256", "other"),
    "by another key": lambda _: signed_by(OTHER, "RS256", "one"),
    "by no named key": lambda _: signed_by(ONE, "RS256", None),
    "by a stronger hash": lambda _: signed_by(ONE, "RS512", "one"),
    "by a key of another kind": lambda _: signed_by(ec_key(), "ES256", "one"),
    "with an extension": lambda _: jwt.encode(
        payload(), ONE, "RS256", headers={"kid": "one", "crit": ["x"]}
    ),
    "with a key of its own": lambda _: jwt.encode(
        payload(), OTHER, "RS256", headers={"kid": "one", "jwk": public_jwk(OTHER)}
    ),
    "with an address of keys": lambda _: jwt.encode(
        payload(), OTHER, "RS256", headers={"kid": "other", "jku": "http://evil.example"}
    ),
    "of other claims": lambda i: with_claims(i.token(), payload("lee@example.com")),
    "none": lambda _: "kim@example.com",
    "too long": lambda i: i.token(more="x" * 9000),
    "two, by a comma": lambda i: f"{i.token()}, {i.token()}",
    "another scheme": lambda i: f"Basic {i.token()}",
}


def test_shared_and_short_keys_are_refused(issuer: Issuer, by_token: ByToken) -> None:
    """Published keys that are symmetric, too short or for another use are not accepted."""
    issuer.extra = [
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0" * 8},
        public_jwk(rsa_key(1024)) | {"kid": "short"},
        public_jwk(OTHER) | {"kid": "sealing", "use": "enc"},
        public_jwk(OTHER) | {"kid": "other", "alg": "RS512"},
    ]
    shared = jwt.encode(payload(), b"secret" * 8, "HS256", headers={"kid": "shared"})
    assert "signed by 'HS256'" in who(by_token, bearer(shared))
    for key_id, why in (
        ("shared", "no key"),
        ("short", "too short"),
        ("sealing", "no key"),
        ("other", "for another algorithm"),
    ):
        assert why in who(by_token, bearer(signed_by(OTHER, "RS256", key_id)))


NAMED = ("X-Forwarded-Email", "Kim@Example.com")
PROVED = ("X-Fairlead-Secret", SECRET)


def test_header_counts_only_with_the_secret(by_header: ByHeader) -> None:
    """If the secret is right, the header proves a name. Its case and Unicode form do not matter."""
    others = [("X-Forwarded-User", "12345"), ("X-Forwarded-Groups", "a,b")]
    assert who(by_header, *others, NAMED, PROVED) == "kim@example.com"
    assert who(by_header, ("X-Forwarded-Email", "JOSÉ@example.com"), PROVED) == "josé@example.com"
    assert (
        who(by_header, ("X-Forwarded-Email", "k\uff49m@example.com"), PROVED) == "kim@example.com"
    )


#: Invalid headers, which `test_attacks` sends.
BAD_HEADERS: dict[str, Pairs] = {
    "without a secret": [NAMED],
    "with another secret": [NAMED, ("X-Fairlead-Secret", "t" * 40)],
    "with a part of it": [NAMED, ("X-Fairlead-Secret", SECRET[:-1])],
    "with an empty secret": [NAMED, ("X-Fairlead-Secret", "")],
    "with two secrets": [NAMED, PROVED, PROVED],
    "with a secret and more": [NAMED, ("X-Fairlead-Secret", f"{SECRET}, x")],
    "without a name": [PROVED],
    "of two names": [NAMED, ("X-Forwarded-Email", "lee@example.com"), PROVED],
    "of the same name twice": [NAMED, NAMED, PROVED],
    "of a list of names": [("X-Forwarded-Email", "kim@example.com, lee@example.com"), PROVED],
    "spelt with _": [("X_Forwarded_Email", "kim@example.com"), PROVED],
    "spelt with _ besides": [NAMED, ("X_Forwarded_Email", "lee@example.com"), PROVED],
    "spelt with _ in part": [NAMED, ("X-Forwarded_Email", "lee@example.com"), PROVED],
    "a secret spelt with _": [NAMED, ("X_Fairlead_Secret", SECRET)],
    "of an empty name": [("X-Forwarded-Email", ""), PROVED],
    "of a name of blanks": [("X-Forwarded-Email", " \u00a0 "), PROVED],
    "of a name with zero width": [("X-Forwarded-Email", "ki\u200bm"), PROVED],
    "of a name turned around": [("X-Forwarded-Email", "\u202emik"), PROVED],
    "of a name with a filler": [("X-Forwarded-Email", "kim\u3164"), PROVED],
    "of a name with a selector": [("X-Forwarded-Email", "kim\ufe0f"), PROVED],
    "of a long name": [("X-Forwarded-Email", "k" * 300), PROVED],
    "by another header": [("X-Forwarded-User", "kim"), PROVED],
}


def test_secret_is_not_shown(by_header: ByHeader) -> None:
    """A refusal shows neither the secret nor the value that was sent; settings hide the secret."""
    sent = "t" * 40
    reason = who(by_header, NAMED, ("X-Fairlead-Secret", sent))
    assert SECRET not in reason + repr(by_header._settings)  # noqa: SLF001 - what logs might show
    assert sent not in reason


def test_name_that_is_not_utf_8_is_refused(by_header: ByHeader) -> None:
    """A header whose bytes are not valid UTF-8 proves nothing."""
    raw = [(b"x-forwarded-email", b"jos\xe9"), (b"x-fairlead-secret", SECRET.encode())]
    with pytest.raises(NotProvenError):
        by_header.person(raw)

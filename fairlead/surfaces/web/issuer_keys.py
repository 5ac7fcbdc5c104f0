"""The public keys of the tokens' issuer, cached by key id.

Belongs here: fetching and caching the keys, and limiting requests for unknown keys. Belongs
elsewhere: checking tokens (`identity`).
"""

import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fairlead.errors import FairleadError

#: Seconds for which keys are cached. The time is short, so that a revoked key is soon refused.
KEPT_S: Final = 300.0
#: Seconds. Minimum time between two fetches. Otherwise tokens with unknown key ids could cause many
#: fetches.
REST_S: Final = 10.0
_TIMEOUT_S: Final = 5.0
#: Maximum number of requests that wait for the issuer at once. More could occupy all threads.
_WAITING: Final = 4
_MOST_BYTES: Final = 2**18
#: Accepted types of keys: only public keys. With a shared key, everyone who can verify could sign.
_PUBLIC: Final = frozenset({"RSA", "EC", "OKP"})


class KeysUnavailableError(FairleadError):
    """The issuer's keys are not available."""


class Keys:
    """The cached keys of an issuer.

    Parameters
    ----------
    url
        Address of the issuer's JSON Web Key Set.
    clock
        Returns seconds of a monotonic clock.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_WAITING)
        self._read: tuple[Mapping[str, Mapping[str, Any]], float] = {}, float("-inf")
        self._tried = float("-inf")
        self._fetching: threading.Thread | None = None
        self._failed = ""

    def find(self, key_id: str) -> Mapping[str, Any] | None:
        """Return a key as the issuer publishes it; None: the issuer has no key with this id.

        If the cache does not have the key, fetches the keys. The call waits for the fetch, unless
        the last fetch failed, or many other requests wait already.

        Raises
        ------
        KeysUnavailableError
            The issuer does not answer with keys, and the cached keys have expired.
        """
        keys = self._cached()
        if keys is None or key_id not in keys:
            self._fetch_again(patient=keys is None)
            keys = self._cached()
        if keys is None:
            why = self._failed or "it has not answered yet"
            raise KeysUnavailableError(f"the issuer's keys are not available: {why}")
        return keys.get(key_id)

    def _fetch_again(self, *, patient: bool) -> None:
        """Fetch the keys in the background, unless the last fetch began less than `REST_S` ago.

        Parameters
        ----------
        patient
            Whether to wait even if another request has started the fetch.
        """
        with self._lock:
            first = self._fetching is None and self._clock() - self._tried >= REST_S
            if first:
                self._tried = self._clock()
                self._fetching = threading.Thread(target=self._fetch, daemon=True)
                self._fetching.start()
            fetching, waits = self._fetching, (first or patient) and not self._failed
        if fetching and waits and self._places.acquire(blocking=False):
            try:
                fetching.join()
            finally:
                self._places.release()

    def _cached(self) -> Mapping[str, Mapping[str, Any]] | None:
        keys, fetched = self._read
        return keys if self._clock() - fetched < KEPT_S else None

    def _fetch(self) -> None:
        failed = ""
        try:
            self._read = _read(self._url), self._tried
        except RecursionError:
            failed = "no key set"
        except (OSError, ValueError) as error:
            failed = str(error) or type(error).__name__
        with self._lock:
            self._fetching, self._failed = None, failed


def _read(url: str) -> dict[str, Mapping[str, Any]]:
    """Read the issuer's key set; return its public keys for signatures, by key id."""
    try:
        content = json.loads(_fetched(url))
    except http.client.HTTPException:  # not shown: its message may contain the address
        raise ValueError("its answer is not HTTP") from None
    except TimeoutError:
        raise TimeoutError(f"it did not answer within {_TIMEOUT_S:g} s") from None
    if not isinstance(content, dict) or not isinstance(content.get("keys"), list):
        raise ValueError("no key set")  # noqa: TRY004 - the content is wrong, not a type
    return {
        key["kid"]: key
        for key in content["keys"]
        if isinstance(key, dict)
        and isinstance(key.get("kid"), str)
        and key.get("kty") in _PUBLIC
        and key.get("use", "sig") == "sig"
    }


def _fetched(url: str) -> bytes:
    """Return the body of the issuer's answer; redirects are not followed."""
    opener = urllib.request.OpenerDirector()
    # Use a proxy only for HTTPS: without TLS, a proxy could read and change requests.
    proxies = {kind: at for kind, at in urllib.request.getproxies().items() if kind == "https"}
    for handler in (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
    ):
        opener.add_handler(handler)
    until = time.monotonic() + _TIMEOUT_S
    with opener.open(url, timeout=_TIMEOUT_S) as answer:
        if answer.status != HTTPStatus.OK:
            raise ValueError(f"it answered {answer.status}")
        body = b""
        while len(body) < _MOST_BYTES and (piece := answer.read1(_MOST_BYTES - len(body))):
            body += piece
            if time.monotonic() > until:
                raise TimeoutError
    return body

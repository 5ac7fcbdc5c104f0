"""The issuer's public keys, by the id that a token names.

Belongs here: fetching them, for how long they count, and how often somebody may ask for keys that
there are not. Does not: what is signed with them (`identity`).
"""

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.errors import FairleadError

#: Keys are fetched again after this: one that the issuer took back counts no longer.
KEPT_S: Final = 300.0
#: A token may name any key: the issuer is asked for unknown ones this often, no more.
REST_S: Final = 10.0
_TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 2**18
#: A shared key is no public one: who knows it could sign for anybody.
_PUBLIC: Final = frozenset({"RSA", "EC", "OKP"})


class KeysUnavailableError(FairleadError):
    """The issuer's keys cannot be had now."""


class Keys:
    """The keys at an address.

    Parameters
    ----------
    url
        The issuer's JSON Web Key Set.
    clock
        Seconds that never go back.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._known: Mapping[str, Mapping[str, Any]] = {}
        self._fetched = self._tried = float("-inf")
        self._failed = ""

    def find(self, key_id: str) -> Mapping[str, Any] | None:
        """Return a key as the issuer publishes it; None: it publishes no such key.

        Raises
        ------
        KeysUnavailableError
            The issuer does not answer, or not with keys, and what it answered before is too old.
        """
        with self._lock:
            old = self._clock() - self._fetched >= KEPT_S
            if (old or key_id not in self._known) and self._clock() - self._tried >= REST_S:
                self._fetch()
                old = self._clock() - self._fetched >= KEPT_S
            if old:
                raise KeysUnavailableError(f"the issuer's keys cannot be had: {self._failed}")
            return self._known.get(key_id)

    def _fetch(self) -> None:
        self._tried = self._clock()
        try:
            self._known = _read(self._url)
        except (OSError, ValueError) as error:  # HTTP and URL errors are OSErrors
            self._failed = str(error)
        else:
            self._fetched = self._tried


def _opener() -> urllib.request.OpenerDirector:
    """Return what follows no redirect: keys come from where the settings say alone."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
    ):
        opener.add_handler(handler())
    return opener


def _read(url: str) -> dict[str, Mapping[str, Any]]:
    """Return the keys by their ids; those that sign nothing for us are left out."""
    with _opener().open(url, timeout=_TIMEOUT_S) as answer:
        text = answer.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    found = json.loads(text)
    if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
        raise ValueError("no key set")  # noqa: TRY004 - of what is read
    return {
        key["kid"]: key
        for key in found["keys"]
        if isinstance(key, dict)
        and isinstance(key.get("kid"), str)
        and key.get("kty") in _PUBLIC
        and key.get("use", "sig") == "sig"
    }

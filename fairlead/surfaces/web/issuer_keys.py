"""The issuer's public keys, by the id that a token names.

Belongs here: fetching them, for how long they count, and how often somebody may ask for keys that
there are not. Does not: what is signed with them (`identity`).
"""

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fairlead.common.http import fetch
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
        self._read: tuple[Mapping[str, Mapping[str, Any]], float] = {}, float("-inf")
        self._tried = float("-inf")
        self._failed = "it has not answered yet"

    def find(self, key_id: str) -> Mapping[str, Any] | None:
        """Return a key as the issuer publishes it; None: it publishes no such key.

        Raises
        ------
        KeysUnavailableError
            The issuer does not answer, or not with keys, and what it answered before is too old.
        """
        keys = self._that_count()
        if keys is None or key_id not in keys:
            # Somebody may make up keys while the issuer hangs: who knows theirs waits for nobody.
            if self._lock.acquire(timeout=_TIMEOUT_S if keys is None else 0):
                try:
                    if self._clock() - self._tried >= REST_S:
                        self._fetch()
                finally:
                    self._lock.release()
            keys = self._that_count()
        if keys is None:
            raise KeysUnavailableError(f"the issuer's keys cannot be had: {self._failed}")
        return keys.get(key_id)

    def _that_count(self) -> Mapping[str, Mapping[str, Any]] | None:
        keys, fetched = self._read
        return keys if self._clock() - fetched < KEPT_S else None

    def _fetch(self) -> None:
        self._tried = self._clock()
        try:
            self._read = _read(self._url), self._tried
        except RecursionError:
            self._failed = "no key set"
        except (OSError, ValueError) as error:
            self._failed = str(error)


def _read(url: str) -> dict[str, Mapping[str, Any]]:
    """Return the keys by their ids; those that sign nothing for us are left out."""
    request = urllib.request.Request(url)  # noqa: S310 - of the settings, which have looked at it
    status, text = fetch(request, timeout_s=_TIMEOUT_S, most_bytes=_MOST_BYTES)
    if status != HTTPStatus.OK:
        raise ValueError(f"it answered {status}")
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

"""Thinning out the archive: which samples are removed, and when.

Belongs here: `tidy`. Belongs elsewhere: removing a single file (`files`).

Samples older than the retention are removed. From each interval (quarter of an hour) that ended
over 75 minutes ago, two samples of each group are kept: the newest one, and the newest one without
an error. Files of the interval that have no such sample are removed.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from fairlead.archive.files import DAMAGED, SampleFile, SampleFiles, day_of
from fairlead.domain.history import EVERY_SAMPLE, THINNED_TO
from fairlead.errors import FileSystemError

#: Age at which an unfinished file is removed. Another process may still be writing a younger file.
_GRACE: Final = timedelta(minutes=15)
#: File that lists the intervals from which several sample files are kept. `tidy` skips them,
#: because it has thinned them already.
_THINNED: Final = "thinned.json"


def tidy(
    files: SampleFiles, now: datetime, retention: timedelta, keep: Collection[str] = ()
) -> None:
    """Remove samples older than the retention, and thin out old samples (see the module).

    Parameters
    ----------
    keep
        Ids of samples to keep until the retention ends.

    Raises
    ------
    FileSystemError
        A file could not be removed or written; raised after everything else is done.
    """
    problem: FileSystemError | None = None
    for step in _steps(files, now, retention, frozenset(keep)):
        try:
            step()
        except FileSystemError as error:
            problem = problem or error
    if problem is not None:
        raise problem


def _steps(
    files: SampleFiles, now: datetime, retention: timedelta, keep: Collection[str]
) -> Iterator[Callable[[], None]]:
    """Yield the steps of `tidy`, which do not depend on each other."""
    over, old = _interval_of(now - EVERY_SAMPLE - THINNED_TO), dict[int, list[SampleFile]]()
    for file in files.taken_between(datetime.min.replace(tzinfo=UTC), now):
        if file.at < now - retention:
            yield partial(files.remove, file.path)
        elif _interval_of(file.at) < over:
            old.setdefault(_interval_of(file.at), []).append(file)
    for day in files.days():
        for entry in files.entries(day):
            if entry.base_name.startswith("_") and entry.mtime < now - _GRACE:
                yield partial(files.remove, f"{day}/{entry.base_name}")
        if day < day_of(now - retention - timedelta(days=1)):
            yield partial(files.remove_day, day)
    yield partial(_remove_damaged, files, f"{now - retention:%Y%m%dT%H%M}")
    yield partial(_thin, files, old.values(), keep)


def _thin(
    files: SampleFiles, intervals: Iterable[Sequence[SampleFile]], keep: Collection[str]
) -> None:
    """Remove files without a needed sample from intervals (quarters of an hour).

    If several files of an interval are needed, stores the name of the interval. Later calls then do
    not read these files again.
    """
    known, several = files.read_json(_THINNED), dict[str, str]()
    for interval in intervals:
        if len(interval) == 1:
            continue
        name, needed = str(_interval_of(interval[0].at)), interval
        if known.get(name) != _digest(interval, keep):
            readable = _needed(files, interval, keep)
            if readable is None:
                continue
            needed = readable
        if len(needed) > 1:
            several[name] = _digest(needed, keep)
    if several != known:
        files.write(_THINNED, json.dumps(several).encode())


def _needed(
    files: SampleFiles, interval: Sequence[SampleFile], keep: Collection[str]
) -> list[SampleFile] | None:
    """Remove unneeded files from an interval, and return the needed ones.

    A file is needed if it is in `keep`, or has a group's newest sample in the interval, or a
    group's newest sample without an error.

    Parameters
    ----------
    interval
        The files of a quarter of an hour, the oldest first.

    Returns
    -------
    The needed files. None if a file could not be read: the next call tries again.
    """
    newest, whole = set[tuple[str, int]](), set[tuple[str, int]]()
    needed, readable = list[SampleFile](), True
    for file in reversed(interval):
        rows = files.read(file.path, columns=["group", "at", "error"])
        if rows is None:
            readable = False
            continue
        keys = [(row["group"], _interval_of(row["at"])) for row in rows.to_pylist()]
        sound = rows["error"].is_null().to_pylist()
        known = (
            key in whole or (key in newest and not is_sound)
            for key, is_sound in zip(keys, sound, strict=True)
        )
        if file.sample_id not in keep and all(known):
            files.remove(file.path)
            continue
        needed.append(file)
        newest.update(keys)
        whole.update(key for key, is_sound in zip(keys, sound, strict=True) if is_sound)
    return needed[::-1] if readable else None


def _remove_damaged(files: SampleFiles, oldest: str) -> None:
    for name in files.damaged():
        if name < oldest:
            files.remove(f"{DAMAGED}/{name}")


def _digest(files: Sequence[SampleFile], keep: Collection[str]) -> str:
    """Return a digest that changes if files come or go, or if `keep` lists other files."""
    text = json.dumps([(file.path, file.sample_id in keep) for file in files])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _interval_of(at: datetime) -> int:
    """Return the quarter of an hour that a time is in, as a number counted from the epoch."""
    return int(at.timestamp() // THINNED_TO.total_seconds())

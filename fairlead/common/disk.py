"""Error messages for the file system, with the operation, the path and a remedy.

Belongs here: messages, and which errors mean a full disk. Belongs elsewhere: writing files.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlead.errors import FileSystemError

#: Errors that only file systems raise: disk full, quota or file size exceeded, mounted read-only.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_REMEDIES: Final = {
    errno.ENOTDIR: "Remove the file that is in the way",
    errno.EACCES: "Give this user the right to do so",
    errno.EPERM: "Give this user the right to do so",
    errno.EROFS: "Mount it writable",
} | dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free some space there")
#: Message of the FileNotFoundError that `tempfile` raises if no directory is usable.
_NO_TEMPORARY: Final = "No usable temporary directory found"
_ELSEWHERE: Final = "set state_dir or warehouse to another place"


def cannot(
    verb: str, place: str | Path, error: OSError, *, otherwise: str = _ELSEWHERE
) -> FileSystemError:
    """Return the error to raise in place of an OSError.

    Parameters
    ----------
    verb
        The operation, such as `write` or `list`.
    place
        The path or URI.
    otherwise
        A second remedy for the message.

    Examples
    --------
    >>> print(cannot("write", "/srv/samples", OSError(errno.ENOSPC, "Error writing bytes to file")))
    cannot write /srv/samples: No space left on device. Free some space there, or set state_dir or
    warehouse to another place
    """
    reason = os.strerror(error.errno) if error.errno else str(error)
    remedy = _REMEDIES.get(error.errno or 0, "Make sure that it can be reached")
    remedies = ", or ".join(filter(None, (remedy, otherwise)))
    return FileSystemError(f"cannot {verb} {place}: {reason}. {remedies}")


@contextmanager
def room_in(place: str | Path, *, otherwise: str = _ELSEWHERE) -> Iterator[None]:
    """Replace the error of a full or read-only disk with an error that has a path and a remedy.

    Does not replace other errors, such as refused connections.

    Parameters
    ----------
    place
        Path to which the `with` block writes; named in the message if the error has no path.
    otherwise
        A second remedy for the message.

    Raises
    ------
    FileSystemError
        The disk is full or read-only.
    """
    try:
        yield
    except OSError as error:
        if _NO_TEMPORARY in str(error):
            raise FileSystemError(f"{error.strerror}. Free some space in one of them") from error
        if error.errno not in _NO_ROOM:
            raise
        raise cannot("write", error.filename or place, error, otherwise=otherwise) from error

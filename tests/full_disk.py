"""A disk without room, as this process or a command sees it: files have a limit of size.

Belongs here: making one without being root. Does not: what is tested on it.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_room() -> Iterator[None]:
    """Let every write of this process to a file fail by EFBIG; pipes and sockets work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def without_room(*command: str | Path, blocks: int = 1) -> list[str]:
    """Return a command line under which a command finds room for so many blocks in each file.

    A block has 512 bytes: enough for Python to find a directory for temporary files.
    """
    return ["sh", "-c", f'ulimit -f {blocks} && exec "$@"', "sh", *map(str, command)]

"""Simulate a full disk for this process or a command by limiting file sizes, without root."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_room() -> Iterator[None]:
    """Let each write of this process to a file fail with EFBIG; pipes and sockets work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def without_room(*command: str | Path, blocks: int = 1) -> list[str]:
    """Return a command line that limits files to this many blocks of 512 bytes.

    One block is enough for Python to find a directory for temporary files.
    """
    return ["sh", "-c", f'ulimit -f {blocks} && exec "$@"', "sh", *map(str, command)]

"""Simulate a full disk by limiting the size of files, which does not require root."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def no_room() -> Iterator[None]:
    """Make writes of this process to files fail with EFBIG. Pipes and sockets still work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def without_room(*command: str | Path, blocks: int = 1) -> list[str]:
    """Return a command line that runs a command and limits its files to `blocks` * 512 bytes.

    With one block, Python can still check that a directory for temporary files is writable.
    """
    return ["sh", "-c", f'ulimit -f {blocks} && exec "$@"', "sh", *map(str, command)]

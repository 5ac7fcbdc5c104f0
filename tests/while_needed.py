"""Stop the services of a group of tests after its last test.

An idle broker uses one second of CPU time per minute. `conftest` defines the groups of tests.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest

_OF_GROUP: Final[defaultdict[str, list[ExitStack]]] = defaultdict(list)
_LAST: Final[dict[str, str]] = {}


@contextmanager
def while_needed(group: str) -> Iterator[ExitStack]:
    """Yield a stack that is closed after the group's last test, or at the end of the block."""
    with ExitStack() as stack:
        _OF_GROUP[group].append(stack)
        yield stack


def note_last(items: Sequence[pytest.Item]) -> None:
    """Record the last test of each group in `items`, the order in which a process runs tests."""
    _LAST.update({_group(item): item.nodeid for item in items})


def end_after(item: pytest.Item) -> None:
    """Close the stacks of a test's group if this was the group's last test."""
    if _LAST.get(_group(item)) == item.nodeid:
        for stack in _OF_GROUP.pop(_group(item), ()):
            stack.close()


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return "" if mark is None else str(mark.args[0])  # doctests have no mark

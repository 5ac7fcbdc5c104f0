"""Raise an exception at a chosen line of a member's code, as Ctrl-C may do at any line."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from fairlead.followers.confluent import (
    agreement_round,
    generation,
    log_listener,
    member,
    rejoin_policy,
)

MODULES = (generation, member, log_listener, rejoin_policy, agreement_round)
#: Module names, by file.
FILES = {str(module.__file__): Path(str(module.__file__)).stem for module in MODULES}
Line = tuple[str, int]


class Interrupted(BaseException):
    """Simulates an exception from a signal handler of the application."""


@contextmanager
def traced(reach: Callable[[Line], None]) -> Iterator[None]:
    """Call a function before each executed line of `MODULES`."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        module = FILES.get(frame.f_code.co_filename)
        if module is None:
            return None
        if event == "line":
            reach((module, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


class Interruption:
    """Raises once, when a line is reached for the n-th time.

    Parameters
    ----------
    line
        Module and line number; None: count lines, but raise nothing.
    nth
        Which execution of the line raises, counted from 1.
    """

    def __init__(self, line: Line | None = None, nth: int = 1) -> None:
        self.reached: dict[Line, int] = {}
        self.raised = False
        self._line, self._nth = line, nth

    def __call__(self, line: Line) -> None:
        """Count an execution of a line; raise Interrupted at the chosen one."""
        self.reached[line] = self.reached.get(line, 0) + 1
        if line == self._line and self.reached[line] == self._nth:
            self.raised = True
            raise Interrupted

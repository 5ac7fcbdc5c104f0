"""Raise an exception at any line of the followers' code, as Ctrl-C may."""

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
#: Path of each traced module's file, to the module's name in a `Line`.
FILES = {str(module.__file__): Path(str(module.__file__)).stem for module in MODULES}
Line = tuple[str, int]


class Interrupted(BaseException):
    """The exception that a signal handler of the application raises."""


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
    """Counts executed lines, and raises `Interrupted` at the n-th execution of one line.

    Parameters
    ----------
    line
        Module and number of the line that raises; if None, no line raises.
    nth
        Execution of the line that raises, counted from 1.
    """

    def __init__(self, line: Line | None = None, nth: int = 1) -> None:
        self.reached: dict[Line, int] = {}
        self.raised = False
        self._line, self._nth = line, nth

    def __call__(self, line: Line) -> None:
        """Count one execution of a line, and raise if it is the chosen one."""
        self.reached[line] = self.reached.get(line, 0) + 1
        if line == self._line and self.reached[line] == self._nth:
            self.raised = True
            raise Interrupted

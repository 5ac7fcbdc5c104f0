"""Find tests that depend on seconds.

Tests pass on a machine that is slow and busy: they wait until something happens, bounded by
minutes, and compare what work costs by `tests.cost`. A short sleep, a short time-out and a clock
that measures need a comment `# clock: REASON` on their line or above it, or `# clocks: REASON` on a
line of its own for a whole file. A test that asserts something of measured seconds needs one at
the assertion.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

#: Clocks that measure; those that tell the date are no problem.
MEASURES: Final = re.compile(r"time\.(monotonic|perf_counter|process_time|thread_time)(_ns)?")
RESTS: Final = {"time.sleep", "asyncio.sleep"}
#: Arguments and settings that bound a wait; those that end in "ms" are milliseconds.
BOUND: Final = re.compile(r"(\w+[._])*(within|timeout|patience|grace|deadline)([._](s|ms))?")
#: Methods that wait for the next of many, within a loop.
POLLS: Final = {"consume", "current", "getmany", "poll", "read"}
#: Seconds. A longer bound needs no reason; a session only has to outlast a stall.
LEAST_S: Final = 300.0
LEAST_SESSION_S: Final = 30.0
_REASON: Final = re.compile(r"# clock: \S")
_REASON_OF_FILE: Final = re.compile(r"^# clocks: \S", re.MULTILINE)


def uses_without_reason(text: str) -> list[str]:
    """Return the line and the code of each use of a clock in a Python file that needs a reason."""
    if _REASON_OF_FILE.search(text):
        return []
    lines = ["", *text.splitlines()]
    return [
        f"{node.lineno}: {ast.unparse(node)[:100]}"
        for node in _uses(ast.parse(text))
        if not any(
            _REASON.search(line) for line in lines[node.lineno - 1 : (node.end_lineno or 0) + 1]
        )
    ]


def _uses(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            short = name not in RESTS or (_number(node.args[0]) or 0.0) < LEAST_S
            if MEASURES.fullmatch(name) or (name in RESTS and short):
                yield node
            if name.rpartition(".")[2] not in POLLS:
                yield from (word.value for word in node.keywords if _is_short(word.arg, word.value))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and _is_short(str(key.value), value):
                    yield value
        elif isinstance(node, ast.FunctionDef) and MEASURES.search(ast.unparse(node)):
            yield from (
                part
                for part in ast.walk(node)
                if isinstance(part, ast.Assert) and re.search(r"[<>]", ast.unparse(part.test))
            )


def _is_short(name: str | None, value: ast.expr) -> bool:
    """Whether a bound of this name is so short that a slow machine may reach it."""
    number = _number(value)
    if name is None or number is None or not BOUND.fullmatch(name):
        return False
    seconds = number / 1000 if name.endswith("ms") else number
    return 0 < seconds < (LEAST_SESSION_S if re.search("session|rebalance", name) else LEAST_S)


def _number(value: ast.expr) -> float | None:
    """Return a number that is written down; None: it is none."""
    is_number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    return float(ast.literal_eval(value)) if is_number else None

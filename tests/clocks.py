"""List each use of a clock in the tests, with its purpose: `python -m tests.clocks`.

Tests must pass on a slow and busy machine: they wait until something happens, with time-outs of
minutes, and assert how long work takes only as a ratio to other work (`tests.cost`). Dates, and
time-outs of minutes, need no comment. Any other use of a clock needs a comment with its purpose:
`# clock: ...` on its line or above it, or `# clocks: ...` on a separate line for a whole file. A
test must not assert an upper bound of seconds, even with a comment.

Belongs here: these rules, and finding the uses. Belongs elsewhere: the test that fails if a use
breaks a rule (`test_clocks`).
"""

import ast
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.waiting import PATIENCE_S

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("tests", "examples")
#: Calls: DATES return the date, MEASURES are clocks that only measure durations, RESTS sleep.
DATES: Final = {"datetime.now", "time.time", "time.time_ns"}
MEASURES: Final = {
    f"time.{clock}{unit}"
    for clock in ("monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
}
RESTS: Final = {"time.sleep", "asyncio.sleep"}
#: Calls that need no comment, and their purpose.
RULES: Final = {
    **dict.fromkeys(DATES, "dates data"),
    **dict.fromkeys(("eventually", "returned", "wait_until"), "waits until"),
    "costs_at_most": "ratio",
}
#: Names of arguments and settings that limit how long a call waits.
BOUND: Final = re.compile(r"(\w+[._])*(within|timeout|patience|grace|deadline)([._](s|ms))?")
#: Methods that may have a time-out as their only argument.
WAITS: Final = {"flush", "get", "join", "result", "wait"}
#: Methods that are called in a loop to wait for the next item; their time-outs may be short.
POLLS: Final = {"consume", "current", "getmany", "poll", "read"}
#: Seconds. Time-outs below LEAST_S (waits) or LEAST_SESSION_S (group sessions) need a comment.
LEAST_S: Final = 300.0
LEAST_SESSION_S: Final = 30.0
NOTHING: Final = "NOTHING SAYS WHAT FOR"
_CALLS: Final = re.compile("|".join(rf"\b{re.escape(n)}\(" for n in DATES | MEASURES | RESTS))
_OF_LINE: Final = re.compile(r"# clock: (.+?)\s*$")
_OF_FILE: Final = re.compile(r"^# clocks: (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Use:
    """A use of a clock in a test.

    Parameters
    ----------
    path, line, text
        File, line, and the source of the call or time-out.
    purpose
        Purpose, from a rule or a comment; None if neither gives one.
    """

    path: Path
    line: int
    text: str
    purpose: str | None

    def __str__(self) -> str:
        where = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        text = textwrap.shorten(self.text, 100, placeholder=" ...")
        return f"{where}:{self.line}: {text}  # {self.purpose or NOTHING}"


class _Source:
    """A Python file that is searched for uses of clocks."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._lines = path, text.splitlines()
        of_file = _OF_FILE.search(text)
        self._of_file = of_file[1] if of_file else None
        self._constants: dict[str, float | None] = {}

    def uses(self) -> list[Use]:
        """Return the uses of clocks, sorted by line."""
        return sorted(self._uses(ast.parse("\n".join(self._lines)), 0), key=lambda use: use.line)

    def _uses(self, tree: ast.Module, above: int) -> Iterator[Use]:
        """Yield the uses of clocks in code that begins after line `above` of the file."""
        constants = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        self._constants |= {
            ast.unparse(name): _number(node.value)
            for node in constants
            for name in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield from self._calls(node, above)
            elif isinstance(node, ast.Dict):
                for key, setting in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant):
                        yield from self._bounds(str(key.value), setting, above)
            elif isinstance(node, ast.Constant) and _CALLS.search(str(node.value)):
                yield from self._program(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from self._assertions(node, above)
            elif isinstance(node, ast.ImportFrom) and node.module == "time":
                yield self._use(node, above, ast.unparse(node), None)

    def _calls(self, node: ast.Call, above: int) -> Iterator[Use]:
        name = _name(node.func)
        method = name.rpartition(".")[2]
        rule = RULES.get(name) or RULES.get(method)
        if name in RESTS and (_number(node.args[0]) or 0.0) >= LEAST_S:
            rule = "until it is ended"
        if rule or name in MEASURES | RESTS:
            yield self._use(node, above, ast.unparse(node), rule)
        if method in WAITS and "." in name and len(node.args) == 1:
            yield from self._bounds("timeout", node.args[0], above)
        for keyword in node.keywords:
            if keyword.arg is not None and method not in POLLS:
                yield from self._bounds(keyword.arg, keyword.value, above)

    def _bounds(self, name: str, value: ast.expr, above: int) -> Iterator[Use]:
        number = _number(value)
        if number is None and isinstance(value, ast.Name):
            number = PATIENCE_S if value.id == "PATIENCE_S" else self._constants.get(value.id)
        if not BOUND.fullmatch(name) or number is None:
            return
        seconds = number / 1000 if name.endswith("ms") else number
        least = LEAST_SESSION_S if "session" in name or "rebalance" in name else LEAST_S
        rule = "bound of minutes" if seconds >= least else None if seconds else "does not wait"
        yield self._use(value, above, f"{name}={ast.unparse(value)}", rule)

    def _program(self, node: ast.Constant) -> Iterator[Use]:
        """Yield the uses of clocks in a string that may be a Python program."""
        try:
            tree = ast.parse(textwrap.dedent(str(node.value)))
        except SyntaxError:  # the string is not a program but, for example, a docstring
            return
        yield from self._uses(tree, node.lineno - 1)

    def _assertions(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, above: int
    ) -> Iterator[Use]:
        """Yield the comparisons of elapsed seconds in a function's assertions."""
        lines = self._lines[above + function.lineno - 1 : above + (function.end_lineno or 0)]
        if not _CALLS.search("\n".join(lines)):
            return
        times = _Times(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                for part in ast.walk(node.test):
                    if isinstance(part, ast.Compare) and times.are_in(part):
                        yield self._use(part, above, ast.unparse(part), times.rule(part), last=True)

    def _use(
        self,
        node: ast.stmt | ast.expr,
        above: int,
        text: str,
        rule: str | None,
        *,
        last: bool = False,
    ) -> Use:
        first, end = above + node.lineno, above + (node.end_lineno or node.lineno)
        lines = self._lines[first - 1 : end]
        if first > 1 and self._lines[first - 2].lstrip().startswith("#"):
            lines.append(self._lines[first - 2])
        purposes = [match[1] for line in lines if (match := _OF_LINE.search(line))]
        purpose = rule if rule or last else purposes[0] if purposes else self._of_file
        return Use(self._path, first, text, purpose)


class _Times:
    """Variables of a function that hold a point in time, or a number of elapsed seconds."""

    def __init__(self, function: ast.AST) -> None:
        self._moments, self._passed = set[str](), set[str]()
        for _ in range(2):  # twice, since a loop may use a variable above its assignment
            for name, value in _assigned(function):
                if self.are_in(value):
                    self._passed.add(name)
                elif self._has_moment(value):
                    self._moments.add(name)

    def are_in(self, node: ast.AST) -> bool:
        """Return whether an expression contains elapsed seconds."""
        return any(
            (isinstance(part, ast.Name) and part.id in self._passed)
            or (
                isinstance(part, ast.BinOp)
                and isinstance(part.op, ast.Sub)
                and self._has_moment(part.left)
                and self._has_moment(part.right)
            )
            for part in ast.walk(node)
        )

    def rule(self, compared: ast.Compare) -> str | None:
        """Return the rule that allows a comparison of elapsed seconds, or None if none does."""
        (operator, right) = compared.ops[0], compared.comparators[0]
        if self.are_in(compared.left) and self.are_in(right):
            return "ratio"
        if isinstance(operator, ast.Gt | ast.GtE) and self.are_in(compared.left):
            return "lower bound"
        return None if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else "no bound"

    def _has_moment(self, node: ast.AST) -> bool:
        return any(
            (isinstance(part, ast.Name) and part.id in self._moments)
            or (isinstance(part, ast.Call) and _name(part.func) in DATES | MEASURES)
            for part in ast.walk(node)
        )


def _assigned(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each variable that a function assigns or appends to, with the new value."""
    for node in ast.walk(function):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            for target in node.targets:
                both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs += zip(target.elts, node.value.elts) if both else [(target, node.value)]  # type: ignore[attr-defined] # noqa: B905
        elif isinstance(node, ast.NamedExpr | ast.AugAssign | ast.AnnAssign) and node.value:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Call) and _name(node.func).endswith(".append"):
            pairs = [(node.func.value, node.args[0])]  # type: ignore[attr-defined]
        yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _name(called: ast.expr) -> str:
    """Return the dotted name of a called expression; parts that are no names are left out."""
    if isinstance(called, ast.Attribute):
        return f"{_name(called.value)}.{called.attr}"
    return called.id if isinstance(called, ast.Name) else ""


def _number(value: ast.expr | None) -> float | None:
    """Return the value of a literal number, or the smaller number in a call of `form`, or None."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return float(value.value)
    if isinstance(value, ast.Call) and _name(value.func) == "form":
        numbers = [_number(keyword.value) for keyword in value.keywords]
        return min((number for number in numbers if number is not None), default=None)
    return None


def uses_in(text: str, path: Path = Path("a file")) -> list[Use]:
    """Return the uses of clocks in the source of a Python file."""
    return _Source(path, text).uses()


def uses() -> list[Use]:
    """Return the uses of clocks in the tests and the examples."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return [use for path in paths for use in uses_in(path.read_text(), path)]


def main() -> None:
    """Print each use, and the number of uses for each purpose."""
    found = uses()
    for use in found:
        sys.stdout.write(f"{use}\n")
    for purpose, count in Counter(use.purpose or NOTHING for use in found).most_common():
        sys.stdout.write(f"{count:5} {purpose}\n")


if __name__ == "__main__":
    main()

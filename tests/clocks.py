"""List each use of a clock in the tests and what it is for: `python -m tests.clocks`.

Tests pass on a machine that is slow and busy: they wait until something happens, bounded by
minutes, and compare what work costs with `tests.cost`. Some uses are clear by themselves: dates, and
bounds of a minute or more. Every other one has a comment that starts with `# clock:` and says what
it is for, on its line or above it. Nothing asserts that something took less than so many seconds.

Belongs here: finding uses, and these rules. Does not: the failure (`test_repository`).
"""

import ast
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("tests", "examples")
#: Clocks that tell the date, and those that only measure.
DATES: Final = {"datetime.now", "time.time", "time.time_ns"}
MEASURES: Final = {
    f"time.{clock}{unit}"
    for clock in ("monotonic", "perf_counter", "process_time", "thread_time")
    for unit in ("", "_ns")
}
SLEEPS: Final = {"time.sleep", "asyncio.sleep"}
_CLOCK: Final = re.compile(
    "|".join(rf"\b{re.escape(name)}\(" for name in sorted(DATES | MEASURES | SLEEPS))
)
#: Arguments that bound a wait or a session, and settings of clients that do.
BOUNDS: Final = re.compile(
    r"(within|timeout|patience|grace|deadline|socket.timeout|session.timeout|rebalance.timeout"
    r"|bootstrap.timeout|request.timeout|connect.timeout|read.timeout|consumer.timeout)(.s|.ms)?"
)
#: Methods that may be given how long they wait at most, in seconds, as their first argument.
WAITS: Final = {"communicate", "flush", "get", "join", "result", "wait"}
#: What waits for less has to say why.
LEAST_S: Final = 300.0
#: These wait for the next record, within a loop.
POLLS: Final = {"poll", "consume", "getmany", "read", "current"}
_PURPOSE: Final = re.compile(r"# clock: (.+?)\s*$")


@dataclass(frozen=True)
class Use:
    """A use of a clock.

    Parameters
    ----------
    path, line, text
        Where it is, and what it says.
    purpose
        What it is for; None: nothing says so.
    """

    path: Path
    line: int
    text: str
    purpose: str | None

    def __str__(self) -> str:
        where = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{where}:{self.line}: {self.text} - {self.purpose or 'NOTHING SAYS WHAT FOR'}"


class _File:
    """The uses in one file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._constants: dict[str, float] = {}

    def uses(self) -> Iterator[Use]:
        """Yield each use, in order of the lines."""
        yield from self._in(ast.parse("\n".join(self._lines)), 0)

    def _in(self, tree: ast.Module, above: int) -> Iterator[Use]:
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                names = node.targets if isinstance(node, ast.Assign) else [node.target]
                if (value := _number(node.value)) is not None:
                    self._constants |= {ast.unparse(name): value for name in names}
        found: list[Use] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                found += self._call(node, above)
            elif isinstance(node, ast.Dict):
                settings = zip(node.keys, node.values, strict=True)
                for key, value in settings:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        found += self._bound(key.value, value, above)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += self._program(node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found += self._elapsed(node, above)
        yield from sorted(found, key=lambda use: use.line)

    def _call(self, node: ast.Call, above: int) -> Iterator[Use]:
        name = ast.unparse(node.func)
        if name in DATES:
            yield self._use(node, above, "dates data")
        elif name in MEASURES or name in SLEEPS:
            yield self._use(node, above)
        method = name.rpartition(".")[2]
        if method in WAITS and "." in name and len(node.args) == 1:
            yield from self._bound("timeout", node.args[0], above)
        for keyword in node.keywords:
            if keyword.arg is not None and method not in POLLS:
                yield from self._bound(keyword.arg, keyword.value, above)

    def _bound(self, name: str, value: ast.expr, above: int) -> Iterator[Use]:
        if not BOUNDS.fullmatch(name):
            return
        number = _number(value)
        if number is None and isinstance(value, ast.Name):
            number = self._constants.get(value.id)
        if number is not None:
            number /= 1000 if name.endswith("ms") else 1
            rule = "bound of minutes" if number >= LEAST_S else None
            yield self._use(value, above, rule, f"{name}={ast.unparse(value)}")

    def _program(self, node: ast.Constant) -> Iterator[Use]:
        """Yield uses in a program that a test writes or starts."""
        if not _CLOCK.search(str(node.value)):
            return
        try:
            tree = ast.parse(textwrap.dedent(str(node.value)))
        except SyntaxError:  # a docstring
            return
        yield from self._in(tree, node.lineno - 1)

    def _elapsed(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, above: int
    ) -> Iterator[Use]:
        """Yield comparisons with elapsed seconds; no comment excuses an upper bound."""
        instants, elapsed = set[str](), set[str]()

        def is_instant(node: ast.AST) -> bool:
            return _has(node, instants) or any(
                isinstance(part, ast.Call) and ast.unparse(part.func) in DATES | MEASURES
                for part in ast.walk(node)
            )

        def is_elapsed(node: ast.AST) -> bool:
            return _has(node, elapsed) or any(
                isinstance(part, ast.BinOp)
                and isinstance(part.op, ast.Sub)
                and is_instant(part.left)
                and is_instant(part.right)
                for part in ast.walk(node)
            )

        for _ in range(2):  # what is assigned below may be used above, in a loop
            for name, value in _assigned(function):
                if is_elapsed(value):
                    elapsed.add(name)
                elif is_instant(value):
                    instants.add(name)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                for part in ast.walk(node.test):
                    if isinstance(part, ast.Compare) and is_elapsed(part):
                        least = isinstance(part.ops[0], ast.Gt | ast.GtE) and is_elapsed(part.left)
                        rule = "lower bound" if least else None
                        yield self._use(part, above, rule, ast.unparse(part), final=True)

    def _use(
        self,
        node: ast.expr,
        above: int,
        rule: str | None = None,
        text: str | None = None,
        *,
        final: bool = False,
    ) -> Use:
        first, last = above + node.lineno, above + (node.end_lineno or node.lineno)
        last = min(last, len(self._lines))
        lines = self._lines[first - 1 : last]
        if first > 1 and self._lines[first - 2].lstrip().startswith("#"):
            lines.append(self._lines[first - 2])
        said = [match[1] for line in lines if (match := _PURPOSE.search(line))]
        purpose = rule if rule or final or not said else said[0]
        return Use(self._path, first, text or ast.unparse(node), purpose)


def _number(value: ast.expr) -> float | None:
    """Return a number that is written down, form(short=..., long=...) by its least; else None."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return None if isinstance(value.value, bool) else float(value.value)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "form":
        numbers = [_number(keyword.value) for keyword in value.keywords]
        return min((number for number in numbers if number is not None), default=None)
    return None


def _has(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _assigned(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name to which a function assigns, or appends, with the value."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=False)
                else:
                    pairs = zip([target], [node.value], strict=True)
                for name, value in pairs:
                    if isinstance(name, ast.Name):
                        yield name.id, value
        elif isinstance(node, ast.NamedExpr):
            yield node.target.id, node.value
        elif isinstance(node, ast.AugAssign | ast.AnnAssign) and node.value is not None:
            if isinstance(node.target, ast.Name):
                yield node.target.id, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "append" and isinstance(node.func.value, ast.Name):
                yield node.func.value.id, node.args[0]


def uses_in(path: Path, text: str) -> list[Use]:
    """Return the uses of a clock in a file's text."""
    return list(_File(path, text).uses())


def uses() -> list[Use]:
    """Return every use of a clock in the tests and the examples."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return [use for path in paths for use in uses_in(path, path.read_text())]


def main(_: Sequence[str]) -> None:
    """Print each use, and how many there are of each purpose."""
    found = uses()
    for use in found:
        sys.stdout.write(f"{use}\n")
    purposes = Counter((use.purpose or "NOTHING SAYS WHAT FOR").split(",")[0] for use in found)
    for purpose, count in purposes.most_common():
        sys.stdout.write(f"{count:5} {purpose}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Mutation testing: insert faults into code one at a time, and print those that no test notices.

`python -m tests.mutants --sample 150 --seed 1 [FILE ...]` chooses random places in the files (by
default all of `assignors` and `fairlead/domain`). For each fault, it runs the doctests and the test
file of the module; if they pass, it runs all quick tests of the folder that need no service. No
file is changed: a separate process imports the module with the fault.
"""

import argparse
import ast
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from types import CodeType
from typing import Final

import numpy as np  # noqa: F401 - so that not every process imports it again
import pytest

# clocks: the time of tests without a fault determines the time-out of tests with a fault

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("assignors", "fairlead/domain")
QUICK: Final = "not kafka and not postgres and not spark and not long"
#: Time-out of tests with a fault, as a multiple of their time without a fault.
PATIENCE: Final = 5.0
SWAPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def mutate(node: ast.AST) -> bool:
    """Insert a fault into a syntax node; return False if no fault fits this kind of node."""
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in SWAPPED:
            node.ops[0] = SWAPPED[type(operator)]()  # type: ignore[call-overload]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator):
            if type(operator) not in SWAPPED:
                return False
            node.op = SWAPPED[type(operator)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            node.operand = ast.UnaryOp(node.op, node.operand)  # two negations cancel each other
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
        case _:
            return False
    return True


def sites(tree: ast.AST) -> Iterator[int]:
    """Yield the positions, in the order of `ast.walk`, of nodes into which a fault can be inserted.

    Annotations and f-strings are left out, because tests need not notice faults in them.
    """
    silent = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            silent |= {id(part) for part in ast.walk(getattr(node, name, None) or ast.Pass())}
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in ast.walk(node)}
    for place, node in enumerate(ast.walk(tree)):
        if id(node) not in silent and mutate(deepcopy(node)):
            yield place


def mutant(path: Path, place: int) -> tuple[ast.Module, str]:
    """Return a module with a fault, and a line that describes the fault."""
    tree = ast.parse(path.read_text())
    node = next(node for number, node in enumerate(ast.walk(tree)) if number == place)
    before = ast.unparse(node)
    mutate(node)
    line = getattr(node, "lineno", 0)
    after = ast.unparse(node)
    return ast.fix_missing_locations(tree), f"{path.relative_to(ROOT)}:{line}: {before} -> {after}"


def suites(path: Path) -> Iterator[list[str]]:
    """Yield lists of tests for a fault in a file; a list runs if all tests before it passed."""
    mirror = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.name}")
    yield [str(path), *([str(mirror)] if mirror.exists() else [])]
    (folder,) = (name for name in FOLDERS if path.is_relative_to(ROOT / name))
    yield [str(ROOT / "tests" / folder)]


class Unshrunk:
    """Pytest plugin: hypothesis uses the same examples each time and does not shrink failures."""

    @staticmethod
    def pytest_configure() -> None:
        """Set hypothesis's profile for all tests."""
        from hypothesis import Phase, settings  # noqa: PLC0415 - pytest must load it first

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", phases=phases, derandomize=True, database=None)
        settings.load_profile("mutants")


def run(tests: list[str], path: Path | None, tree: ast.Module | None) -> None:
    """Run tests on a module with a fault; end this process with pytest's exit code."""
    original: Callable[[SourceFileLoader, str], CodeType | None] = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
        if path and tree and self.path == str(path):
            return compile(tree, str(path), "exec")
        return original(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    # `plain`, because pytest does not call `get_code` for modules whose asserts it rewrites.
    arguments = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-m", QUICK, *tests]
    os._exit(pytest.main(arguments, plugins=[Unshrunk()]))


def passes(tests: list[str], path: Path | None, tree: ast.Module | None, within_s: float) -> bool:
    """Return whether the tests pass in time, in spite of a fault."""
    process = get_context("fork").Process(target=run, args=(tests, path, tree))
    process.start()
    process.join(within_s)
    process.kill()
    process.join()
    return process.exitcode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def main() -> None:
    """Insert random faults, run the tests on each, and print the faults that no test notices."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    files = given.files or [
        file for name in FOLDERS for file in sorted((ROOT / name).rglob("*.py"))
    ]
    every = [
        (file.resolve(), place) for file in files for place in sites(ast.parse(file.read_text()))
    ]
    drawn = random.Random(given.seed).sample(every, min(given.sample, len(every)))
    found, began = Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        patience: dict[str, float] = {}
        for path, place in sorted(drawn):
            tree, line = mutant(path, place)
            survives = True
            for tests in suites(path):
                if (key := str(tests)) not in patience:
                    start = time.monotonic()
                    if not passes(tests, None, None, 600.0):
                        sys.exit(f"{tests} fails without any fault")
                    patience[key] = 10.0 + PATIENCE * (time.monotonic() - start)
                if not (survives := passes(tests, path, tree, patience[key])):
                    break
            found["survive" if survives else "are noticed"] += 1
            if survives:
                print(line, flush=True)  # noqa: T201
    took = time.monotonic() - began
    print(f"{len(drawn)} of {len(every)} faults, {dict(found)}, in {took:.0f} s")  # noqa: T201


if __name__ == "__main__":
    main()

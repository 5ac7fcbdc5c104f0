"""Rules for the whole repository."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "assets",
    "assignors",
    "benchmarks",
    "examples",
    "fairlead",
    "fairlead_planner",
    "migrations",
)
#: Forbidden names of variables, since they have no meaning.
EMPTY = {"one", "some", "shown", "here"}
TEXT = {".ini", ".java", ".mako", ".md", ".py", ".sql", ".toml", ".yaml", ".yml"}


def files(*folders: str) -> Iterator[Path]:
    """Yield all paths in some folders, and the paths directly in the repository's root."""
    for folder in folders:
        yield from (ROOT / folder).rglob("*")
    yield from ROOT.glob("*")


@cache
def tree(path: Path) -> ast.Module:
    """Parse a Python file."""
    return ast.parse(path.read_text())


def nodes(*folders: str) -> Iterator[tuple[Path, ast.AST]]:
    """Yield all syntax nodes of the Python files in some folders, each with its file."""
    for path in files(*folders):
        if path.suffix == ".py":
            for node in ast.walk(tree(path)):
                yield path, node


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield all test functions, each with its file, line and name."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in tree(path).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def test_no_test_is_skipped() -> None:
    """No test file uses pytest's skip or xfail: a test that cannot run must fail."""
    skips = re.compile(r"pytest\.(mark\.)?(skip|importorskip|xfail)")
    tests = (ROOT / "tests").rglob("test_*.py")
    assert [str(path) for path in tests if skips.search(path.read_text())] == []


@pytest.mark.long
def test_every_long_test_names_a_short_one() -> None:
    """A test that only `make test-long` runs names a test of `make test` for the same behaviour."""
    named = {where.split(":")[0] + "::" + test.name for where, test in functions()}
    left, guards = set(), {}
    for where, test in functions():
        for mark in test.decorator_list:
            if "test_long" in ast.unparse(mark):
                assert isinstance(mark, ast.Call), where
                left.add(f"{where.split(':')[0]}::{test.name}")
                guards[where] = ast.literal_eval(mark.keywords[0].value)
    assert guards
    assert {where: guard for where, guard in guards.items() if guard not in named - left} == {}


def test_no_variable_has_an_empty_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes(*FOLDERS, "orchestration")
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY)
        or (isinstance(node, ast.arg) and node.arg in EMPTY)
    ]
    assert found == []


def test_no_file_has_paths_of_a_developers_machine() -> None:
    paths = (f"{ROOT}/", f"{Path.home()}/")
    found = [
        str(path.relative_to(ROOT))
        for path in files(*FOLDERS, "docs", "orchestration", "tests")
        if path.suffix in TEXT and path.is_file()
        if re.search("|".join(map(re.escape, paths)), path.read_text())
    ]
    assert found == []


def test_no_text_asks_to_install_from_an_index() -> None:
    """No text tells users to install from PyPI, where our package's name may belong to others."""
    asks = (
        r"(?:pip install|poetry add|uv add|uvx|pipx \w+) [^\n`]*(?<![\w./-])(?:kafka-)?fairlead\b"
    )
    requires = r"(?<![\w./])(?:kafka-)?fairlead(?:\[|[=~]=|>=)"
    places = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in files(*FOLDERS, "deploy", "docs", "jvm", "orchestration")
        if path.is_file() and path.suffix in TEXT
        for found in re.finditer(f"{asks}|{requires}", path.read_text())
        if "dist/" not in found[0]
    ]
    assert places == []


def test_git_ignores_files_with_passwords() -> None:
    ignored = (ROOT / ".gitignore").read_text().split()
    held = {"/fairlead.toml", "deploy/.env", ".fairlead/"}
    assert held <= set(ignored)


def test_docstrings_name_existing_modules() -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in (*FOLDERS, "orchestration")
        for path in (ROOT / folder).rglob("*.py")
    }
    named = re.compile(r"`((?:assets|assignors|fairlead|orchestration|migrations)\.[\w.]+)`")
    lost = []
    for module, path in sorted(modules.items()):
        for name in named.findall(ast.get_docstring(tree(path)) or ""):
            within, _, last = name.rpartition(".")
            defines = re.compile(rf"^(?:def |class |from .* import .*|){last}\b", re.MULTILINE)
            inside = within in modules and defines.search(modules[within].read_text())
            if name not in modules and name != "fairlead.toml" and not inside:
                lost.append(f"{module}: {name}")
    assert lost == []

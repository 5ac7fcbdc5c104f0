"""Count lines of code by capability: `python -m tests.product_lines [FOLDER]`.

Blank lines, comments, docstrings and tests do not count; benchmarks are counted separately.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

PRODUCT: Final = (
    "assets",
    "assignors",
    "fairlead",
    "fairlead_planner",
    "jvm",
    "migrations",
    "orchestration",
    "hatch_build.py",
)
#: Capability -> pattern of its files' paths. A file belongs to the first pattern that matches.
CAPABILITIES: Final = {
    "freezing, regression checks": "regression|freeze|automatic_rollback",
    "backtest": "simulation|backtest|observed",
    "survey, doctor, up": "survey|doctor|surfaces/up/|cli/(up|running_sandbox|look)[.]|kafka/rights"
    "|surfaces/pipeline|switches",
    "web pages and their actions": "surfaces/(web|plots|review|offers|links|next_step)|acts"
    "|stored_samples|group_history|domain/identity|sql/web|worst_first",
    "analysis": "domain/|diagnosing|fairlead/spark|looking|analysis|proposal",
    "followers and brokers": "followers|jvm/|wire|rebalancing|following|fairlead/kafka",
    "the life of a plan": "workflows|store/|sql/",
    "the command line": "surfaces/cli",
    "sandbox and demo": "sandbox|surfaces/demo",
    "the pipeline in Dagster": "^assets|^orchestration|planner",
    "assignors, settings, the rest": "",
}
#: Comments or strings. Strings are matched because they may contain what looks like a comment.
_JAVA: Final = re.compile(
    r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])+\'|//.*|/\*[\s\S]*?\*/'
)
_SQL: Final = re.compile(r"'(?:''|[^'])*'|--.*|/\*[\s\S]*?\*/")
_LAYOUT: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def python_lines(source: str) -> int:
    r"""Count the lines of a Python module that hold code.

    >>> python_lines('"Said."\n\nx = 1  # here\n# there\ny = (\n    2\n)\n')
    4
    """
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            docstrings.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def lines_beside_comments(source: str, pattern: re.Pattern[str]) -> int:
    r"""Count the lines of Java or SQL that hold code.

    >>> lines_beside_comments("SELECT '--'; -- two dashes\n\n-- none\n", _SQL)
    1
    """

    def code(match: re.Match[str]) -> str:
        text = match.group()
        return "" if text.startswith(("--", "//", "/*")) else text

    return sum(bool(line.strip()) for line in pattern.sub(code, source).splitlines())


def lines_of(path: Path) -> int:
    """Count the lines of code in a file; 0 unless it is Python, Java or SQL."""
    if path.suffix == ".py":
        return python_lines(path.read_text())
    patterns = {".java": _JAVA, ".sql": _SQL}
    pattern = patterns.get(path.suffix)
    return lines_beside_comments(path.read_text(), pattern) if pattern else 0


def counts(root: Path, places: tuple[str, ...]) -> Counter[str]:
    """Count the lines of code in files and folders; return the number for each file."""
    lines: Counter[str] = Counter()
    for place in places:
        path = root / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                lines[str(file.relative_to(root))] = lines_of(file)
    return +lines


def by_capability(lines: Counter[str]) -> dict[str, int]:
    """Sum up the lines of files for each capability.

    >>> by_capability(Counter({"fairlead/spark/lag.py": 2, "fairlead/domain/basis.py": 3}))
    {'analysis': 5}
    """
    found: Counter[str] = Counter()
    for file, count in lines.items():
        kinds = (kind for kind, pattern in CAPABILITIES.items() if re.search(pattern, file))
        found[next(kinds)] += count
    return dict(found.most_common())


def main() -> None:
    """Print the lines of code of the product and of the benchmarks."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    for name, places in (("product", PRODUCT), ("benchmarks", ("benchmarks",))):
        found = counts(root, places)
        languages: Counter[str] = Counter()
        for file, lines in found.items():
            languages[Path(file).suffix.removeprefix(".")] += lines
        of_each = ", ".join(f"{language} {lines}" for language, lines in sorted(languages.items()))
        sys.stdout.write(f"{name}: {found.total()} ({of_each})\n")
    for kind, lines in by_capability(counts(root, PRODUCT)).items():
        sys.stdout.write(f"{lines:8,} {kind}\n")


if __name__ == "__main__":
    main()

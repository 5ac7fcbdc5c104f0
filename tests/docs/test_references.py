"""What pages name of the repository is there: files, and the tests that show what pages say."""

import re
from typing import Final

from tests.docs.blocks import ROOT, name_of, pages

_PATH: Final = re.compile(
    r"`((?:assets|assignors|benchmarks|deploy|docs|examples|fairlead|migrations|orchestration|tests)"
    r"/[\w./*-]*\w\.\w+)`"
)
#: A path of tests, or any file of them, and the function that is meant.
_TEST: Final = re.compile(
    r"(?<![\w./-])(?P<path>tests/[\w./-]*\w|[\w./-]*\btest_\w+\.py)(?:::(?P<function>\w+))?"
)


def test_files_that_pages_name_exist() -> None:
    """Code that looks like a path in the repository is one."""
    missing = [
        f"{name_of(page)}: {path}"
        for page in pages()
        for path in _PATH.findall(page.read_text())
        if not any(ROOT.glob(path))
    ]
    assert missing == []


def test_tests_that_pages_name_exist() -> None:
    """By their whole paths, and, where a page names a function, with it."""
    named = [(page, found) for page in pages() for found in _TEST.finditer(page.read_text())]
    missing = [
        f"{name_of(page)}: {found[0]}"
        for page, found in named
        if not (ROOT / found["path"]).exists()
        or (
            found["function"]
            and f"def {found['function']}(" not in (ROOT / found["path"]).read_text()
        )
    ]
    assert named
    assert missing == []

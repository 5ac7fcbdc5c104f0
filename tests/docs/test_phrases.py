"""Forbidden phrases, for each of which there is a plain replacement.

The list has only the worst phrases. Belongs here: phrases in documentation and code. Belongs
elsewhere: phrases in the output of examples (`test_pages`), because they come from the code.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.blocks import DOCS, ROOT, name_of

#: Regular expressions of phrases that pages and code must not contain.
#: They match whole words in upper or lower case, also across line ends.
EVERYWHERE: Final = (
    "a crawling partition",
    "anew",
    "are of another log",
    "badly spread",
    "brakes?",
    "by itself",
    "by themselves",
    "cede[ds]?",
    "dear",
    "fullest",
    "for good",
    "gets? .{1,9} of what it can do",
    "go on from the look",
    "groups that were not seen for so long",
    "headroom",
    "heeded",
    "heeds?",
    "hindsight",
    "in vain",
    "is at its plan",
    "it is the member, or what it reads",
    "judge[ds]?",
    "judgements?",
    "late, forecast",
    "lateness",
    "let go of it. whose",
    "made worse",
    "newcomers?",
    "nobody is told",
    "nudge[ds]?",
    "retire[ds]?",
    "retirements?",
    "return what tells of",
    "roll calls?",
    "say what comes from",
    "settles what is left",
    "so many partitions are named",
    "taken? back",
    "takes back",
    "told are",
    "what is read, and what is kept",
    "what was the matter before",
)
#: Phrases that pages must not contain. Move a phrase to EVERYWHERE when the code is free of it.
IN_PAGES: Final = (
    "a looks?",
    "are told",
    "came to",
    "dearer",
    "is the matter",
    "is told",
    "so many",
    "somebody else",
    "stands",
    "told again",
)
#: This page is not searched, because the wording of its guarantees must not change.
_KEPT: Final = DOCS / "trust.md"
_GENERATED: Final = {DOCS / "figures.md", DOCS / "settings.md"}  # generated from the code
_CODE: Final = ("assets", "assignors", "deploy", "fairlead", "fairlead_planner", "migrations")
_KINDS: Final = {".html", ".py", ".sql", ".yaml", ".yml"}
_SAMPLES_OF_CODE: Final = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def occurrences(path: Path, text: str, phrases: tuple[str, ...]) -> Iterator[str]:
    """Yield path, line and words of each forbidden phrase in the text of a file."""
    for phrase in phrases:
        pattern = rf"\b{phrase.replace(' ', chr(92) + 's+')}\b"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            yield f"{name_of(path)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"


def test_pages_are_free_of_the_old_phrases() -> None:
    """README and docs have no forbidden phrase. Code blocks and inline code are not searched."""
    pages = {ROOT / "README.md", *DOCS.rglob("*.md")} - {_KEPT, *_GENERATED}
    wrong = [
        line
        for page in sorted(pages)
        for line in occurrences(
            page,
            _SAMPLES_OF_CODE.sub(lambda code: "\n" * code[0].count("\n"), page.read_text()),
            (*EVERYWHERE, *IN_PAGES),
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", [*_CODE, "orchestration"])
def test_code_is_free_of_the_old_phrases(folder: str) -> None:
    """No file of the folder has a forbidden phrase, in code, comments, docstrings or messages."""
    files = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in _KINDS]
    assert files
    assert [
        line for path in files for line in occurrences(path, path.read_text(), EVERYWHERE)
    ] == []

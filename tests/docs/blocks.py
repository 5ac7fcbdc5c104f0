"""The code that pages show: fenced blocks, and commands within a sentence.

Belongs here: finding it. Does not: what makes it right (`pages`, `commands`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"

_FENCED: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_IN_A_SENTENCE: Final = re.compile(
    r"`((?:dagster|(?:\.venv/bin/)?fairlead|make|pip install|pytest|python -m|uvx) [^`\n]+)`"
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Parameters
    ----------
    language
        As the fence says; empty: it says none.
    code
        Without the fence and its indent, ending in a line feed.
    start, end
        Where the code stands in the page, with its indent.
    depth
        Spaces before the fence.
    line
        Where the fence opens, from 1.
    """

    language: str
    code: str
    start: int
    end: int
    depth: int
    line: int


def pages() -> list[Path]:
    """Return every page: the README and what stands beside it, and those of docs/."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return what a page is called in this repository."""
    return str(page.relative_to(ROOT))


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    for found in _FENCED.finditer(page):
        yield Block(
            language=found["language"],
            code=dedent(found["code"]),
            start=found.start("code"),
            end=found.end("code"),
            depth=len(found["indent"]),
            line=page.count("\n", 0, found.start()) + 1,
        )


def commands_in_sentences(page: str) -> list[str]:
    """Return the commands that a page names outside of its blocks."""
    return _IN_A_SENTENCE.findall(_FENCED.sub("", _COMMENT.sub("", page)))


def replaced(page: str, code: Mapping[Block, str]) -> str:
    """Return a page with other code in some of its blocks."""
    for block in sorted(code, key=lambda block: block.start, reverse=True):
        page = page[: block.start] + indent(code[block], " " * block.depth) + page[block.end :]
    return page

"""Code on documentation pages: fenced blocks, and commands within sentences.

Belongs here: finding code. Belongs elsewhere: checking it (`pages`, `commands`).
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
    """A fenced block of code.

    Parameters
    ----------
    language
        The fence's language, or an empty string.
    code
        The code between the fences, without their indentation. It ends with a line feed.
    start, end
        Offsets of the code, with its indentation, in the page.
    depth
        Number of spaces before the fence.
    line
        Line number of the opening fence, from 1.
    """

    language: str
    code: str
    start: int
    end: int
    depth: int
    line: int


def pages() -> list[Path]:
    """Return the paths of all pages: README.md, other Markdown files next to it, and docs/."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return a page's path relative to the repository."""
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
    """Return the commands in inline code on a page, outside of fenced blocks."""
    return _IN_A_SENTENCE.findall(_FENCED.sub("", _COMMENT.sub("", page)))


def replaced(page: str, code: Mapping[Block, str]) -> str:
    """Return the page with new code in some of its blocks."""
    for block in sorted(code, key=lambda block: block.start, reverse=True):
        page = page[: block.start] + indent(code[block], " " * block.depth) + page[block.end :]
    return page

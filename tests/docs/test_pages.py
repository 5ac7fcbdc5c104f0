"""Examples on documentation pages: commands, queries, settings and programs are correct."""

from pathlib import Path

import pytest

from tests.docs.blocks import name_of, pages
from tests.docs.pages import Runner

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_page_shows_the_output_of_its_examples(path: Path, request: pytest.FixtureRequest) -> None:
    """If the output is out of date, run `python -m tests.docs.pages` and check the new output."""
    page = path.read_text()
    assert Runner(page, lambda: str(request.getfixturevalue("week"))).rewritten() == page

"""Every command, query, setting and program on a page is run, or at least exists."""

from pathlib import Path

import pytest

from tests.docs.blocks import name_of, pages
from tests.docs.pages import Runner

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_page_shows_the_output_of_its_examples(path: Path, request: pytest.FixtureRequest) -> None:
    """Output on the page is current; if not, run `python -m tests.docs.pages` and check it."""
    page = path.read_text()
    assert Runner(page, lambda: str(request.getfixturevalue("week"))).rewritten() == page

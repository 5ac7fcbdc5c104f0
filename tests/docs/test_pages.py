"""The pages of docs/ show what their examples really print."""

import pytest

from tests.docs.pages import DOCS, PAGES, rewritten

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("name", PAGES)
def test_page_shows_what_its_examples_print(name: str, database: str) -> None:
    """Run anew, nothing differs; else run `python -m tests.docs.pages` and look at the change."""
    page = (DOCS / name).read_text()
    assert rewritten(page, database) == page

"""The survey page in a browser: accessible, and without requests to servers."""

import pytest
from playwright.sync_api import Page, expect

from fairlead.surfaces.survey.page import as_page
from tests.fairlead.surfaces.test_survey import row
from tests.ui.test_person import assert_open_to_all

pytestmark = pytest.mark.long


def test_survey_is_open_to_all(page: Page) -> None:
    """Wide and on a phone, light and dark; a name that is long breaks no line of the page."""
    long = "a-group-" * 20
    right = {
        "kind": "topic",
        "name": long,
        "effect": "its lag is unknown",
        "remedy": f"kafka-acls.sh --bootstrap-server BROKER --add --topic {long}",
    }
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_content(as_page([row(), row(group=long, diagnosis="healthy")], [right], 6, {}))
    expect(page.get_by_role("heading", name="orders: overloaded")).to_be_visible()
    assert_open_to_all(page)
    assert asked == []

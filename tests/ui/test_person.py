"""A person plans, reviews and approves in Dagster's UI and on web pages, in a real browser."""

import re
from itertools import pairwise
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from fairlead.surfaces.links import lineage_url
from tests.ui.browser import axe
from tests.ui.conftest import HEIGHT, WIDTH, Surroundings, keep
from tests.ui.running import ROOT
from tests.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.spark]

#: Labels that a new user clicks in the pinned version of Dagster.
LINEAGE, MATERIALIZE, CHOOSE = "Lineage", "Materialize all", "Select a partition or create one"
LAUNCH, LAUNCH_RUN = "Launch backfill", "Launch 1 run"
#: JavaScript that checks the page and returns only violations, not the thousands of passed checks.
VIOLATIONS = "axe.run({resultTypes: ['violations']}).then(found => found.violations)"
#: Page to open while waiting, because Dagster's pages send several requests a second.
NOWHERE = "about:blank"
PHONE_PX = 390
#: JavaScript that returns the charts whose right end, with the newest values, is not visible.
NEWEST_SHOWN = """[...document.querySelectorAll("figure.scroll")].filter(figure =>
    figure.firstElementChild.getBoundingClientRect().right
        > figure.getBoundingClientRect().right + 1).map(figure => figure.ariaLabel)"""
#: Pixels. Width of an A4 page between the usual margins.
PAPER_PX = 718


def test_person_plans_reviews_approves_and_sees_the_plan_followed(
    around: Surroundings, page: Page
) -> None:
    """A new user gets consumers to follow a plan, only with clicks and one typed reason."""
    group = around.group
    eventually(lambda: group in around.cohorts(), f"{group} found")

    page.goto(around.url)
    # Before icons are drawn, their names are part of the links' names, as in "column_lineage Jobs".
    page.get_by_role("link", name=re.compile(f"{LINEAGE}$")).click()
    assert_left_to_right(page, "observe", "decide", "act")
    page.goto(lineage_url(around.url))
    assert_left_to_right(page, "group_offsets", "assignment_plan", "plan_adoption")
    keep(page, "asset-graph")
    materialize(page, group)
    leave_until_done(page, around, ["proposed"])

    for asset in ("partition_lag", "candidate_plans", "assignment_plan"):
        show(page, around, asset)
        assert_shown(page, around)
        keep(page, asset)
    for words in ("to approve it", "policy"):
        expect(page.get_by_text(words, exact=True)).to_be_visible()

    page.get_by_role("link", name="Open the review").click()
    expect(page).to_have_url(f"{around.review_url}/review?group={group}&version=1")
    expect(page.get_by_role("heading", level=1)).to_contain_text(group)
    keep(page, "review")
    assert_open_to_all(page)
    expect(page.get_by_role("link", name="This group in Dagster")).to_be_visible()
    page.get_by_role("link", name="All groups").click()
    expect(page.get_by_role("link", name="version 1")).to_be_visible()
    keep(page, "groups")
    assert_open_to_all(page)
    page.get_by_role("link", name=group, exact=True).click()
    expect(page.get_by_role("heading", name="Over time")).to_be_visible()
    keep(page, "group")
    assert_open_to_all(page)

    show(page, around, "assignment_plan")
    page.locator('a[href*="/jobs/approve/playground"]').first.click()
    type_reason(page, "agreed with the team")
    launch = page.get_by_role("button", name="Launch Run")
    expect(launch).to_be_enabled()
    keep(page, "launchpad")
    launch.click()
    leave_until_done(page, around, ["published"])

    see_it_followed(page, around)
    look_up_why_a_partition_moved(page, around)


def leave_until_done(page: Page, around: Surroundings, states: list[str]) -> None:
    """Leave Dagster's page until the launched run ends and the group's plans have these states."""

    def reached() -> bool:
        return around.states(around.group) == states

    eventually(lambda: around.runs_under_way() or reached(), "a run begins")
    page.goto(NOWHERE)
    eventually(reached, lambda: f"versions are {states}: {around.story(around.group)}")
    eventually(lambda: not around.runs_under_way(), "the run's end")


def see_it_followed(page: Page, around: Surroundings) -> None:
    """Open Dagster's pages of publication, adoption and the plan's state, and check them."""
    show(page, around, "published_plan")
    expect(page.get_by_text("offset").first).to_be_visible()
    keep(page, "published_plan")
    page.goto(NOWHERE)
    # Open the page only after the event: an open page does not always show later events.
    followed = "4 of 4 partitions have their planned owner"
    eventually(lambda: around.recorded(followed), "consumers follow the plan")
    show(page, around, "plan_adoption")
    expect(page.get_by_text(followed)).to_be_visible()
    keep(page, "plan_adoption")
    page.goto(NOWHERE)
    became = "version 1 is published already"
    eventually(lambda: around.recorded(became), "what became of the plan")
    show(page, around, "assignment_plan")
    expect(page.get_by_text(became).first).to_be_visible()
    keep(page, "assignment_plan-published")


def look_up_why_a_partition_moved(page: Page, around: Surroundings) -> None:
    """Click from the list of groups to the group, its owners over time, and one move's reason."""
    page.goto(NOWHERE)
    eventually(around.change_sampled, "a sample has other owners")
    page.goto(around.review_url)
    keep(page, "why-groups")
    page.get_by_role("link", name=around.group, exact=True).click()
    page.get_by_role("link", name="Owners", exact=True).click()
    keep(page, "why-owners")
    changes = page.get_by_role("region", name="Changes of owners")
    changes.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"partition=.+#partition$"))
    moves = page.get_by_role("region", name="Moves of the partition")
    expect(moves.get_by_role("link", name="version 1")).to_be_visible()
    expect(moves.get_by_role("row").nth(1)).to_contain_text("Reason of the plan:")
    expect(page.get_by_role("region", name="Owners of the partition")).to_be_visible()
    keep(page, "why-partition")
    assert_open_to_all(page)


@pytest.mark.parametrize("page_of_the_site", ["README.md", "docs/own-cluster.md"])
def test_documentation_has_the_labels_of_the_ui(page_of_the_site: str) -> None:
    """README.md and docs/own-cluster.md name the labels that the test above clicks."""
    text = " ".join((ROOT / page_of_the_site).read_text().split())
    assert [word for word in (LINEAGE, MATERIALIZE, LAUNCH_RUN) if f"*{word}*" not in text] == []


def assert_left_to_right(page: Page, *names: str) -> None:
    """Check that nodes of Dagster's graph are in this order from left to right."""
    places = []
    for name in names:
        node = page.get_by_text(name, exact=True).last
        expect(node).to_be_visible()
        box = node.bounding_box()
        assert box is not None
        places.append(box["x"])
    assert all(left < right for left, right in pairwise(places)), places


def assert_open_to_all(page: Page) -> None:
    """Check a page's accessibility with axe-core: light and dark mode, desktop and phone.

    The page must not be wider than the window or paper, and charts must show their newest values.
    """
    series: list[tuple[int, Literal["light", "dark"]]] = [
        (PHONE_PX, "light"),
        (WIDTH, "dark"),
        (WIDTH, "light"),
    ]
    page.evaluate(axe())
    for width, scheme in series:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": HEIGHT})
        found = page.evaluate(VIOLATIONS)
        assert [(violation["id"], violation["nodes"][0]["html"]) for violation in found] == [], (
            width,
            scheme,
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, scheme)
        assert page.evaluate(NEWEST_SHOWN) == [], (width, scheme)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER_PX, "height": HEIGHT})
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER_PX, "print"
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})


def materialize(page: Page, group: str) -> None:
    """Click through Dagster's UI to materialize all assets for one group."""
    page.get_by_role("button", name=MATERIALIZE).click()
    expect(page.get_by_role("button", name=LAUNCH)).to_be_disabled()
    page.get_by_text(CHOOSE).first.click()
    page.get_by_text(group, exact=True).locator("visible=true").last.click()
    page.keyboard.press("Escape")
    keep(page, "materialize")
    page.get_by_role("button", name=LAUNCH_RUN).click()


def show(page: Page, around: Surroundings, asset: str) -> None:
    """Open Dagster's page of an asset for the group."""
    page.goto(f"{around.url}/assets/{asset}?view=partitions&partition={around.group}")
    expect(page.get_by_text("Metadata", exact=True)).to_be_visible()


def assert_shown(page: Page, around: Surroundings) -> None:
    """Check that an asset's page has a table and a link to the group's page."""
    expect(page.get_by_text("Show schema").first).to_be_visible()
    link = page.get_by_role("link", name="Open the group's page")
    expect(link).to_have_attribute("href", f"{around.review_url}/group?group={around.group}")


def type_reason(page: Page, reason: str) -> None:
    """Type the reason at the end of the configuration in Dagster's launchpad."""
    editor = page.locator(".CodeMirror").first
    expect(editor).to_contain_text("reason:")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(f' "{reason}"')

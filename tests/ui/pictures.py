"""Take the pictures in the documentation: `make pictures`, while `make dev` runs.

The group `payments` of `make dev` must have its first proposed plan, which this module approves.
The two pictures of web actions are copied from the last run of the UI's tests.
"""

import re
import shutil
import sys
from typing import Final

from playwright.sync_api import FloatRect, Page, expect

from fairlead.surfaces.demo.scenario import PAYMENTS
from fairlead.surfaces.links import asset_url, lineage_url
from fairlead.surfaces.ports import DAGSTER_PORT, PAGES_PORT
from tests.ui.conftest import HEIGHT, PATIENCE_MS, WIDTH, headless
from tests.ui.running import ROOT, SCREENSHOTS

PICTURES: Final = ROOT / "docs" / "pictures"
FROM_TESTS: Final = ("act-approve", "act-frozen")
DAGSTER: Final = f"http://127.0.0.1:{DAGSTER_PORT}"
PAGES: Final = f"http://127.0.0.1:{PAGES_PORT}"
GROUP: Final = PAYMENTS.name
#: Space below the last element of a picture, in pixels.
MARGIN: Final = 24
#: Milliseconds for which consumers follow the plan before its plots are pictured.
SHOWS_MS: Final = 600_000


def asset_page(asset: str) -> str:
    """Return the address of Dagster's page of an asset for the group `payments`."""
    return str(asset_url(DAGSTER, asset, GROUP))


def take(page: Page, name: str) -> None:
    """Take a picture of the visible part of a page."""
    page.wait_for_timeout(2_000)  # clock: Dagster's pages are animated for a moment
    page.screenshot(path=PICTURES / f"{name}.png")


def take_part(page: Page, name: str, first: str, last: str) -> None:
    """Take a picture from the top of one element to the bottom of another (CSS selectors)."""
    page.evaluate("scrollTo(0, 0)")  # boxes are relative to the visible part
    top, bottom = (page.locator(selector).first.bounding_box() for selector in (first, last))
    assert top is not None
    assert bottom is not None
    height = bottom["y"] + bottom["height"] + MARGIN - top["y"]
    clip: FloatRect = {"x": 0, "y": top["y"], "width": WIDTH, "height": height}
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True, clip=clip)


def plan(page: Page) -> None:
    """Take pictures of the assets and of the proposed plan; approve the plan."""
    page.goto(lineage_url(DAGSTER))
    expect(page.get_by_text("plan_adoption", exact=True).last).to_be_visible()
    take(page, "asset-graph")
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_text("Select a partition or create one").first.click()
    page.get_by_text(GROUP, exact=True).locator("visible=true").last.click()
    page.keyboard.press("Escape")
    take(page, "materialize")
    page.goto(asset_page("assignment_plan"))
    review = page.get_by_role("link", name="Open the review")
    expect(review).to_be_visible()
    take(page, "assignment_plan")
    review.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(GROUP)
    take_part(page, "review", "body", "#risks")
    page.goto(asset_page("assignment_plan"))
    page.locator('a[href*="/jobs/approve/playground"]').first.click()
    editor = page.locator(".CodeMirror").first
    expect(editor).to_contain_text("reason:")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(' "agreed with the team"')
    launch = page.get_by_role("button", name="Launch Run")
    expect(launch).to_be_enabled()
    take(page, "launchpad")
    launch.click()
    page.wait_for_url(re.compile("/runs/"))


def follow(page: Page) -> None:
    """Take pictures of the plan's adoption, the list of groups, and the reason of a move."""
    followed = page.get_by_text("(100.0 %)")
    for _ in range(60):
        page.goto(asset_page("plan_adoption"))
        page.wait_for_timeout(10_000)  # clock: an open page does not always show later events
        if followed.count():
            break
    take(page, "plan_adoption")
    page.wait_for_timeout(SHOWS_MS)  # clock: the plots show some time with the new owners
    page.goto(PAGES)
    take_part(page, "why-groups", "body", "table")
    page.get_by_role("link", name=GROUP, exact=True).click()
    take_part(page, "why-owners", "#owners", "#owners")
    page.get_by_role("region", name="Changes of owners").get_by_role("link").first.click()
    page.wait_for_url(re.compile("#partition$"))
    take_part(page, "why-partition", "#partition", "#partition")


def main() -> int:
    """Take the pictures; return 1 if a picture of the UI's tests is missing."""
    missing = [name for name in FROM_TESTS if not (SCREENSHOTS / f"{name}.png").exists()]
    if missing:
        sys.stderr.write(f"{SCREENSHOTS} lacks {', '.join(missing)}: run the tests of the UI\n")
        return 1
    for name in FROM_TESTS:
        shutil.copyfile(SCREENSHOTS / f"{name}.png", PICTURES / f"{name}.png")
    with headless() as browser:
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, locale="en-US")
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page = context.new_page()
        plan(page)
        follow(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The documentation site: its build, its links, and its size."""

import re
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from markdown.extensions.toc import slugify

from tests.docs.blocks import DOCS, ROOT, blocks, name_of, pages, replaced
from tests.product_lines import PRODUCT, by_capability, counts
from tests.programs import ended

pytestmark = pytest.mark.long

_LINK: Final = re.compile(r"\]\(([^()\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Build the site; return its folder and the output of the build.

    The build is strict: it fails if a page is in no menu, or if a link or anchor is invalid.
    """
    folder = tmp_path_factory.mktemp("site")
    environment = {"NO_MKDOCS_2_WARNING": "1"}  # turns off the theme's notice about MkDocs 2
    build = (sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder)
    return folder, ended(*build, cwd=ROOT, env=environment).stderr


def test_site_is_built_without_a_warning(site: tuple[Path, str]) -> None:
    folder, output = site
    assert "WARNING" not in output
    assert (folder / "index.html").exists()


def test_site_loads_nothing_from_other_hosts(site: tuple[Path, str]) -> None:
    """The site has its own copies of scripts, styles and pictures, and works behind a firewall."""
    folder, _ = site
    fetched = re.compile(r"<(?:script|link|img)\b[^>]*(?:src|href)=\"?(https?:[^\" >]+)")
    found = {
        f"{page.relative_to(folder)}: {address}"
        for page in folder.rglob("*.html")
        for address in fetched.findall(page.read_text())
    }
    assert found == set()


def test_links_in_the_repository_are_valid() -> None:
    """Relative links in the README and on pages lead to existing files and headings."""
    broken = []
    for page in pages():
        text = page.read_text()
        for link in _LINK.findall(replaced(text, dict.fromkeys(blocks(text), ""))):
            to = urlsplit(link)
            if to.scheme:
                continue
            target = (page.parent / to.path).resolve() if to.path else page
            if not target.exists():
                broken.append(f"{name_of(page)}: {link}")
            elif to.fragment and to.fragment not in _anchors(target):
                broken.append(f"{name_of(page)}: {link}: no such heading")
    assert broken == []


def _anchors(page: Path) -> set[str]:
    text = page.read_text()
    headings = _HEADING.findall(replaced(text, dict.fromkeys(blocks(text), "")))
    return {slugify(re.sub(r"[`*]", "", heading), "-") for heading in headings}


def test_documentation_is_within_its_word_limit() -> None:
    """The README and docs/ have at most 26,000 words, including generated lists."""
    read = {ROOT / "README.md", *DOCS.rglob("*.md")}
    assert sum(len(page.read_text().split()) for page in read) <= 26_000


def test_the_product_has_the_documented_size() -> None:
    """The numbers of lines of code in CONTRIBUTING.md are right within 10 % for each capability."""
    documented = {
        name: int(lines.replace(",", ""))
        for name, lines in re.findall(
            r"^\| ([\w, ]+) \| ([\d,]+) \| [\d,]+ \|$",
            (ROOT / "CONTRIBUTING.md").read_text().partition("## The product's size")[2],
            re.MULTILINE,
        )
    }
    found = by_capability(counts(ROOT, PRODUCT))
    assert documented == {name: pytest.approx(lines, rel=0.1) for name, lines in found.items()}

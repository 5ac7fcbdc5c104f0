"""The reasons that the runbook (docs/operations.md) explains are messages in the code."""

import re
from typing import Final

import pytest

from tests.docs.blocks import DOCS, ROOT

#: Matches what a quoted reason has in place of the code's placeholders: numbers, and `...`.
_NAMED: Final = re.compile(r"\.\.\.|\d[\d.]*(?: %)?")
_ADJACENT: Final = re.compile(r'"\s*\n\s*f?"')


def quoted_reasons() -> list[str]:
    """Return the reasons in the first columns of the runbook's tables."""
    page = (DOCS / "operations.md").read_text()
    tables = re.findall(r"^\| reason \|.*\n\| ---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    return [reason for row in rows for reason in re.findall(r"`([^`]+)`", row.split("|")[1])]


@pytest.mark.parametrize("reason", quoted_reasons())
def test_reason_is_one_that_the_code_gives(reason: str) -> None:
    sources = "\n".join(
        _ADJACENT.sub("", path.read_text())
        for folder in ("assignors", "fairlead")
        for path in (ROOT / folder).rglob("*.py")
    )
    parts = [part.strip("(); ") for part in _NAMED.split(reason)]
    assert [part for part in parts if part not in sources] == []

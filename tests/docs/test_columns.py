"""docs/architecture.md shows the columns of samples as the code states them."""

from pathlib import Path

from fairlead.domain.samples import COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_page_has_the_columns_in_order() -> None:
    """One row a column: name, type, meaning."""
    _, _, table = PAGE.read_text().partition("| column | type | what it holds |\n")
    lines = table.split("\n\n")[0].splitlines()[1:]
    assert lines == [
        f"| `{column.name}` | `{str(column.kind).replace('item: ', '')}` | {column.meaning} |"
        for column in COLUMNS
    ]

"""The page of figures and of the columns of samples: `python -m tests.docs.figures` writes it.

Belongs here: the page's text. Does not: what a figure means (`fairlead.domain.figures`), or a
column (`fairlead.domain.samples`).
"""

from typing import Final

from fairlead.domain.figures import FIGURES
from fairlead.domain.samples import COLUMNS
from tests.docs.blocks import DOCS

PAGE: Final = DOCS / "figures.md"
_HEAD: Final = """\
# Figures

What does a figure mean? The name is a column in SQL and a key in JSON. The label is its heading on
pages, in tables of commands and in Dagster. Suffixes of columns in SQL: `_before` (before a plan),
`_predicted` (by the plan), `_achieved` (last measured under it); `_first`, `_last`, `_worst` (of a
day). "No value" is null in SQL and JSON, and absent in metrics.

| name | label | unit | meaning |
| --- | --- | --- | --- |
"""


_COLUMNS: Final = """\

## The columns of samples

What is in the Parquet files of the folder `looks`? One row per group and moment. Lists with a value
per partition are ordered by topic.

| column | type | what it holds |
| --- | --- | --- |
"""


def figures_page() -> str:
    """Return the page: one row per figure, then one row per column of samples."""
    rows = (
        f"| `{figure.name}` | {figure.label} | {figure.unit} | {figure.meaning} |\n"
        for figure in FIGURES.values()
    )
    columns = (
        f"| `{column.name}` | `{str(column.kind).replace('item: ', '')}` | {column.meaning} |\n"
        for column in COLUMNS
    )
    return _HEAD + "".join(rows) + _COLUMNS + "".join(columns)


if __name__ == "__main__":
    PAGE.write_text(figures_page())

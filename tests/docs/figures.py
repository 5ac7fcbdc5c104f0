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

What does a figure mean? The name is a column in SQL and a key in JSON; the label is its heading on
pages, in tables of commands and in Dagster. In SQL, `_before`, `_predicted` and `_achieved` stand
for before a plan, as the plan predicts, and as last measured under it; `_first`, `_last` and
`_worst` are of a day. "No value" is null in SQL and JSON, and a missing sample in metrics.

| name | label | unit | meaning |
| --- | --- | --- | --- |
"""


_COLUMNS: Final = """\

## The columns of samples

What is in the Parquet files of the folder `looks`? One row a group and moment. Lists by partition
go topic by topic.

| column | type | what it holds |
| --- | --- | --- |
"""


def figures_page() -> str:
    """Return the page: a row a figure, then a row a column."""
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

"""Write docs/figures.md: `python -m tests.docs.figures`.

Belongs here: the page's text. Belongs elsewhere: the meaning of figures
(`fairlead.domain.figures`).
"""

from typing import Final

from fairlead.domain.figures import FIGURES, Figure
from tests.docs.blocks import DOCS

PAGE: Final = DOCS / "figures.md"
_HEAD: Final = """\
# Figures

What does a figure mean? Each item has the figure's name (a column in SQL and a key in JSON) and, in
brackets, its label (on pages, in tables of commands and in Dagster) and unit. Columns in SQL may
have a suffix: `_before` (before a plan), `_predicted` (by the plan), `_achieved` (last measured
under the plan), `_worst` (of a day). "No value" is null in SQL and JSON, and absent in metrics.

"""


def figures_page() -> str:
    """Return the page, with one list item per figure."""
    return _HEAD + "".join(_item(figure) for figure in FIGURES.values())


def _item(figure: Figure) -> str:
    label = ", ".join(filter(None, (figure.label, figure.unit)))
    return f"- `{figure.name}` ({label}): {figure.meaning}\n"


if __name__ == "__main__":
    PAGE.write_text(figures_page())

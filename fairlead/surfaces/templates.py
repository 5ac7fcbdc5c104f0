"""HTML from Jinja templates, for the server's pages, reviews and surveys.

Belongs here: escaping, and filters that format figures. Belongs elsewhere: the content of a page.
"""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from fairlead.common import words
from fairlead.common.visible import on_page
from fairlead.domain.figures import figure

_FILTERS = (
    *("catch_up_time", "gigabytes", "listed", "moment", "number", "percent", "plural", "rate"),
    "times",
)


def environment(*packages: str) -> Environment:
    """Return a Jinja environment that finds the templates of the named packages.

    The packages are subpackages of `fairlead.surfaces`.
    """
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(f"fairlead.surfaces.{name}") for name in packages]),
        autoescape=True,  # groups, topics, consumers and reasons may contain markup
        finalize=on_page,  # escapes invisible characters, except in text to copy
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {name: getattr(words, name) for name in _FILTERS} | {
        "seconds": words.length
    }
    templates.globals["figure"] = figure
    return templates

"""HTML from templates: the same environment for pages of the server, reviews and surveys.

Belongs here: escaping, and filters that write figures. Does not: what a page shows.
"""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from fairlead.common import words
from fairlead.common.visible import on_page
from fairlead.domain.figures import figure

_FILTERS = (
    *("catch_up_time", "gigabytes", "listed", "moment", "number", "percent", "plural", "rate"),
    *("span", "times"),
)


def environment(*packages: str) -> Environment:
    """Return an environment with the templates of packages beside this one."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(f"fairlead.surfaces.{name}") for name in packages]),
        autoescape=True,  # groups, topics, consumers and reasons may hold anything
        finalize=on_page,  # what is to be copied stays as it is: templates escape it
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: getattr(words, name) for name in _FILTERS} | {"seconds": words.length}
    made.globals["figure"] = figure
    return made

"""Addresses of pages: a group, a review, an asset, a job's launchpad.

Belongs here: composing addresses. Belongs elsewhere: serving the pages (`web`, Dagster), and the
texts of links.
"""

import json
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from fairlead.settings import WebSettings

#: The code location's name in workspace.yaml.
LOCATION: Final = "fairlead"


def page_url(web: "WebSettings", group: str, version: int | None = None) -> str | None:
    """Return the address of a group's page, or of a version's review; None without `web.url`.

    Examples
    --------
    >>> from fairlead.settings import WebSettings
    >>> web = WebSettings(url="https://plans.example/")
    >>> page_url(web, "orders & more")
    'https://plans.example/group?group=orders%20%26%20more'
    >>> page_url(web, "orders", 7)
    'https://plans.example/review?group=orders&version=7'
    >>> page_url(WebSettings(), "orders")
    """
    if web.url is None:
        return None
    if version is None:
        return f"{web.url}/{page_address('group', group=group)}"
    return f"{web.url}/{page_address('review', group=group, version=version)}"


def page_address(page: str, **query: str | int) -> str:
    """Return a page's address relative to the list of groups, since a proxy may add a path.

    Examples
    --------
    >>> page_address("group", group="orders & more")
    'group?group=orders%20%26%20more'
    """
    return f"{page}?{urlencode(query, quote_via=quote)}"


def asset_url(base: str | None, asset: str, cohort: str) -> str | None:
    """Return the address of an asset's page for a cohort; None if `base` is None.

    Examples
    --------
    >>> asset_url("https://dagster.example", "assignment_plan", "orders & more")
    'https://dagster.example/assets/assignment_plan?view=partitions&partition=orders%20%26%20more'
    >>> asset_url(None, "assignment_plan", "orders")
    """
    if base is None:
        return None
    page = page_address(f"assets/{asset}", view="partitions", partition=cohort)
    return f"{base.rstrip('/')}/{page}"


def lineage_url(base: str) -> str:
    """Return the address of Dagster's asset graph, which shows each asset in its group.

    Examples
    --------
    >>> lineage_url("http://127.0.0.1:3000").partition("%2C")[0]
    'http://127.0.0.1:3000/asset-groups?expanded=global%40global%3Aobserve'
    """
    opened = ",".join(f"global@global:{group}" for group in ("observe", "decide", "act"))
    return f"{base.rstrip('/')}/asset-groups?{urlencode({'expanded': opened}, quote_via=quote)}"


def launchpad_url(base: str, job: str, op: str, **config: str | int) -> str:
    """Return the address of a job's launchpad, filled in except for the reason.

    Parameters
    ----------
    base
        Address of the Dagster UI; "": only the path, for a link inside the UI.
    job, op
        The job, and its only op with configuration.
    config
        The op's configuration without the reason, which a person adds before launching.

    Examples
    --------
    >>> from urllib.parse import unquote
    >>> url = launchpad_url("", "reject", "reject_plan", group="orders", version=7)
    >>> path, _, config = unquote(url).partition("?config=")
    >>> path
    '/locations/fairlead/jobs/reject/playground/setup'
    >>> print(config)
    ops:
      reject_plan:
        config:
          group: "orders"
          version: 7
          # Type the reason at the end, in quotes if it has a colon; then launch the run.
          reason:
    """
    lines = [f"      {name}: {_yaml(value)}" for name, value in config.items()]
    hint = "# Type the reason at the end, in quotes if it has a colon; then launch the run."
    # `reason` comes last, because a click below the text puts the editor's cursor at the end.
    yaml = "\n".join(["ops:", f"  {op}:", "    config:", *lines, f"      {hint}", "      reason: "])
    path = f"/locations/{LOCATION}/jobs/{job}/playground/setup"
    return f"{base.rstrip('/')}{path}?config={quote(yaml, safe='')}"


def _yaml(value: str | int) -> str:
    r"""Return a value as YAML; all characters except printable ASCII are escaped.

    JSON's escapes cannot be used, because YAML does not read surrogate pairs.

    Examples
    --------
    >>> print(_yaml("caf\u00e9 \U0001f680"))
    "caf\U000000e9 \U0001f680"
    """
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[^ -~]", lambda match: f"\\U{ord(match[0]):08x}", text)

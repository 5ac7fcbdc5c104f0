"""Addresses of pages: a group, a review, an asset, a job's launchpad.

Belongs here: how addresses are put together. Does not: who serves them (`web`, Dagster), or how a
page or a plan's metadata words them.
"""

import json
import re
from typing import Final
from urllib.parse import quote, urlencode

from fairlead.settings import WebSettings

#: The code location's name in workspace.yaml.
LOCATION: Final = "fairlead"


def page_url(web: WebSettings, group: str, version: int | None = None) -> str | None:
    """Return the address of a group's page, or of the review of a version of its plan.

    Returns
    -------
    None if no setting has the address of the pages.

    Examples
    --------
    >>> web = WebSettings(url="https://plans.example/")
    >>> page_url(web, "orders & more")
    'https://plans.example/group?group=orders%20%26%20more'
    >>> page_url(web, "orders", 7)
    'https://plans.example/review?group=orders&version=7'
    >>> page_url(WebSettings(), "orders")
    """
    if web.url is None:
        return None
    page, of_version = ("group", {}) if version is None else ("review", {"version": version})
    return f"{web.url}/{page}?{urlencode({'group': group, **of_version}, quote_via=quote)}"


def asset_url(base: str | None, asset: str, cohort: str) -> str | None:
    """Return the address of what an asset shows of a cohort, or None where no UI is known.

    Examples
    --------
    >>> asset_url("https://dagster.example", "assignment_plan", "orders & more")
    'https://dagster.example/assets/assignment_plan?view=partitions&partition=orders%20%26%20more'
    >>> asset_url(None, "assignment_plan", "orders")
    """
    if base is None:
        return None
    query = urlencode({"view": "partitions", "partition": cohort}, quote_via=quote)
    return f"{base.rstrip('/')}/assets/{asset}?{query}"


def lineage_url(base: str) -> str:
    """Return the address of the asset graph with its groups opened, which are closed otherwise.

    Examples
    --------
    >>> lineage_url("http://127.0.0.1:3000").partition("%2C")[0]
    'http://127.0.0.1:3000/asset-groups?expanded=global%40global%3Aobserve'
    """
    opened = ",".join(f"global@global:{group}" for group in ("observe", "decide", "act"))
    return f"{base.rstrip('/')}/asset-groups?{urlencode({'expanded': opened}, quote_via=quote)}"


def launchpad_url(base: str, job: str, op: str, **config: str | int) -> str:
    """Return the address of a job's launchpad, filled in but for the reason it asks for.

    Parameters
    ----------
    base
        Where the Dagster UI is reached. "": the path alone, as a link inside the UI wants it.
    job, op
        The job, and the one op of it that takes configuration.
    config
        The op's configuration, without the reason: no run starts before a person has given one.

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
          # Type why at the end, in quotes where it has a colon; then launch the run.
          reason:
    """
    lines = [f"      {name}: {_yaml(value)}" for name, value in config.items()]
    hint = "# Type why at the end, in quotes where it has a colon; then launch the run."
    # Whoever clicks below the text in the launchpad's editor goes on typing behind its end.
    yaml = "\n".join(["ops:", f"  {op}:", "    config:", *lines, f"      {hint}", "      reason: "])
    path = f"/locations/{LOCATION}/jobs/{job}/playground/setup"
    return f"{base.rstrip('/')}{path}?config={quote(yaml, safe='')}"


def _yaml(value: str | int) -> str:
    r"""Write a value so that YAML reads it back, whatever characters it has.

    JSON's way of writing what is beyond 16 bits, as two halves, is not YAML's.

    Examples
    --------
    >>> print(_yaml("caf\u00e9 \U0001f680"))
    "caf\U000000e9 \U0001f680"
    """
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[^ -~]", lambda found: f"\\U{ord(found[0]):08x}", text)

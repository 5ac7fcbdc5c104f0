"""The report on a topic's keys, for people: tables and a page.

Belongs here: the formats of a report. Does not: computing them (`fairlead.domain.key_report`).
"""

from collections.abc import Mapping
from typing import Any, Final

from fairlead.common.words import length, listed, percent, shortened
from fairlead.surfaces.templates import environment

Row = dict[str, Any]

#: Minimum share of a key in a table; the JSON document has all keys of the report.
_LEAST: Final = 0.001
#: Maximum number of partitions listed for a key.
_LISTED: Final = 3


def tables(report: Row) -> list[list[Row]]:
    """Return the table of keys and that of partition counts; rows map headings to texts."""
    keys = [
        {
            "key": shortened(key["key"]),
            "share": percent(key["share"]),
            "90 % interval": f"{100 * key['low']:.1f} to {percent(key['high'])}",
            "of time": "" if key["time_share"] is None else percent(key["time_share"]),
            "partition": listed([*map(str, key["partitions"])], at_most=_LISTED),
        }
        for key in report["keys"]
        if key["share"] >= _LEAST
    ]
    if report["without_key"]:
        keys.append({"key": "(no key)", "share": percent(report["without_key"])})
    scenarios = [
        {
            "partitions": f"{each['partitions']:,}",
            "largest gets": percent(each["largest"]),
            "today's consumers": _consumers(each["today"]),
            "consumers wanted": _consumers(each["wanted"]),
        }
        for each in report["scenarios"]
    ]
    return [_filled(rows) for rows in (keys, scenarios)]


def _filled(rows: list[Row]) -> list[Row]:
    """Return rows without the columns that are empty in all of them."""
    names = dict.fromkeys(name for row in rows for name, text in row.items() if text)
    return [{name: row.get(name, "") for name in names} for row in rows]


def _consumers(forecast: Mapping[str, Any] | None) -> str:
    if forecast is None:
        return ""
    behind = length(forecast["time_lag_s"])
    return f"{forecast['count']:,}: busiest {forecast['utilisation']:.0%}, {behind} behind"


def as_page(report: Row) -> str:
    """Return the report as an HTML document, which loads nothing."""
    template = environment("keys").get_template("keys.html")
    return template.render(report=report, tables=tables(report))

"""The report on a topic's keys: tables, sentences, a JSON document, and a page.

Belongs here: the formats of a report. Does not: its figures
(`fairlead.domain.key_report`).
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from fairlead.common.words import length, listed, percent, plural
from fairlead.surfaces.templates import environment

Row = dict[str, Any]

#: Minimum share of a key in a table; a document has all.
_LEAST: Final = 0.001
#: Characters of a key in a table, and partitions.
_LONGEST, _NAMED = 40, 3
_PARTITIONERS: Final = {
    "murmur2": "Producers place keys by murmur2, Java's default: {} of the sampled keys.",
    "crc32": "Producers place keys by CRC32, librdkafka's default: {} of the sampled keys.",
    "assumed": "Too few keys or partitions show the producers' partitioner: murmur2 is assumed.",
    "unknown": "The producers' partitioner is not known.",
}


def _name(key: bytes, *, show_keys: bool) -> str:
    r"""Return the start of a key's SHA-256, or the key: as text, or as hexadecimal if not UTF-8.

    Examples
    --------
    >>> _name(b"orders", show_keys=True), _name(b"\xff\x00", show_keys=True)
    ('orders', '0xff00')
    >>> _name(b"orders", show_keys=False)
    '1c168adb00d2'
    """
    if not show_keys:
        return sha256(key).hexdigest()[:12]
    try:
        return key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"


def tables(report: Row, *, show_keys: bool) -> list[list[Row]]:
    """Return the table of keys and that of partition counts; rows map headings to texts."""
    keys = [_key(key, show_keys=show_keys) for key in report["keys"] if key["share"] >= _LEAST]
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


def _key(key: Row, *, show_keys: bool) -> Row:
    name = _name(key["key"], show_keys=show_keys)
    return {
        "key": name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...",
        "share": percent(key["share"]),
        "90 % interval": f"{100 * key['low']:.1f} to {percent(key['high'])}",
        "of time": "" if key["time_share"] is None else percent(key["time_share"]),
        "partition": listed([*map(str, key["partitions"])], at_most=_NAMED),
    }


def _filled(rows: list[Row]) -> list[Row]:
    """Return rows without columns that are empty."""
    names = dict.fromkeys(name for row in rows for name, text in row.items() if text)
    return [{name: row.get(name, "") for name in names} for row in rows]


def _consumers(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    behind = length(found["time_lag_s"])
    return f"{found['count']:,}: busiest {found['utilisation']:.0%}, {behind} behind"


def notes(report: Row) -> list[str]:
    """Return sentences about the sample."""
    read = (
        f"Sampled {report['sampled']:,} of {plural(report['records'], 'record')} of the last "
        f"{length(report['seconds'])}, with {plural(report['different'], 'key')}: "
        f"{report['bytes'] / 1e6:,.0f} MB in {report['took_s']:.0f} s by {report['reader']}."
    )
    if report["stopped"]:
        read += f" The limit of {report['stopped']} ended it early."
    return [_PARTITIONERS[report["partitioner"]].format(percent(report["placed"])), read]


def as_document(report: Row, *, show_keys: bool) -> Row:
    """Return the report for JSON; keys are hashed unless they are to be shown."""
    keys = [key | {"key": _name(key["key"], show_keys=show_keys)} for key in report["keys"]]
    return report | {"keys": keys}


def as_page(report: Row, *, show_keys: bool) -> str:
    """Return the report as an HTML document, which loads nothing."""
    by_name = tables(report, show_keys=show_keys)
    template = environment("keys").get_template("keys.html")
    return template.render(report=report, tables=by_name, notes=notes(report))

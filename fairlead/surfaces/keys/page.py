"""The report on a topic's keys: rows of tables, sentences, a JSON document, and a page.

Belongs here: what is shown of a report, and how. Does not: the figures
(`fairlead.domain.key_report`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from fairlead.common.words import length, percent, plural
from fairlead.domain.key_report import Consumers, KeyReport, identity, written
from fairlead.surfaces.templates import environment

Row = dict[str, Any]

#: Columns and their headings.
KEYS: Final = {
    "key": "key",
    "share": "share",
    "interval": "90 % interval",
    "time_share": "of time",
    "partition": "partition",
}
SCENARIOS: Final = {
    "partitions": "partitions",
    "largest": "largest gets",
    "today": "today's consumers",
    "wanted": "consumers wanted",
}
#: Minimum share of a key in a table; a document has all.
_LEAST: Final = 0.001
#: Characters of a key in a table.
_LONGEST: Final = 40
#: Partitions of a key in a table.
_NAMED: Final = 3
_PLACED: Final = {
    "murmur2": "Producers place keys by murmur2, as Java's do by default",
    "crc32": "Producers place keys by CRC32, as librdkafka's do by default",
    "assumed": "Too few keys or partitions show the producers' partitioner: murmur2 is assumed",
    "unknown": "The producers' partitioner is not known",
}


def key_rows(report: KeyReport, *, show_keys: bool) -> list[Row]:
    """Return a row for each heavy key, and one for records without a key."""
    rows: list[Row] = [
        {
            "key": _name(key.key, show_keys=show_keys),
            "share": percent(key.share),
            "interval": f"{percent(key.low).removesuffix(' %')} to {percent(key.high)}",
            "time_share": None if key.time_share is None else percent(key.time_share),
            "partition": _partitions(key.partitions),
        }
        for key in report.keys
        if key.share >= _LEAST
    ]
    if report.without_key:
        without = {"key": "(no key)", "share": percent(report.without_key)}
        rows.append(dict.fromkeys(KEYS) | without)
    return rows


def _name(key: bytes, *, show_keys: bool) -> str:
    if not show_keys:
        return identity(key)
    text = written(key)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(key):,} bytes)"


def _partitions(numbers: Sequence[int]) -> str:
    more = len(numbers) - _NAMED
    return ", ".join(map(str, numbers[:_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def named(columns: Mapping[str, str], rows: Sequence[Row]) -> list[Row]:
    """Return rows with the headings for keys, without columns that are empty."""
    kept = {name: columns[name] for name in columns if any(row[name] for row in rows)}
    return [{heading: row[name] or "" for name, heading in kept.items()} for row in rows]


def scenario_rows(report: KeyReport) -> list[Row]:
    """Return a row for the present number of partitions, and one for more."""
    return [
        {
            "partitions": each.partitions,
            "largest": percent(each.largest),
            "today": _consumers(each.today),
            "wanted": _consumers(each.wanted),
        }
        for each in (report.now, report.then)
        if each is not None
    ]


def _consumers(found: Consumers | None) -> str | None:
    if found is None:
        return None
    return (
        f"{found.count:,}: most utilised {percent(found.utilisation)}, "
        f"{length(found.time_lag_s)} behind"
    )


def heading(report: KeyReport) -> str:
    """Return what was sampled."""
    of = report.topic if report.partition is None else f"{report.topic}-{report.partition}"
    least = "" if any(key.share >= _LEAST for key in report.keys) else f": none has {_LEAST:.1%}"
    return f"{of}: the heaviest of {plural(report.different, 'key')} in the sample{least}"


def notes(report: KeyReport) -> list[str]:
    """Return how the figures came about, in sentences."""
    found = (
        f"{_PLACED[report.partitioner]} ({percent(report.placed)} of the sampled keys are where it "
        "places them)."
    )
    read = (
        f"Sampled {report.sampled:,} of {plural(report.records, 'record')} of the last "
        f"{length(report.seconds)}: {report.bytes / 1e6:,.0f} MB in {report.took_s:.0f} s, by "
        f"{'Spark' if report.reader == 'Spark' else 'the client'}."
    )
    if report.stopped:
        read += f" The limit of {report.stopped} ended it early."
    return [found if report.partitioner != "assumed" else f"{_PLACED['assumed']}.", read]


def as_document(report: KeyReport, *, show_keys: bool) -> Row:
    """Return the report as a JSON document; keys are hashed unless they are to be shown."""
    shown = [
        asdict(key) | {"key": written(key.key) if show_keys else identity(key.key)}
        for key in report.keys
    ]
    return asdict(report) | {"keys": shown}


def as_page(report: KeyReport, *, show_keys: bool) -> str:
    """Return the report as an HTML document, which loads nothing."""
    return (
        environment("keys")
        .get_template("keys.html")
        .render(
            report=report,
            heading=heading(report),
            tables=[
                named(KEYS, key_rows(report, show_keys=show_keys)),
                named(SCENARIOS, scenario_rows(report)),
            ],
            notes=notes(report),
        )
    )

"""What a judgement wants remembered of what members read, as text beside their speeds.

Belongs here: writing equations and mixes down, and reading them again when topics have grown, gone
or come. Does not: what they say (`cost_equations`, `capacities`).

A note is JSON: `{"mix": READ, "limited_since": at, "equations": [[at, seconds, limited,
records_per_s, READ], ...]}`, where READ is `{topic: [[partition, ...], [share, ...]]}`: shares of
`WHOLE`, and topics by their CRC-32, in hexadecimal digits, for names may be long. What a share of
less than one would be is left out.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from assignors.problem import Problem
from fairlead.domain.judgement.cost_equations import Equation, Mix, Places
from fairlead.domain.judgement.looks import Float64

#: What shares are of.
WHOLE: Final = 10_000
#: A note has at most so many characters, and so many more for each partition: the oldest
#: equations that go beyond are left out.
LENGTH: Final = 350
LENGTH_BY_PARTITION: Final = 80
#: Nobody reads more records in a stretch.
LARGEST: Final = 1e18


class InvalidNoteError(ValueError):
    """A note that says nothing, or nonsense."""


class Noted(NamedTuple):
    """What a note says: see `note`."""

    mix: Mix | None = None
    equations: Sequence[Equation] = ()
    limited_since: float | None = None


def note(noted: Noted, problem: Problem) -> str:
    """Write down what a member read; the empty text where there is nothing to say.

    Parameters
    ----------
    noted
        `mix` is what it read while its speed was measured; `equations` are its own, in order of
        time; `limited_since` is since when it has been at its limit, seconds since the epoch.
    problem
        Says which topics partitions are of.
    """
    mix, equations, since = noted
    if mix is None and not any(equation.limited for equation in equations):
        return ""
    written = [
        [
            round(equation.at, 1),
            round(equation.seconds, 1),
            equation.limited,
            float(f"{equation.records.sum() / equation.seconds:.6g}"),
            _read(equation.partitions, equation.records, problem),
        ]
        for equation in equations
    ]
    document: dict[str, Any] = {} if mix is None else {"mix": _read(*mix, problem)}
    if since is not None:
        document["limited_since"] = round(since, 1)
    partitions = {place for equation in equations for place in equation.partitions.tolist()}
    partitions |= set() if mix is None else set(mix[0].tolist())
    most = LENGTH + LENGTH_BY_PARTITION * len(partitions)
    while len(text := _json(document | {"equations": written})) > most and written:
        del written[0]
    return text if len(text) <= most else ""


def read_note(text: str, member: str, problem: Problem, now: float) -> Noted:
    """Read what was written down of a member.

    What was read of topics and partitions that are gone is left out; dates ahead of now are now.

    Raises
    ------
    InvalidNoteError
        It is not such a note.
    """
    if not text:
        return Noted()
    try:
        document = json.loads(text)
        first = dict(zip(map(_digits, problem.topics), _places(problem), strict=True))
        mix = _mix(document["mix"], first) if "mix" in document else None
        equations = [_equation(member, row, first, now) for row in document["equations"]]
        since = document.get("limited_since")
        since = None if since is None else min(_finite(since), now)
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise InvalidNoteError(f"what is remembered of {member} makes no sense") from error
    return Noted(
        mix if mix is not None and mix[0].size else None,
        [equation for equation in equations if equation.partitions.size],
        since,
    )


def _equation(
    member: str, row: Sequence[Any], first: Mapping[str, tuple[int, int]], now: float
) -> Equation:
    at, seconds, limited, per_s, read = row
    if not 0 < float(seconds) * float(per_s) < LARGEST:
        raise ValueError("no stretch of time")
    partitions, shares = _mix(read, first)
    records = shares / WHOLE * per_s * seconds
    return Equation(
        member, min(_finite(at), now), float(seconds), limited is True, partitions, records
    )


def _finite(at: Any) -> float:
    if not np.isfinite(float(at)):
        raise ValueError("no time")
    return float(at)


def _read(
    partitions: Places, records: Float64, problem: Problem
) -> dict[str, tuple[list[int], list[int]]]:
    shares = np.rint(records / records.sum() * WHOLE).astype(np.int64)
    topics = problem.topic_of[partitions]
    numbers = partitions - problem.topic_offsets[topics]
    read: dict[int, tuple[list[int], list[int]]] = {}
    rows = (topics.tolist(), numbers.tolist(), shares.tolist())
    for topic, number, share in zip(*rows, strict=True):
        if share > 0:
            its_numbers, its_shares = read.setdefault(topic, ([], []))
            its_numbers.append(number)
            its_shares.append(share)
    return {_digits(problem.topics[topic]): its for topic, its in read.items()}


def _mix(read: Any, first: Mapping[str, tuple[int, int]]) -> Mix:
    places: dict[int, float] = {}
    for topic, (numbers, shares) in read.items():
        begin, count = first.get(topic, (0, 0))
        for number, share in zip(numbers, shares, strict=True):
            if not (isinstance(number, int) and 0 < share <= WHOLE):
                raise ValueError("no share of a partition")
            if 0 <= number < count:
                places[begin + number] = float(share)
    partitions = np.array(sorted(places), np.intp)
    return partitions, np.array([places[place] for place in partitions.tolist()], np.float64)


def _places(problem: Problem) -> list[tuple[int, int]]:
    """Return the place of each topic's first partition, and how many there are."""
    counts = problem.partition_counts.tolist()
    firsts = np.concatenate(([0], np.cumsum(counts)))[:-1].tolist()
    return list(zip(firsts, counts, strict=True))


def _digits(topic: str) -> str:
    return f"{zlib.crc32(topic.encode()):x}"


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))

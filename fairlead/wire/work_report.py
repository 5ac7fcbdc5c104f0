"""A report of work: processing times that a consumer writes into a committed offset's metadata.

Belongs here: writing and reading the text. Belongs elsewhere: measuring (`followers.core.meter`),
and using reports (`fairlead.domain`).

The text is ASCII. Numbers are in base 36, with leading zeros to a fixed width, so that the reports
of a whole cluster can be parsed as one array::

    fairlead1 c=116kywwk3f9q2 e=0002s000 w=0001uo00 h=0000vz8g k=000019u n=0000019m b=000006fu \
q=0000001iv0 p=000 t=mm8ewu2k

`c` contains the hash of the member id, followed by the token, which is random for each consumer
object. Counters start at 0 when the consumer is created and then only grow. The planner uses their
differences between samples.
"""

import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

#: Start of every report.
PREFIX: Final = "fairlead1 c="
_HASH: Final = 7
TOKEN_LENGTH: Final = 6
#: Letter and number of digits of each number in a report, in the order of `WorkReport`'s fields.
_WIDTHS: Final = {"e": 8, "w": 8, "h": 8, "k": 7, "n": 8, "b": 8, "q": 10, "p": 3, "t": 8}
NUMBERS: Final = len(_WIDTHS)
#: Value of `paused` if processing times are unknown, because several threads or tasks receive or
#: process records.
TIMES_UNKNOWN: Final = 36**3 - 1
#: Largest value of each counter; a report contains this value instead of a greater one. -1 for `p`,
#: because it is not a counter.
_LARGEST: Final = np.array([-1 if name == "p" else 36**w - 1 for name, w in _WIDTHS.items()])
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NO_DIGIT: Final = 255
_TEMPLATE: Final = (
    PREFIX
    + "0" * (_HASH + TOKEN_LENGTH)
    + "".join(f" {name}={'0' * width}" for name, width in _WIDTHS.items())
)


@dataclass(frozen=True)
class WorkReport:
    """The numbers in a report, which a consumer commits with the offset of one partition.

    Parameters
    ----------
    elapsed_ms
        Milliseconds since the consumer was created.
    waiting_ms
        Milliseconds of `elapsed_ms` in which the consumer waited for records.
    handler_ms
        Milliseconds of `elapsed_ms` between the return of records and the application's next call
        of the client: the time in which the application processed records.
    calls
        Number of calls of the client that returned records.
    records
        Number of processed records of the partition, before the committed offset.
    busy_ms
        Milliseconds in which the application processed these records.
    busy_squares_ms2
        Sum of the squared processing times of these records, in square milliseconds.
    paused
        Number of paused partitions; `TIMES_UNKNOWN` if processing times cannot be measured.
    at_ms
        Time of the report by the consumer's clock, in milliseconds since the epoch.
    """

    elapsed_ms: int
    waiting_ms: int
    handler_ms: int
    calls: int
    records: int
    busy_ms: int
    busy_squares_ms2: int
    paused: int
    at_ms: int

    def text(self, member_id: str, token: str) -> str:
        """Return the text of the report.

        Parameters
        ----------
        member_id
            The consumer's member id.
        token
            `TOKEN_LENGTH` random digits of base 36, generated when the consumer is created.

        Examples
        --------
        >>> report = WorkReport(60_000, 45_000, 14_900, 1_650, 1_642, 8_346, 71_100, 0, 2**41)
        >>> report.text("orders-1-6f9619ff", "k3f9q2")[:58]
        'fairlead1 c=116kywwk3f9q2 e=00001aao w=00000yq0 h=00000bhw'
        """
        numbers = zip(_WIDTHS.items(), astuple(self), strict=True)
        fields = "".join(f" {name}={base36(number, width)}" for (name, width), number in numbers)
        return f"{PREFIX}{member_hash(member_id)}{token}{fields}"


def member_hash(member_id: str) -> str:
    """Return the hash of a member id, which reports contain instead of the id.

    Examples
    --------
    >>> member_hash("orders-1-6f9619ff")
    '116kyww'
    """
    return base36(zlib.crc32(member_id.encode()), _HASH)


def base36(number: int, width: int) -> str:
    """Return a number in base 36 with `width` digits; if it is too large, all digits are z.

    Examples
    --------
    >>> base36(36 * 35 + 1, 3), base36(36**2, 2)
    ('0z1', 'zz')
    """
    if number >= 36**width:
        return "z" * width
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


@dataclass(frozen=True, eq=False)
class WorkReports:
    """R reports that were found in the metadata of many offsets.

    Parameters
    ----------
    place
        Index of each report in the list of metadata, ascending, int64 of shape (R,).
    owners
        Hashes of the member ids, strings of shape (R,).
    tokens
        Tokens of the consumers, strings of shape (R,).
    numbers
        The fields of `WorkReport`, in their order, int64 of shape (R, NUMBERS).
    """

    place: npt.NDArray[np.int64]
    owners: npt.NDArray[np.str_]
    tokens: npt.NDArray[np.str_]
    numbers: npt.NDArray[np.int64]


def read_reports(metadata: Sequence[bytes]) -> WorkReports:
    """Return the valid reports in metadata; ignore other metadata.

    A report is also ignored if a counter has reached its largest value, because the counter cannot
    grow any more.

    Parameters
    ----------
    metadata
        Metadata of committed offsets, from any client. A report may end with a NUL byte.
    """
    size = len(_TEMPLATE)
    place = np.array(
        [
            number
            for number, text in enumerate(metadata)
            if text[size:] in _ENDS and text.startswith(_START) and len(text) >= size
        ],
        np.int64,
    )
    texts = b"".join([metadata[number][:size] for number in place.tolist()])
    written = np.frombuffer(texts, np.uint8).reshape(-1, size)
    digits = _VALUE_OF[written[:, _IS_DIGIT]]
    whole = (written[:, ~_IS_DIGIT] == _TEMPLATE_BYTES[~_IS_DIGIT]).all(axis=1)
    whole &= (digits != _NO_DIGIT).all(axis=1)
    written, digits = written[whole], digits[whole]
    first = _HASH + TOKEN_LENGTH
    numbers = np.empty((len(written), NUMBERS), np.int64)
    for column, width in enumerate(_WIDTHS.values()):
        powers = 36 ** np.arange(width - 1, -1, -1, dtype=np.int64)
        numbers[:, column] = digits[:, first : first + width].astype(np.int64) @ powers
        first += width
    full = (numbers == _LARGEST).any(axis=1)
    place, written, numbers = place[whole][~full], written[~full], numbers[~full]
    start = len(PREFIX)
    return WorkReports(
        place=place,
        owners=_texts(written[:, start : start + _HASH]),
        tokens=_texts(written[:, start + _HASH : start + _HASH + TOKEN_LENGTH]),
        numbers=numbers,
    )


def _texts(written: npt.NDArray[np.uint8]) -> npt.NDArray[np.str_]:
    """Convert ASCII bytes of shape (R, width) to R strings."""
    return np.ascontiguousarray(written).view(f"S{written.shape[1]}").ravel().astype(np.str_)


_START: Final = PREFIX.encode()
_ENDS: Final = (b"", b"\0")
_TEMPLATE_BYTES: Final = np.frombuffer(_TEMPLATE.encode(), np.uint8)
_IS_DIGIT: Final = np.arange(len(_TEMPLATE)) >= len(PREFIX)
for _at in range(len(PREFIX), len(_TEMPLATE)):
    _IS_DIGIT[_at] = _TEMPLATE[_at] == "0"
_VALUE_OF: Final = np.full(256, _NO_DIGIT, np.uint8)
_VALUE_OF[np.frombuffer(_DIGITS.encode(), np.uint8)] = np.arange(36)

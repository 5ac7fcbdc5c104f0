"""A report of work: what a consumer writes into the metadata of the offsets that it commits.

Belongs here: the text, how it is written and read. Does not: measuring (`followers.core.meter`),
nor what follows from reports (`fairlead.domain`).

The text is ASCII. Its numbers are in base 36 and padded with zeros to a fixed width, so that the
reports of a whole cluster can be read as one array::

    fairlead1 c=116kywwk3f9q2 e=00002s0g w=000027ps h=000000bg k=00001a n=0000019m b=000006fs \
q=00000h3w00 p=000 t=mih2c0a8

`c` is the hash of the member id, then the token. Counters grow for as long as the consumer lives.
A reader uses their differences between samples.
"""

import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

#: How a report begins.
PREFIX: Final = "fairlead1 c="
_HASH: Final = 7
TOKEN_LENGTH: Final = 6
#: The numbers in the order of `WorkReport`, and how many digits each has.
_WIDTHS: Final = {"e": 8, "w": 8, "h": 8, "k": 7, "n": 8, "b": 8, "q": 10, "p": 3, "t": 8}
NUMBERS: Final = len(_WIDTHS)
#: In the place of paused partitions: the application takes records in several tasks or threads.
SEVERAL_AT_A_TIME: Final = 36**3 - 1
#: The largest numbers, from which a counter cannot grow; -1: allowed.
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
    """What a consumer reports with the committed offset of one partition.

    Parameters
    ----------
    elapsed_ms
        Milliseconds since the consumer was created.
    waiting_ms
        Milliseconds of these in calls that found nothing to return at once.
    handler_ms
        Milliseconds of these in the application's code, between two calls.
    calls
        Calls that returned records.
    records
        Records of the partition that the application took.
    busy_ms
        Milliseconds that the application spent on these records.
    busy_squares_ms2
        Sum of the squares of the milliseconds for each record.
    paused
        Partitions that the consumer has paused; or `SEVERAL_AT_A_TIME`.
    at_ms
        When the report was written, by the consumer's clock: milliseconds since the epoch.
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
        """Return the report as it is committed.

        Parameters
        ----------
        member_id
            Of the consumer, from its coordinator.
        token
            `TOKEN_LENGTH` digits of base 36, chosen at random when the consumer was created.
        """
        numbers = zip(_WIDTHS.items(), astuple(self), strict=True)
        fields = "".join(f" {name}={base36(number, width)}" for (name, width), number in numbers)
        return f"{PREFIX}{member_hash(member_id)}{token}{fields}"


def member_hash(member_id: str) -> str:
    """Return the hash by which reports name a member.

    Examples
    --------
    >>> member_hash("orders-1-6f9619ff")
    '116kyww'
    """
    return base36(zlib.crc32(member_id.encode()), _HASH)


def base36(number: int, width: int) -> str:
    """Write a number with so many digits 0 to 9 and a to z; one that is too large as the largest.

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
    """The reports among the metadata of many offsets.

    Parameters
    ----------
    place
        int64 of shape (R,): ascending, which metadata each report was found in.
    owners
        Text of shape (R,): the hash of the member id.
    tokens
        Text of shape (R,).
    numbers
        int64 of shape (R, NUMBERS): the fields of `WorkReport`, in their order.
    """

    place: npt.NDArray[np.int64]
    owners: npt.NDArray[np.str_]
    tokens: npt.NDArray[np.str_]
    numbers: npt.NDArray[np.int64]


def read_reports(metadata: Sequence[bytes]) -> WorkReports:
    """Find the reports among metadata, which anybody may have written.

    Reports with a counter at its largest value are left out: it grows no more.

    Parameters
    ----------
    metadata
        Of P partitions. A NUL byte may end a report.
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
    """Return ASCII bytes of shape (R, width) as R texts."""
    return np.ascontiguousarray(written).view(f"S{written.shape[1]}").ravel().astype(np.str_)


_START: Final = PREFIX.encode()
_ENDS: Final = (b"", b"\0")
_TEMPLATE_BYTES: Final = np.frombuffer(_TEMPLATE.encode(), np.uint8)
_IS_DIGIT: Final = np.arange(len(_TEMPLATE)) >= len(PREFIX)
for _at in range(len(PREFIX), len(_TEMPLATE)):
    _IS_DIGIT[_at] = _TEMPLATE[_at] == "0"
_VALUE_OF: Final = np.full(256, _NO_DIGIT, np.uint8)
_VALUE_OF[np.frombuffer(_DIGITS.encode(), np.uint8)] = np.arange(36)

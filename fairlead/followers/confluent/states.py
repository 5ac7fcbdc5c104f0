"""The states of a member whose group agrees through a log, and which state may follow which.

Belongs here: the states, and that no other step is taken. Does not: when a step is taken
(`participant`, `attendance`).
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, TypeVar


class Phase(Enum):
    """Where a member is in its group: outside of a generation, in its roll call, or behind it."""

    OUTSIDE = "outside"
    UNDECIDED = "undecided"
    SETTLED = "settled"


class RangeShare(Enum):
    """What became, in a generation, of the share that range gave a member.

    Others may deal out what was ceded. So a member that kept its share must not cede it any more,
    and one that ceded it owns nothing of it, but what a pin says, or where it surely ceded nothing.
    """

    OPEN = "open"
    KEPT = "kept"
    CEDED = "ceded"
    GIVEN_UP = "given up"


State = TypeVar("State", Phase, RangeShare)

#: What may follow each state, beside the state itself.
NEXT: Final[Mapping[Enum, Collection[Enum]]] = {
    Phase.OUTSIDE: (Phase.UNDECIDED,),
    Phase.UNDECIDED: (Phase.SETTLED, Phase.OUTSIDE),
    Phase.SETTLED: (Phase.UNDECIDED, Phase.OUTSIDE),
    RangeShare.OPEN: (RangeShare.KEPT, RangeShare.CEDED),
    RangeShare.KEPT: (),
    RangeShare.CEDED: (RangeShare.KEPT, RangeShare.GIVEN_UP),
    RangeShare.GIVEN_UP: (),
}


def step(state: State, to: State) -> State:
    """Return the state that follows.

    Raises
    ------
    AssertionError
        It must not follow: the call ends, and the consumer joins its group anew.

    Examples
    --------
    >>> step(RangeShare.CEDED, RangeShare.KEPT).value
    'kept'
    """
    if to is not state and to not in NEXT[state]:
        raise AssertionError(f"{to} does not follow {state}")
    return to

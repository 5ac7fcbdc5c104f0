"""What is to be done about a group that its broker assigns without regard to plans.

Belongs here: the sentence, and finding it again in a diagnosis. Does not: anything that takes
arrays, for which whoever reads a list of groups would wait.
"""

from collections.abc import Mapping
from typing import Any, Final

CLASSIC: Final = "classic"
"""The type of groups whose members assign; of the others (KIP-848), `consumer`, the broker does."""
PINNED: Final = "range+fairlead"
"""The protocol of classic groups of confluent-kafka followers: the broker deals out by range, and
the members share that out again by their plan."""
_FOLLOWING: Final = "fairlead"
_BROKERS: Final = "the broker's assignor "


def not_followed(group_type: str | None, assignor: str) -> str:
    """Say what to do about a group that a broker assigns without regard to plans; empty: nothing.

    Examples
    --------
    >>> not_followed("classic", "range")
    ''
    >>> not_followed("consumer", "uniform")[:39]
    "the broker's assignor uniform follows n"
    """
    if group_type in {None, CLASSIC} or assignor in {_FOLLOWING, ""}:
        return ""
    return (
        f"{_BROKERS}{assignor} follows no plans: put the assignor fairlead into the "
        "brokers, and set group.remote.assignor=fairlead in the consumers"
    )


def with_advice(evidence: str, described: Mapping[str, Any]) -> str:
    """Return the evidence of a diagnosis, and what else is to be said of its group.

    Parameters
    ----------
    evidence
        A sentence.
    described
        Its row of the snapshot's groups.
    """
    advice = not_followed(described["group_type"], described["protocol"])
    return f"{evidence.removesuffix('.')}; {advice}" if advice else evidence


def advice_in(evidence: str | None) -> str:
    """Return what `with_advice` has added to the evidence of a diagnosis; empty: nothing.

    Examples
    --------
    >>> row = {"group_type": "consumer", "protocol": "uniform"}
    >>> advice_in(with_advice("all is well", row)) == not_followed("consumer", "uniform")
    True
    >>> advice_in("all is well")
    ''
    """
    _, mark, advice = (evidence or "").partition(f"; {_BROKERS}")
    return _BROKERS + advice if mark else ""

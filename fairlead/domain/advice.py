"""Advice for groups whose broker assigns partitions and ignores plans.

Belongs here: the text of the advice, and finding it in the evidence of a diagnosis. Belongs
elsewhere: anything that imports numpy, because commands that list groups must start quickly.
"""

from collections.abc import Mapping
from typing import Any, Final

#: Type of groups whose members assign partitions. In the type `consumer`, brokers do (KIP-848).
CLASSIC: Final = "classic"
#: Protocol of groups of confluent-kafka consumers that follow plans: Kafka assigns partitions by
#: `range`, and the members then redistribute them by the plan.
AGREED: Final = "range+fairlead"
_FOLLOWING: Final = "fairlead"
_BROKERS: Final = "the broker's assignor "


def not_followed(group_type: str | None, assignor: str) -> str:
    """Return advice for a group whose broker ignores plans; empty for other groups.

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
        f"{_BROKERS}{assignor} follows no plans: install the assignor fairlead in the "
        "brokers, and set group.remote.assignor=fairlead in the consumers"
    )


def with_advice(evidence: str, described: Mapping[str, Any]) -> str:
    """Return the evidence of a diagnosis, with advice if the group needs it.

    Parameters
    ----------
    evidence
        A sentence.
    described
        The group's row in the table of samples.
    """
    advice = not_followed(described["group_type"], described["protocol"])
    return f"{evidence.removesuffix('.')}; {advice}" if advice else evidence


def advice_in(evidence: str | None) -> str:
    """Return the advice at the end of a diagnosis's evidence (see `with_advice`); empty if none.

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

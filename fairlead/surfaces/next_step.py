"""A group's state in words: its next step, whether it follows its plan, why it has no sample.

Belongs here: words for rows of `fairlead.store.history_queries.read_groups`. Belongs elsewhere: the
order of rows, and links.
"""

from collections.abc import Collection, Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from fairlead.domain.advice import advice_in
from fairlead.domain.diagnoses import NO_MEMBERS

if TYPE_CHECKING:
    from fairlead.store.monitoring import SampleAge

Row = Mapping[str, Any]

#: Results of `follows`: whether a group's consumers follow its plan.
FOLLOWS: Final = ("yes", "partly", "no", "unknown", "no plan", "no members")
_WAITING: Final = {"proposed": "decide", "shadow": "see what it would save"}
_NEXT: Final = {
    "healthy": "nothing",
    "recovering": "wait",
    "unbalanced": "plan",
    "slow member": "plan",
    "overloaded": "add consumers",
    "hot partition": "add partitions",
    "stuck partition": "check its consumer",
    "throttled partition": "check its consumer",
    "unknown": "wait for samples",
}


def kind(diagnosis: str | None) -> str:
    """Return how bad a diagnosis is: `good`, `warn`, `bad`, or `soft` if it is unknown.

    Examples
    --------
    >>> [kind(one) for one in ("healthy", "recovering", "overloaded", None)]
    ['good', 'warn', 'bad', 'soft']
    """
    if diagnosis in {None, "unknown"}:
        return "soft"
    return {"healthy": "good", "recovering": "warn"}.get(diagnosis or "", "bad")


def follows(row: Row) -> str:
    """Return whether a group's consumers follow its published plan, one of `FOLLOWS`.

    Examples
    --------
    >>> follows({"evidence": None, "published": 2, "adherence": 1.0})
    'yes'
    >>> follows({"evidence": None, "published": 2, "adherence": None})
    'unknown'
    """
    if row["evidence"] == NO_MEMBERS:
        return "no members"
    if advice_in(row["evidence"]):
        return "no"
    if row["published"] is None:
        return "no plan"
    if row["adherence"] is None:
        return "unknown"
    if row["adherence"] == 1:
        return "yes"
    return "partly" if row["adherence"] else "no"


def is_checked(row: Row) -> bool:
    """Whether a group's adherence to its plan is known; False if it has no members.

    Examples
    --------
    >>> is_checked({"evidence": "", "adherence": 1.0})
    True
    >>> is_checked({"evidence": NO_MEMBERS, "adherence": 1.0})
    False
    """
    return row["adherence"] is not None and row["evidence"] != NO_MEMBERS


def next_step(row: Row, undecided: Collection[str], resting: Collection[str]) -> str:
    """Return in a few words what happens next with a group, or what a person should do.

    Parameters
    ----------
    row
        A row of `read_groups`.
    undecided
        Groups that need a plan, and about which no planning run has decided lately.
    resting
        Groups in back-off: a plan made them worse, so for a while they get no new plan.

    Examples
    --------
    >>> row = {"group": "orders", "waiting_state": None, "frozen": None, "evidence": ""}
    >>> row["diagnosis"] = "overloaded"
    >>> next_step(row, (), ()), next_step(row | {"waiting_state": "proposed"}, (), ())
    ('add consumers', 'decide')
    >>> next_step(row | {"waiting_state": "approved", "frozen": True}, (), ())
    'wait: frozen'
    >>> row["diagnosis"] = "unbalanced"
    >>> next_step(row, (), ()), next_step(row, (), ("orders",))
    ('plan', 'wait: back-off')
    """
    if row["frozen"]:
        return "wait: frozen"
    if row["waiting_state"] is not None:
        return _WAITING.get(row["waiting_state"], "wait: being sent")
    if row["group"] in undecided:
        return "turn planning on"
    if row["evidence"] == NO_MEMBERS:
        return "start its consumers"
    if advice_in(row["evidence"]):
        return "make it follow plans"
    step = _NEXT.get(row["diagnosis"], "wait for samples")
    return "wait: back-off" if step == "plan" and row["group"] in resting else step


def why_no_sample(last: "SampleAge | None") -> str:
    """Explain why a group has no recent sample.

    Parameters
    ----------
    last
        The age of the newest sample of all groups; None: no sample was ever taken.
    """
    if last is None or last.overdue:
        return "The sensor group_samples takes samples: is the Dagster daemon running?"
    return (
        f"Other groups were sampled at {last.began.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC; these "
        "groups read nothing, no longer exist, or are excluded by discovery"
    )

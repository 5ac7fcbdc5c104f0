"""Steps that a page offers to its reader, each with the command that does the same.

Belongs here: the steps for a version, a group, all groups. Does not: whether the database permits
them, nor the pages that ask for a reason (`fairlead.surfaces.web`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead.common.commands import REASON, fairlead_command
from fairlead.surfaces.links import page_address

if TYPE_CHECKING:
    from fairlead.domain.records import StoredPlan

_WHY: Final = ("--reason", REASON)
#: Maximum number of hot partitions whose command is shown.
_HOT: Final = 3


@dataclass(frozen=True)
class Offer:
    """A step that a person can take.

    Parameters
    ----------
    label
        The text of its link.
    address
        Address of the page that describes the step and asks for a reason, relative to the list of
        groups; None: the step is not possible on a page.
    command
        The command in a shell; "": the page shows it elsewhere.
    """

    label: str
    address: str | None
    command: str


@dataclass(frozen=True)
class Desk:
    """The reader of a page.

    Parameters
    ----------
    person
        The name that a proxy has proven; None: no name, so that the page is read-only.
    reason
        Why the page is read-only.
    """

    person: str | None = None
    reason: str = ""


def of_version(plan: "StoredPlan", *, approvable: bool) -> list[Offer]:
    """Return the steps that a person can take with a version.

    Parameters
    ----------
    plan
        The version.
    approvable
        Whether a proposed version is valid and has not expired.
    """
    group, version = plan.group, str(plan.version)

    def address(verb: str) -> str | None:
        by_page = verb == "reject" or plan.four_eyes != "database"
        return page_address("act", do=verb, group=group, version=version) if by_page else None

    if plan.state == "proposed":  # the review has the commands, with the hash
        reject = Offer("Reject", address("reject"), "")
        return [Offer("Approve", address("approve"), ""), reject] if approvable else [reject]
    if plan.state == "published":
        command = fairlead_command("plans withdraw", group, options=_WHY)
        return [Offer("Withdraw", address("withdraw"), command)]
    if plan.was_followed:
        command = fairlead_command("plans rollback", group, version, options=_WHY)
        return [Offer(f"Roll back to version {version}", address("rollback"), command)]
    return []


def of_freeze(group: str | None, *, frozen: bool) -> Offer:
    """Return the step that freezes or unfreezes a group, or, with None, all groups.

    Examples
    --------
    >>> of_freeze("-orders", frozen=True).command
    "fairlead unfreeze --reason 'your reason' -- -orders"
    >>> of_freeze(None, frozen=False).address
    'act?do=freeze'
    """
    verb = "unfreeze" if frozen else "freeze"
    if group is None:
        command = fairlead_command(verb, options=["--all", *_WHY])
        return Offer(f"{verb.capitalize()} all groups", page_address("act", do=verb), command)
    address = page_address("act", do=verb, group=group)
    return Offer(verb.capitalize(), address, fairlead_command(verb, group, options=_WHY))


def of_hot_partitions(group: str, diagnosis: str | None, names: Sequence[str]) -> list[str]:
    """Return the commands that list the keys of a group's hot partitions, of the first few.

    Examples
    --------
    >>> of_hot_partitions("billing", "hot partition", ["orders-7"])
    ['fairlead keys orders --group=billing --partition=7']
    >>> of_hot_partitions("billing", "overloaded", ["orders-7"])
    []
    """
    if diagnosis != "hot partition":
        return []
    commands = []
    for name in names[:_HOT]:
        topic, _, partition = name.rpartition("-")
        options = [f"--group={group}", f"--partition={partition}"]
        commands.append(fairlead_command("keys", topic, options=options))
    return commands

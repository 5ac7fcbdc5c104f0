"""What a page offers to whoever looks at it: steps, each with the command that does the same.

Belongs here: which steps there are for a version, a group, all groups. Does not: whether the
database lets somebody take them, nor the pages that ask for a reason (`fairlead.surfaces.web`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from fairlead.common.commands import shell_join, shell_quote

if TYPE_CHECKING:
    from fairlead.domain.records import StoredPlan

#: Two words, so that it is quoted: whoever puts a reason there sees how.
_WHY: Final = "say why"
#: Maximum number of hot partitions whose command is shown.
_HOT: Final = 3


@dataclass(frozen=True)
class Offer:
    """One thing that a person can do.

    Parameters
    ----------
    label
        What a link to it says.
    address
        Of the page that says what will happen and asks for a reason, relative to the list of
        groups; None: pages cannot do it.
    command
        For a shell; "": the page has it elsewhere.
    """

    label: str
    address: str | None
    command: str


@dataclass(frozen=True)
class Desk:
    """Who looks at a page.

    Parameters
    ----------
    person
        Their name; None: nobody is proven, and the page is read-only.
    reason
        Why it is read-only.
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
        Whether its bytes and its time are good, if it waits.
    """
    by_page = plan.four_eyes != "database"
    group, version = plan.group, plan.version

    def address(verb: str) -> str:
        return _address(verb, group, version)

    if plan.state == "proposed":  # the review has the commands, with the hash, in every way
        reject = Offer("Reject", address("reject"), "")
        approve = Offer("Approve", address("approve") if by_page else None, "")
        return [approve, reject] if approvable else [reject]
    if plan.state == "published":
        command = _command("plans withdraw", group)
        return [Offer("Withdraw", address("withdraw") if by_page else None, command)]
    if plan.was_followed:
        command = _command("plans rollback", group, str(version))
        label = f"Roll back to version {version}"
        return [Offer(label, address("rollback") if by_page else None, command)]
    return []


def of_freeze(group: str | None, *, frozen: bool) -> Offer:
    """Return the step that freezes or unfreezes a group, or, with None, all groups.

    Examples
    --------
    >>> of_freeze("-orders", frozen=True).command
    "fairlead unfreeze --reason 'say why' -- -orders"
    >>> of_freeze(None, frozen=False).address
    'act?do=freeze'
    """
    verb = "unfreeze" if frozen else "freeze"
    if group is None:
        command = f"fairlead {verb} --all --reason {shell_quote(_WHY)}"
        return Offer(f"{verb.capitalize()} all groups", _address(verb), command)
    return Offer(verb.capitalize(), _address(verb, group), _command(verb, group))


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
        named = [*options, "--", topic] if topic.startswith("-") else [topic, *options]
        commands.append(shell_join(["fairlead", "keys", *named]))
    return commands


def _address(verb: str, group: str | None = None, version: int | None = None) -> str:
    asked = {"do": verb, "group": group, "version": version}
    named = {key: value for key, value in asked.items() if value is not None}
    return f"act?{urlencode(named, quote_via=quote)}"


def _command(verb: str, *named: str) -> str:
    # A group may be called like an option.
    end = ["--"] if named[0].startswith("-") else []
    return f"fairlead {verb} --reason {shell_quote(_WHY)} {shell_join([*end, *named])}"

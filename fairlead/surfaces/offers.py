"""Steps that a person can take, on a page, in a shell, in SQL or in Dagster.

Belongs here: the steps for a version, a group, all groups. Belongs elsewhere: whether the database
permits them, and the pages that ask for a reason (`fairlead.surfaces.web`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead.common.commands import REASON, fairlead_command, sql_call
from fairlead.surfaces.links import launchpad_url, page_address

if TYPE_CHECKING:
    from fairlead.domain.records import StoredPlan

_WHY: Final = ("--reason", REASON)
#: Maximum number of hot partitions for which a command is shown.
_HOT: Final = 3


@dataclass(frozen=True)
class Offer:
    """A step that a person can take.

    Parameters
    ----------
    label
        The text of the link.
    address
        Address of the page that describes the step and asks for a reason, relative to the list of
        groups; None: the step is not possible on a page.
    command
        The command in a shell.
    statement
        The statement in psql that approves or rejects a proposed version; "" for other steps.
    launchpad
        Address in the Dagster UI; None if unknown, or if Dagster's database user has no right to
        take the step.
    """

    label: str
    address: str | None
    command: str
    statement: str = ""
    launchpad: str | None = None


@dataclass(frozen=True)
class Desk:
    """The reader of a page, and whether the page lets this person take steps, such as approvals.

    Parameters
    ----------
    person
        The reader's name, proven by a proxy; None: the page is read-only.
    reason
        If the page is read-only: the reason.
    """

    person: str | None = None
    reason: str = ""


def of_version(
    plan: "StoredPlan", *, approvable: bool, dagster_url: str | None = None
) -> list[Offer]:
    """Return the steps that a person can take with a version.

    Parameters
    ----------
    plan
        The version.
    approvable
        Whether the version, if it is proposed, can be approved: it is valid and has not expired.
    dagster_url
        Address of the Dagster UI; None if not known.
    """
    group, version = plan.group, str(plan.version)
    if plan.state == "proposed":
        of_reject = reject(plan, dagster_url)
        return [approve(plan, dagster_url), of_reject] if approvable else [of_reject]
    if plan.state == "published":
        command = fairlead_command("plans withdraw", group, options=_WHY)
        return [Offer("Withdraw", _address("withdraw", plan), command)]
    if plan.was_followed:
        command = fairlead_command("plans rollback", group, version, options=_WHY)
        return [Offer(f"Roll back to version {version}", _address("rollback", plan), command)]
    return []


def approve(plan: "StoredPlan", dagster_url: str | None) -> Offer:
    """Return the step that approves a plan by its hash.

    If a second person must approve the plan (`four_eyes`), the step has no launchpad: Dagster's
    database user is a planner, and planners have no right to approve such plans.

    Parameters
    ----------
    dagster_url
        Address of the Dagster UI; "" for a link inside it; None if not known.
    """
    statement = sql_call("approve_plan", plan.group, plan.version, REASON, plan.sha256)
    base = None if plan.four_eyes else dagster_url
    return _decision("approve", plan, statement, base, sha256=plan.sha256)


def reject(plan: "StoredPlan", dagster_url: str | None) -> Offer:
    """Return the step that rejects a plan; `dagster_url` is as for `approve`."""
    statement = sql_call("reject_plan", plan.group, plan.version, REASON)
    return _decision("reject", plan, statement, dagster_url)


def _decision(
    verb: str, plan: "StoredPlan", statement: str, dagster_url: str | None, **seen: str
) -> Offer:
    options = [*(word for name, value in seen.items() for word in (f"--{name}", value)), *_WHY]
    command = fairlead_command(f"plans {verb}", plan.group, str(plan.version), options=options)
    config: dict[str, str | int] = {"group": plan.group, "version": plan.version, **seen}
    url = None
    if dagster_url is not None:
        url = launchpad_url(dagster_url, verb, f"{verb}_plan", **config)
    return Offer(verb.capitalize(), _address(verb, plan), command, statement, url)


def _address(verb: str, plan: "StoredPlan") -> str | None:
    """Return the address of a step's page; None if the step is not possible on a page."""
    if verb != "reject" and plan.four_eyes == "database":
        return None
    return page_address("act", do=verb, group=plan.group, version=plan.version)


def of_freeze(group: str | None, *, frozen: bool) -> Offer:
    """Return the step that freezes or unfreezes a group or, if `group` is None, all groups.

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
    """Return commands that list the keys of the first few hot partitions of a group.

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

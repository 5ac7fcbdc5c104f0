"""How a person approves or rejects a version: a command, an SQL statement, a launchpad.

Belongs here: commands and links, quoted so that they can be copied. Does not: whether they are
offered (the review, the assets).
"""

from dataclasses import dataclass

from fairlead.common.commands import REASON, fairlead_command, sql_call
from fairlead.domain.records import StoredPlan
from fairlead.surfaces.links import launchpad_url


@dataclass(frozen=True)
class Way:
    """An action on a plan, in three ways.

    Parameters
    ----------
    verb
        The action.
    command, statement
        The command for a shell, and the statement for psql.
    launchpad
        Address in the Dagster UI; None if it is not known or would be refused.
    """

    verb: str
    command: str
    statement: str
    launchpad: str | None


def approve(plan: StoredPlan, dagster_url: str | None) -> Way:
    """Return how to approve a plan, by its hash.

    With four eyes there is no launchpad: Dagster's database user is a planner.

    Parameters
    ----------
    dagster_url
        Address of the Dagster UI; "" for a link inside it; None if not known.
    """
    url = None
    if dagster_url is not None and not plan.four_eyes:
        named = _configured(plan) | {"sha256": plan.sha256}
        url = launchpad_url(dagster_url, "approve", "approve_plan", **named)
    statement = sql_call("approve_plan", plan.group, plan.version, REASON, plan.sha256)
    command = _command("approve", plan, "--sha256", plan.sha256, "--reason", REASON)
    return Way("Approve", command, statement, url)


def reject(plan: StoredPlan, dagster_url: str | None) -> Way:
    """Return how to reject a plan."""
    url = None
    if dagster_url is not None:
        url = launchpad_url(dagster_url, "reject", "reject_plan", **_configured(plan))
    statement = sql_call("reject_plan", plan.group, plan.version, REASON)
    return Way("Reject", _command("reject", plan, "--reason", REASON), statement, url)


def _configured(plan: StoredPlan) -> dict[str, str | int]:
    return {"group": plan.group, "version": plan.version}


def _command(step: str, plan: StoredPlan, *options: str) -> str:
    return fairlead_command(f"plans {step}", plan.group, str(plan.version), options=options)

"""The review page: facts, risks and ways to decide, in one HTML document that needs no network.

Belongs here: the content of the page. Belongs elsewhere: reading the facts (`facts`), assessing
them (`risks`), the layout (`templates/review.html`).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Engine

from fairlead.common.commands import fairlead_command
from fairlead.common.words import (
    length,
    number,
    plural,
)
from fairlead.domain.approval import PlanFacts, decide_approval
from fairlead.domain.candidate_figures import improvement
from fairlead.domain.cohorts import cohort_of
from fairlead.domain.policy import Policy, policy_for
from fairlead.store.freezes import freezes_on
from fairlead.store.history_queries import read_groups
from fairlead.store.queries import Row
from fairlead.store.regressions import back_offs
from fairlead.surfaces import offers
from fairlead.surfaces.links import asset_url, page_address
from fairlead.surfaces.review.facts import Facts, gather
from fairlead.surfaces.review.risks import risks
from fairlead.surfaces.templates import environment

#: Maximum number of rows of a table; commands list all rows.
ROWS: Final = 500

_TEMPLATES: Final = environment("review")
_TEMPLATES.globals["of_freeze"] = offers.of_freeze


def review_page(
    engine: Engine,
    group: str,
    version: int | None = None,
    *,
    dagster_url: str | None = None,
    home: str | None = None,
    policies: Sequence[Policy] | None = None,
    desk: offers.Desk | None = None,
    now: datetime | None = None,
) -> str:
    """Return the review of a version as an HTML document.

    Parameters
    ----------
    engine
        Fairlead's database; `fairlead_reader` is enough.
    group
        The consumer group.
    version
        Version of the group's plan; None: the newest.
    dagster_url
        Address of the Dagster UI; None: the page has no link to it.
    home
        Address of the list of groups, relative to the review; None: the review is a file.
    policies
        The policies, to show their present decision on a plan that waits; None: unknown.
    desk
        The reader of the page, who may be allowed to act; None: the page is a file.
    now
        The time, time-zone-aware, from which ages and expiry are computed; None: now.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    PlanStateError
        There is no such version.
    """
    facts = gather(engine, group, version, now or datetime.now(UTC))
    plan = facts.stored
    chosen = None if plan.rolled_back_from else plan.assignor
    return _TEMPLATES.get_template("review.html").render(
        facts=facts,
        plan=plan,
        figures=facts.plan,
        now=_measured(engine, facts),
        summary=summary(facts),
        desk=desk,
        steps=offers.of_version(plan, approvable=_approvable(facts), dagster_url=dagster_url),
        risks=risks(facts),
        freezes=freezes_on(engine, group),
        resting=back_offs(engine, [group]).values(),
        policy=_policy(facts, policies),
        age=length(facts.now - plan.snapshot_at),
        rows=ROWS,
        chosen=chosen,
        most_lag=max((max(row.lag_before, row.lag_after) for row in facts.consumers), default=0)
        or 1,
        home=home,
        own=home and page_address("group", group=plan.group),
        dagster=asset_url(dagster_url, "assignment_plan", cohort_of(plan.group, policies or ())),
        every_move=fairlead_command(
            "plans show", plan.group, str(plan.version), options=["--json"]
        ),
    )


def summary(facts: Facts) -> str:
    """Return one sentence about what the plan does."""
    plan, parts = facts.plan, []
    partitions = "" if facts.partitions is None else f" of {number(facts.partitions)}"
    if plan["moved"]:
        parts.append(f"moves {plan['moved']:,}{partitions} partitions to another consumer")
    if plan["placed"]:
        parts.append(f"gives {plural(plan['placed'], 'partition')} without an owner one")
    before, after = (plan[f"forecast_time_lag_{when}"] for when in ("before", "predicted"))
    if before is not None and after is not None:
        parts.append(_forecast(before, after))
    elif plan["lag_max_predicted"] is not None:
        before, after = (number(plan[f"lag_max_{when}"]) for when in ("before", "predicted"))
        parts.append(f"takes the most loaded consumer from {before} to {after} records")
    if not parts:
        return "It changes nothing."
    *first, last = parts
    return f"It {', '.join(first)}{', and ' if first else ''}{last}."


def _forecast(before: float, after: float) -> str:
    """Describe the effect on the group's forecast time lag.

    Examples
    --------
    >>> _forecast(660, 15), _forecast(312, 300)
    ('reduces the forecast time lag from 11 min to 15 s', 'leaves the forecast time lag at 5 min')
    """
    if length(before) == length(after):
        return f"leaves the forecast time lag at {length(after)}"
    change = "reduces" if after < before else "increases"
    return f"{change} the forecast time lag from {length(before)} to {length(after)}"


def _policy(facts: Facts, policies: Sequence[Policy] | None) -> str | None:
    """Describe how the group's policy would decide on the plan now.

    None: the policies are unknown, or the plan does not wait for approval.
    """
    plan = facts.plan
    if policies is None or not facts.waits or plan["lag_max_predicted"] is None:
        return None
    answer = decide_approval(
        policy_for(plan["group"], policies),
        PlanFacts(
            moved=plan["moved"],
            placed=plan["placed"],
            improvement=improvement(
                {"forecast_time_lag_s": plan["forecast_time_lag_before"]},
                {"forecast_time_lag_s": plan["forecast_time_lag_predicted"]},
            ),
            statuses={row["status"] for row in facts.statuses}
            if facts.analysed is None
            else facts.analysed.statuses,
        ),
        facts.now,
    )
    return answer.reason


def _measured(engine: Engine, facts: Facts) -> Row | None:
    """Return the group's newest figures if they were measured under this plan, otherwise None.

    The plan must be published, and the figures must be newer than its publication.
    """
    published_at = facts.plan["published_at"]
    if facts.stored.state != "published" or published_at is None:
        return None
    (row,) = read_groups(engine, [facts.stored.group])
    measured = row["lag_max_now"] is not None and row["live_at"] > published_at
    return row if measured else None


def _approvable(facts: Facts) -> bool:
    """Whether the plan can be approved: it waits, its bytes are valid, and shadow mode is off."""
    return facts.waits and facts.document is not None and not facts.stored.shadow

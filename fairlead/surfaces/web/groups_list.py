"""The list of groups, worst first: diagnosis, plan and next step.

Belongs here: which groups are listed, and how many. Belongs elsewhere: their order
(`fairlead.domain.worst_first`), a group's own page (`group`), the review of a plan
(`fairlead.surfaces.review`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from sqlalchemy import Engine

from fairlead.domain.diagnoses import DIAGNOSES, NO_MEMBERS
from fairlead.domain.policy import Policy, policy_for
from fairlead.store.freezes import read_freezes
from fairlead.store.history_queries import read_groups, read_states, undecided
from fairlead.store.monitoring import CURRENT_WITHIN, last_sample
from fairlead.store.queries import Row
from fairlead.store.regressions import back_offs
from fairlead.surfaces.next_step import FOLLOWS, follows, next_step, why_no_sample
from fairlead.surfaces.offers import Desk, of_freeze
from fairlead.surfaces.web.layout import TEMPLATES, ages

#: Maximum number of groups on the page; filters find the others.
MOST_GROUPS: Final = 200
#: Shown as the diagnosis of groups that were not analysed yet.
NOT_ANALYSED: Final = "not analysed"


@dataclass(frozen=True)
class Filters:
    """Filters of the list; "" matches all groups.

    Parameters
    ----------
    find
        Part of the group's name.
    diagnosis
        A diagnosis, or `NOT_ANALYSED`.
    policy
        Pattern of the group's policy.
    follows
        One of `FOLLOWS`.
    """

    find: str = ""
    diagnosis: str = ""
    policy: str = ""
    follows: str = ""

    def match(self, row: Row, policies: Sequence[Policy]) -> bool:
        """Whether a group matches all filters."""
        return (
            self.find in row["group"]
            and (not self.diagnosis or self.diagnosis == (row["diagnosis"] or NOT_ANALYSED))
            and (not self.follows or self.follows == follows(row))
            and (not self.policy or self.policy == policy_for(row["group"], policies).groups)
        )


def groups_page(
    engine: Engine,
    filters: Filters | None = None,
    *,
    dagster_url: str | None = None,
    policies: Sequence[Policy] = (),
    desk: Desk | None = None,
    now: datetime | None = None,
) -> str:
    """Return the list of groups, worst first, as an HTML document.

    Parameters
    ----------
    engine
        Fairlead's database.
    filters
        Which groups are listed; None: all.
    dagster_url
        Address of the Dagster UI; None: the page has no link to it.
    policies
        The policies of the settings.
    desk
        The reader of the page, who may be allowed to act.
    now
        The time, time-zone-aware, from which ages are computed; None: now.
    """
    filters = filters or Filters()
    states, freezes = read_states(engine), read_freezes(engine)
    listed = [row for row in states if filters.match(row, policies)]
    read_at = now or datetime.now(UTC)
    names = [row["group"] for row in listed[:MOST_GROUPS]]
    details = {row["group"]: row for row in read_groups(engine, names)} if names else {}
    waits, last, resting = undecided(listed, read_at), last_sample(engine), back_offs(engine)
    return TEMPLATES.get_template("groups.html").render(
        groups=[details[name] for name in names if name in details],
        count=len(listed),
        waiting=sum(row["waiting_state"] == "proposed" for row in listed),
        filters=filters,
        diagnoses=(*DIAGNOSES, NOT_ANALYSED),
        patterns=sorted({policy.groups for policy in policies} | {Policy().groups}),
        follows_choices=FOLLOWS,
        undecided=waits,
        old=[row["group"] for row in listed if _is_old(row, read_at)],
        why_no_sample=why_no_sample(last),
        freezes=freezes,
        resting=resting.values(),
        desk=desk,
        steps=[of_freeze(None, frozen=any(freeze.group is None for freeze in freezes))],
        dagster_url=dagster_url,
        next_step=partial(next_step, undecided=frozenset(waits), resting=resting),
        policy=lambda name: policy_for(name, policies).groups,
        age=ages(read_at),
        now=read_at,
    )


def _is_old(row: Row, now: datetime) -> bool:
    """Whether a diagnosis is old. False if the group has no members: it is not analysed then."""
    last_seen = row["last_seen"]
    return (
        last_seen is not None and now - last_seen > CURRENT_WITHIN and row["evidence"] != NO_MEMBERS
    )

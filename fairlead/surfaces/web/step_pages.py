"""Texts of the page before a step, which shows the effects, and of the page with the result.

Belongs here: the texts of each step. Belongs elsewhere: who acts (`identity`), the form (`forms`),
or carrying out a step (`acting`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Engine

from fairlead.common.words import listed
from fairlead.domain.reconciliation import PUBLISHED_WITHIN_S, SENSOR, WHAT_FOLLOWS
from fairlead.domain.records import StoredPlan
from fairlead.errors import PlanStateError
from fairlead.store.acts import Acted, Verb, agreed
from fairlead.store.freezes import Freeze, freeze_on, read_freezes
from fairlead.store.history_queries import read_diff
from fairlead.store.plans import PlanStore
from fairlead.store.queries import require_group
from fairlead.surfaces.review.facts import gather
from fairlead.surfaces.review.page import summary
from fairlead.surfaces.review.risks import Risk, risks

#: Maximum number of rows of a table; the review has all rows.
ROWS: Final = 50
_APPROVED: Final = (
    f"After the approval, {WHAT_FOLLOWS}. The consumers that follow plans then rebalance."
)
_REJECTED: Final = (
    "The version is rejected permanently, and consumers keep their partitions. The next planning "
    "run analyses the group again, and may propose another version."
)
_ROLLED_BACK: Final = (
    "The assignment of version {version} is proposed again, as the group's next version. It needs "
    "an approval like any other version. It is sent even if the group is frozen."
)
_WITHDRAWN: Final = (
    "The plan is withdrawn: the consumers rebalance to their fallback, usually Kafka's range. "
    "Waiting versions of the group end, too."
)
_PLANNED_AGAIN: Final = (
    "The next planning run may propose a plan again. To prevent it from being sent, freeze the "
    "group, too."
)
_FROZEN: Final = (
    "No new version is sent for {what} until it is unfrozen. Proposed and approved versions keep "
    "their state; a version that is already being sent still arrives."
)
_STILL_FOLLOWED: Final = (
    "Consumers keep following the published plan, and its lease is renewed. A rollback is still "
    "sent, and a plan can be withdrawn."
)
_SOON: Final = f"The sensor {SENSOR} does it within {PUBLISHED_WITHIN_S} s."
_Moves = Sequence[tuple[str, str | None, str | None]]


@dataclass(frozen=True)
class Sheet:
    """The text of a page about a step.

    Parameters
    ----------
    title, button
        Title of the page, label of the form's button.
    sentences
        What the step will do.
    group, version, sha256
        The group that the step changes and, if the step changes a plan, the plan's version and
        hash. The form sends these values. For `unfreeze`, `version` is the number of the freeze.
    moves
        For each move: the partition, its present owner, and its next owner.
    risks
        Risks of an approval.
    """

    title: str
    button: str
    sentences: Sequence[str]
    group: str | None
    version: int | None = None
    sha256: str | None = None
    moves: _Moves = ()
    risks: Sequence[Risk] = ()


def sheet(
    engine: Engine, verb: Verb, group: str | None, version: int | None, now: datetime
) -> Sheet:
    """Return the text of the page before a step.

    Raises
    ------
    GroupError, PlanStateError
        The step is not possible, or no longer possible.
    """
    if group is not None:
        require_group(engine, group)
    if verb == "freeze":
        return _freeze(engine, group)
    if verb == "unfreeze":
        return _unfreeze(engine, group)
    if group is None or version is None:
        raise PlanStateError(f"The step {verb} needs a group and a version")
    return _STEPS[verb](engine, PlanStore(engine).get(group, version), now)


def _sheet(
    plan: StoredPlan,
    what: str,
    sentences: Sequence[str],
    *,
    moves: _Moves = (),
    dangers: Sequence[Risk] = (),
) -> Sheet:
    title = f"{what} version {plan.version} of {plan.group}?"
    about = (plan.group, plan.version, plan.sha256)
    return Sheet(title, what, sentences, *about, moves, dangers)


def _approve(engine: Engine, plan: StoredPlan, now: datetime) -> Sheet:
    _require(engine, plan, "proposed")
    facts = gather(engine, plan.group, plan.version, now)
    if facts.document is None or not facts.waits:
        raise PlanStateError(
            f"{_name(plan)} cannot be approved: {facts.broken or 'it has expired'}"
        )
    if plan.shadow:
        raise PlanStateError(f"{_name(plan)} is in shadow mode: its policy publishes nothing")
    freeze = freeze_on(plan, read_freezes(engine))
    return _sheet(
        plan,
        "Approve",
        [
            summary(facts),
            _APPROVED,
            *([f"It is not sent yet: {freeze}."] if freeze else []),
            *_second(engine, "approve", plan),
        ],
        moves=[
            (f"{move['topic']}-{move['partition']}", move["previous_member"], move["member"])
            for move in facts.plan["moves"]
        ],
        dangers=risks(facts),
    )


def _reject(engine: Engine, plan: StoredPlan, _: datetime) -> Sheet:
    _require(engine, plan, "proposed")
    return _sheet(plan, "Reject", [_REJECTED])


def _rollback(engine: Engine, plan: StoredPlan, _: datetime) -> Sheet:
    if plan.state == "published":
        raise PlanStateError(f"{_name(plan)} is already the published version")
    if not plan.was_followed:
        raise PlanStateError(
            f"{_name(plan)} is {plan.state}: only a version that was published can be restored"
        )
    published = PlanStore(engine).published(plan.group)
    moves = read_diff(engine, plan.group, published.version, plan.version) if published else []
    return _sheet(
        plan,
        "Roll back to",
        [
            _ROLLED_BACK.format(version=plan.version),
            "The rollback is refused if members or partitions have changed since that version.",
            _SOON,
            *_second(engine, "rollback", plan),
        ],
        moves=[
            (f"{move['topic']}-{move['partition']}", move["member_before"], move["member_after"])
            for move in moves
        ],
    )


def _withdraw(engine: Engine, plan: StoredPlan, _: datetime) -> Sheet:
    _require(engine, plan, "published")
    texts = [_WITHDRAWN, _PLANNED_AGAIN, _SOON, *_second(engine, "withdraw", plan)]
    return _sheet(plan, "Withdraw", texts)


def _freeze(engine: Engine, group: str | None) -> Sheet:
    what = _scope(group)
    now = [
        f"Already frozen: {freeze}. Your reason replaces this one."
        for freeze in _freezes_of(engine, group)
    ]
    texts = [_FROZEN.format(what=what), _STILL_FOLLOWED, *now]
    return Sheet(f"Freeze {what}?", "Freeze", texts, group)


def _unfreeze(engine: Engine, group: str | None) -> Sheet:
    freezes = _freezes_of(engine, group)
    if not freezes:
        raise PlanStateError(f"Not frozen: {_scope(group)}")
    others = [freeze for freeze in read_freezes(engine) if freeze not in freezes]
    waiting = [
        f"{plan.group} version {plan.version}"
        for plan in PlanStore(engine).in_state(
            "approved", groups=None if group is None else [group]
        )
        if freeze_on(plan, others) is None
    ]
    texts = [
        f"Now {freezes[0]}.",
        f"Approved plans are sent within {PUBLISHED_WITHIN_S} s: {listed(waiting)}."
        if waiting
        else "No approved plan waits.",
        *(f"This remains: {freeze}." for freeze in others),
        *_agreed(engine, "unfreeze", group, freezes[0].number),
    ]
    return Sheet(f"Unfreeze {_scope(group)}?", "Unfreeze", texts, group, freezes[0].number)


_STEPS: Final[Mapping[str, Callable[[Engine, StoredPlan, datetime], Sheet]]] = {
    "approve": _approve,
    "reject": _reject,
    "rollback": _rollback,
    "withdraw": _withdraw,
}


def outcome(engine: Engine, done: Acted) -> list[str]:
    """Return the result of a step, in sentences."""
    what = _scope(done.group) if done.sha256 is None else f"{done.group}, version {done.version}"
    verb = "roll back" if done.act == "rollback" else done.act
    who = f"{done.actor} requested to {verb} ({what}): {done.reason}."
    if done.outcome == "agreed":
        return [who, "The step takes two people: another person must request the same."]
    if done.outcome == "asked":
        return [who, f"{_SOON} Then open this page again."]
    if done.answer is not None:
        answer = "The planner has done it" if done.outcome == "done" else "The planner has refused"
        return [who, f"{answer}: {done.answer}."]
    if done.act in {"freeze", "unfreeze"}:
        freezes = _freezes_of(engine, done.group)
        return [
            who,
            f"Now {freezes[0]}." if freezes else f"Not frozen now: {_scope(done.group)}.",
        ]
    assert done.group is not None  # noqa: S101 - this step is about a version
    assert done.version is not None  # noqa: S101 - the same
    plan = PlanStore(engine).get(done.group, done.version)
    held_by = freeze_on(plan, read_freezes(engine))
    now = f"Version {plan.version} is now {plan.state}."
    if plan.state == "approved":
        now += f" It is not sent: {held_by}." if held_by else f" {_SOON}"
    return [who, now]


def _require(engine: Engine, plan: StoredPlan, state: str) -> None:
    """Raise PlanStateError if the plan is not in `state`.

    The message names the group's newest version that is in `state`, if there is one.
    """
    if plan.state == state:
        return
    newest = max(
        (waiting.version for waiting in PlanStore(engine).in_state(state, groups=[plan.group])),
        default=None,
    )
    other = f": version {newest} is {state}" if newest else ""
    raise PlanStateError(f"{_name(plan)} is {plan.state}, not {state}{other}")


def _second(engine: Engine, verb: Verb, plan: StoredPlan) -> list[str]:
    if plan.four_eyes == "database" and verb != "reject":
        return ["This step needs a second database user, so it is not possible on a page."]
    if plan.four_eyes != "proxy":
        return []
    if verb == "rollback":
        return ["This step takes two people: you, and another person who approves the new version."]
    return _agreed(engine, verb, plan.group, plan.version) or ["This step takes two people."]


def _agreed(engine: Engine, verb: Verb, group: str | None, version: int | None) -> list[str]:
    people = sorted({act.actor for act in agreed(engine, verb, group, version)})
    return (
        [f"This step takes two people: {listed(people)} has already requested it."]
        if people
        else []
    )


def _freezes_of(engine: Engine, group: str | None) -> list[Freeze]:
    return [freeze for freeze in read_freezes(engine) if freeze.group == group]


def _scope(group: str | None) -> str:
    return "all groups" if group is None else f"group {group}"


def _name(plan: StoredPlan) -> str:
    return f"group {plan.group}: version {plan.version}"

"""The page before a step: what it will do, and with what, in words; and the page after it.

Belongs here: what is said of each step. Does not: who asks (`identity`), the form that is sent
(`forms`), doing it (`acting`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Engine

from fairlead.common.words import listed, plural
from fairlead.domain.reconciliation import PUBLISHED_WITHIN_S, SENSOR, WHAT_FOLLOWS
from fairlead.domain.records import StoredPlan
from fairlead.errors import PlanStateError
from fairlead.store import PlanStore
from fairlead.store.acts import Acted, Verb, agreed
from fairlead.store.brakes import Brake, brake_on, read_brakes
from fairlead.store.history_queries import read_diff, require_group
from fairlead.surfaces.review.facts import gather
from fairlead.surfaces.review.page import summary
from fairlead.surfaces.review.risks import Risk, risks

#: Rows of a table; the review has them all.
ROWS: Final = 50
_APPROVED: Final = f"""\
Once it is approved, {WHAT_FOLLOWS}. The consumers that follow plans then rebalance."""
_REJECTED: Final = """\
It is rejected for good, and the consumers keep what they have. The next planning run looks at the
group again, and may propose another version."""
_ROLLED_BACK: Final = """\
What version {version} gave is proposed again, as the group's next version. It is approved as any
other: by the policy, or by a person on its own page. The brake lets it through."""
_WITHDRAWN: Final = """\
The plan is taken back: the consumers rebalance to their fallback, Kafka's range as a rule. Plans
of the group that wait end as well."""
_PLANNED_AGAIN: Final = """\
The next planning run may propose a plan again: put the brake on as well, if none is to go out."""
_BRAKED: Final = """\
No new version goes out for {what} until somebody releases the brake. What is proposed or approved
stays so; what is on its way arrives."""
_FOLLOWED_ON: Final = """\
The plan that consumers follow is followed on, and its lease is renewed. A rollback goes out, and
a plan can be withdrawn."""
_SOON: Final = f"The sensor {SENSOR} does it within {PUBLISHED_WITHIN_S} s."


@dataclass(frozen=True)
class Sheet:
    """What a step is about.

    Parameters
    ----------
    title, button
        Of the page and of its form.
    sentences
        What it will do.
    group, version, sha256
        What it is done to, as it is now: the form carries them. `version` of a release is the
        brake's number.
    moves
        Partition, owner now, and owner after it.
    risks
        Of an approval.
    """

    title: str
    button: str
    sentences: Sequence[str]
    group: str | None
    version: int | None = None
    sha256: str | None = None
    moves: Sequence[tuple[str, str | None, str | None]] = ()
    risks: Sequence[Risk] = ()


def sheet(
    engine: Engine, verb: Verb, group: str | None, version: int | None, now: datetime
) -> Sheet:
    """Return what a step will do.

    Raises
    ------
    GroupError, PlanStateError
        There is nothing that the step could be done to, or not any more.
    """
    if group is not None:
        require_group(engine, group)
    if verb in {"brake", "release"}:
        return _BRAKES[verb](engine, group)
    if group is None or version is None:
        raise PlanStateError(f"To {verb} takes a group and a version")
    plan = PlanStore(engine).get(group, version)
    return _STEPS[verb](engine, plan, now)


def _sheet(
    plan: StoredPlan,
    what: str,
    button: str,
    sentences: Sequence[str],
    *,
    moves: Sequence[tuple[str, str | None, str | None]] = (),
    dangers: Sequence[Risk] = (),
) -> Sheet:
    """Return what a step with a version will do."""
    title = f"{what} version {plan.version} of {plan.group}?"
    about = (plan.group, plan.version, plan.sha256)
    return Sheet(title, button, sentences, *about, moves, dangers)


def _approve(engine: Engine, plan: StoredPlan, now: datetime) -> Sheet:
    _require(engine, plan, "proposed")
    facts = gather(engine, plan.group, plan.version, now)
    if facts.document is None or not facts.waits:
        raise PlanStateError(
            f"{_name(plan)} cannot be approved: {facts.broken or 'it has expired'}"
        )
    if plan.observed_only:
        raise PlanStateError(f"{_name(plan)} is observed: its policy publishes nothing")
    held = brake_on(plan, read_brakes(engine))
    return _sheet(
        plan,
        "Approve",
        "Approve it",
        [
            summary(facts),
            _APPROVED,
            *([f"It waits for the release: {held}."] if held else []),
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
    return _sheet(plan, "Reject", "Reject it", [_REJECTED])


def _rollback(engine: Engine, plan: StoredPlan, _: datetime) -> Sheet:
    if plan.state == "published":
        raise PlanStateError(f"{_name(plan)} is the one that is published")
    if not plan.was_followed:
        raise PlanStateError(
            f"{_name(plan)} is {plan.state}: nobody has followed it, so nobody goes back to it"
        )
    published = PlanStore(engine).published(plan.group)
    moves = read_diff(engine, plan.group, published.version, plan.version) if published else []
    return _sheet(
        plan,
        "Go back to",
        "Ask for it",
        [
            _ROLLED_BACK.format(version=plan.version),
            "It is refused where the group is no longer what that version was made for.",
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
    said = [_WITHDRAWN, _PLANNED_AGAIN, _SOON, *_second(engine, "withdraw", plan)]
    return _sheet(plan, "Withdraw", "Ask for it", said)


def _brake(engine: Engine, group: str | None) -> Sheet:
    what = _whose(group)
    return Sheet(
        f"Put the brake on {what}?",
        "Put the brake on",
        [
            _BRAKED.format(what=what),
            _FOLLOWED_ON,
            *(
                f"Now {objection}; your reason takes the place of that."
                for objection in _held(engine, group)
            ),
        ],
        group,
    )


def _release(engine: Engine, group: str | None) -> Sheet:
    held = _held(engine, group)
    if not held:
        raise PlanStateError(f"No brake holds {_whose(group)}")
    others = [brake for brake in read_brakes(engine) if brake not in held]
    waiting = [
        f"{plan.group} version {plan.version}"
        for plan in PlanStore(engine).approved_unpublished(None if group is None else [group])
        if brake_on(plan, others) is None
    ]
    return Sheet(
        f"Release the brake of {_whose(group)}?",
        "Release it",
        [
            f"Now {held[0]}.",
            f"Approved plans go out within {PUBLISHED_WITHIN_S} s: {listed(waiting)}."
            if waiting
            else "No approved plan waits for it.",
            *(
                f"{plural(len(others), 'other brake')} still hold: each is released by itself."
                for _ in others[:1]
            ),
            *_agreed(engine, "release", group, held[0].number),
        ],
        group,
        held[0].number,
    )


_STEPS: Final[Mapping[str, Callable[[Engine, StoredPlan, datetime], Sheet]]] = {
    "approve": _approve,
    "reject": _reject,
    "rollback": _rollback,
    "withdraw": _withdraw,
}
_BRAKES: Final[Mapping[str, Callable[[Engine, str | None], Sheet]]] = {
    "brake": _brake,
    "release": _release,
}


def outcome(engine: Engine, done: Acted) -> list[str]:
    """Return what came of a step, in sentences."""
    what = (
        f"{_whose(done.group)}" if done.sha256 is None else f"{done.group}, version {done.version}"
    )
    verb = "roll back" if done.act == "rollback" else done.act
    who = f"{done.actor} asked to {verb} ({what}): {done.reason}."
    if done.outcome == "agreed":
        return [who, "It takes two people: somebody else has to ask for the same, on their own."]
    if done.outcome == "asked":
        return [who, f"{_SOON} Look at this page again then."]
    if done.answer is not None and done.outcome == "done" and done.act == "rollback":
        return [who, f"The planner has answered: {done.answer}. Its own page has what is next."]
    if done.answer is not None:
        return [
            who,
            f"The planner has {'done it' if done.outcome == 'done' else 'refused'}: {done.answer}.",
        ]
    if done.act in {"brake", "release"}:
        held = _held(engine, done.group)
        return [who, f"{held[0]}." if held else f"No brake holds {_whose(done.group)} now."]
    assert done.group is not None  # noqa: S101 - it is about a version
    assert done.version is not None  # noqa: S101 - the same
    plan = PlanStore(engine).get(done.group, done.version)
    held_by = brake_on(plan, read_brakes(engine))
    now = f"Version {plan.version} is {plan.state} now."
    if plan.state == "approved":
        now += f" It is not sent: {held_by}." if held_by else f" {_SOON}"
    return [who, now]


def _require(engine: Engine, plan: StoredPlan, state: str) -> None:
    """Refuse a version that has gone on, and name the newest."""
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
        return ["It needs four eyes that the database sees: pages cannot do it."]
    if plan.four_eyes != "proxy":
        return []
    if verb == "rollback":
        return ["It takes two people: whoever asks, and another one who approves it."]
    return _agreed(engine, verb, plan.group, plan.version) or ["It takes two people."]


def _agreed(engine: Engine, verb: Verb, group: str | None, version: int | None) -> list[str]:
    people = sorted({act.actor for act in agreed(engine, verb, group, version)})
    return [f"It takes two people: {listed(people)} asked for it already."] if people else []


def _held(engine: Engine, group: str | None) -> list[Brake]:
    return [brake for brake in read_brakes(engine) if brake.group == group]


def _whose(group: str | None) -> str:
    return "all groups" if group is None else f"group {group}"


def _name(plan: StoredPlan) -> str:
    return f"group {plan.group}: version {plan.version}"

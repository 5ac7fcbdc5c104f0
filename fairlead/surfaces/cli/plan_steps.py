"""`fairlead plans approve | reject | publish | rollback | withdraw`: a person's steps for a plan.

Belongs here: previews, confirmation, and the result of a step. Belongs elsewhere: the steps
themselves (`fairlead.store`, `fairlead.workflows`).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlead.common.commands import shell_quote
from fairlead.common.words import as_text, plural
from fairlead.domain.figures import figure
from fairlead.errors import KafkaUnavailableError, PlanStateError, StalePlanError
from fairlead.surfaces.cli.arguments import (
    Group,
    Json,
    Reason,
    Version,
    Yes,
    opened_engine,
    read_settings,
)
from fairlead.surfaces.cli.groups import not_sent
from fairlead.surfaces.cli.output import epilog, print_json, print_result, print_table, say
from fairlead.surfaces.cli.running_sandbox import ask

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from fairlead.domain.records import StoredPlan
    from fairlead.settings import KafkaSettings
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.adoption import Adoption
    from fairlead.workflows.reconciling import StepResult

app = typer.Typer()

_MOVES = ("topic", "partition", "previous_member", "member", "weight", "reason")


@app.command(
    epilog=epilog(
        "plans approve orders 7 --reason 'agreed with the team'",
        "plans approve orders 7 --reason CHG-1234 --yes --sha256 9f2c...",
    )
)
def approve(
    group: Group,
    version: Version,
    *,
    reason: Reason,
    sha256: Annotated[
        str | None,
        typer.Option(help="Approve only a version with this hash."),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Approve a proposed version; the planner then publishes exactly its stored bytes."""
    from fairlead.domain.reconciliation import WHAT_FOLLOWS
    from fairlead.store.plans import PlanStore

    with opened_engine() as engine:
        document = _proposed(engine, group, version, "approved", as_json=as_json)
        ask(f"Approve version {version} of {group}, {document['sha256'][:12]}?", yes=yes)
        plan = PlanStore(engine).approve(
            group, version, sha256=sha256 or document["sha256"], reason=reason
        )
    print_result(
        {"group": group, "version": version, "state": plan.state, "sha256": plan.sha256},
        f"{group}: version {version} is {plan.state}: {WHAT_FOLLOWS}. If it is not sent, see "
        f"`fairlead groups`. To publish it now, run `fairlead plans publish {shell_quote(group)}`",
        as_json=as_json,
    )


@app.command(epilog=epilog("plans reject orders 7 --reason 'not before the release'"))
def reject(
    group: Group, version: Version, *, reason: Reason, yes: Yes = False, as_json: Json = False
) -> None:
    """Reject a proposed version permanently."""
    from fairlead.store.plans import PlanStore

    with opened_engine() as engine:
        _proposed(engine, group, version, "rejected", as_json=as_json)
        ask(f"Reject version {version} of {group}?", yes=yes)
        plan = PlanStore(engine).reject(group, version, reason=reason)
    print_result(
        {"group": group, "version": version, "state": plan.state, "sha256": plan.sha256},
        f"{group}: version {version} is {plan.state}",
        as_json=as_json,
    )


@app.command(epilog=epilog("plans publish orders"))
def publish(group: Group, *, as_json: Json = False) -> None:
    """Publish the approved plan now if the group has not changed; check if consumers follow it."""
    from fairlead.store.acts import asked
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.publication import publish_groups

    settings = read_settings()
    kafka = settings.kafka
    with opened_engine() as engine:
        store = PlanStore(engine, settings.source)
        if not asked(engine, [group]) and not store.in_state("approved", "sending", groups=[group]):
            raise PlanStateError(
                f"group {group} has no approved plan; `fairlead plans list {shell_quote(group)}` "
                "lists its versions"
            )
        answers, results = publish_groups(store, [group], settings)
        sent = next((result for result in results if result.published), None)
        followed, held_up = _adoption(store, group, kafka) if sent else (None, ())
    for answer in answers.values():
        say(f"{group}: a request from a web page: {answer}", err=True)
    for result in results:
        if result.refused or result.waits:
            again = "; the planner tries again automatically" if result.waits else ""
            raise StalePlanError(
                f"group {group}: version {result.version} was not published: {result.reason}{again}"
            )
    if sent is None or sent.record is None:
        return
    print_result(
        {
            "group": group,
            "version": sent.version,
            "topic": sent.record.topic,
            "partition": sent.record.partition,
            "offset": sent.record.record_offset,
            "followed": followed.adherence if followed else None,
        },
        f"{group}: version {sent.version} is published: {sent.place}. {_whether(followed)} "
        f"`fairlead plans withdraw {shell_quote(group)}` withdraws it",
        as_json=as_json,
    )
    for reason in held_up:
        say(f"{group}: its broker does not follow the plan: {reason}", err=True)


def _adoption(
    store: "PlanStore", group: str, kafka: "KafkaSettings"
) -> "tuple[Adoption | None, list[str]]":
    """Compare the group's owners with its published plan, and store the result.

    If a broker assigns the group's partitions, first make the broker follow the plan.

    Returns
    -------
    How many partitions have their planned owner (None: the owners could not be read), and the
    reasons why the broker does not follow the plan.
    """
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.workflows.adoption import check
    from fairlead.workflows.following import follow

    try:
        with KafkaGateway(kafka) as gateway:
            adoptions = follow(
                gateway, kafka, [group], lambda names: store.in_state("published", groups=names)
            )
            checked = check(store, [group], gateway.live_groups)
    except KafkaUnavailableError:  # not an error, because the plan is published
        return None, []
    reasons = [adoption.reason for adoption in adoptions if not adoption.reached]
    return (checked[0].adoption if checked else None), reasons


def _whether(followed: "Adoption | None") -> str:
    """Return a sentence with the number of partitions that have their planned owner."""
    if followed is None:
        return "Whether consumers follow it could not be checked."
    return (
        f"{followed.as_planned:,} of {plural(followed.planned, 'partition')} are at their "
        "planned consumers now."
    )


@app.command(epilog=epilog("plans rollback orders 5 --reason 'version 6 moved the hot partition'"))
def rollback(
    group: Group, version: Version, *, reason: Reason, yes: Yes = False, as_json: Json = False
) -> None:
    """Propose the assignment of an old version as a new version, which waits for approval."""
    from fairlead.domain.policy import policy_for
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.store.history_queries import read_plan
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.rollback import rollback as roll_back

    settings = read_settings()
    with opened_engine() as engine:
        document = read_plan(engine, group, version)
        if document["state"] == "published":
            raise PlanStateError(
                f"group {group}: version {version} is already published; `fairlead plans withdraw "
                f"{shell_quote(group)}` withdraws it"
            )
        print_plan(document, stderr=as_json)
        ask(f"Propose the assignment of version {version} of {group} again?", yes=yes)
        with KafkaGateway(settings.kafka) as gateway:
            plan, approval = roll_back(
                PlanStore(engine, settings.source),
                group,
                version,
                policy=policy_for(group, settings.policies),
                live=gateway.live_group,
                reason=reason,
                now=datetime.now(UTC),
            )
    print_result(
        {
            "group": group,
            "version": plan.version,
            "state": plan.state,
            "rolled_back_from": version,
            "sha256": plan.sha256,
            "approval": approval.reason,
        },
        f"{group}: version {plan.version} is {plan.state}: {approval.reason}",
        as_json=as_json,
    )


@app.command(epilog=epilog("plans withdraw orders --reason 'moves to another cluster' --yes"))
def withdraw(group: Group, *, reason: Reason, yes: Yes = False, as_json: Json = False) -> None:
    """Withdraw the published plan: the consumers then use their fallback assignor."""
    from fairlead.kafka.plan_topic import PlanTopic
    from fairlead.store.history_queries import read_plans
    from fairlead.store.plans import PlanStore
    from fairlead.workflows import reconciling
    from fairlead.workflows.delivery import PublishOptions

    kafka = read_settings().kafka
    with opened_engine() as engine:
        published = read_plans(engine, group, state="published", limit=1)
        if not published:
            raise PlanStateError(f"group {group} has no published plan to withdraw")
        ask(f"Withdraw version {published[0]['version']} of {group}?", yes=yes)
        with PlanTopic(kafka) as topic:
            result = reconciling.withdraw(
                PlanStore(engine),
                group,
                topic=topic,
                options=PublishOptions.of(kafka),
                reason=reason,
            )
    assert result.record is not None  # noqa: S101 - otherwise an error was raised
    print_result(
        {
            "group": group,
            "version": result.version,
            "topic": result.record.topic,
            "partition": result.record.partition,
            "offset": result.record.record_offset,
        },
        f"{group}: version {result.version} is withdrawn: {result.place}",
        as_json=as_json,
    )


@app.command(epilog=epilog("plans reconcile", "plans reconcile --dry-run"))
def reconcile(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the differences, change nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the plan topic agree with the database, for all groups.

    Finishes interrupted publications and publishes approved plans. If a record is missing in the
    topic, sends it again.
    """
    from fairlead.kafka.plan_topic import PlanTopic
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.delivery import PublishOptions
    from fairlead.workflows.differences import differences
    from fairlead.workflows.publication import publish_groups

    settings = read_settings()
    kafka = settings.kafka
    with opened_engine() as engine, PlanTopic(kafka) as topic:
        if why := topic.codec_warning():
            say(why, err=True)
        store = PlanStore(engine, settings.source)
        if dry_run:
            verifier = PublishOptions.of(kafka).verifier()
            rows = [
                *(_row(entry.plan, "being sent") for entry in store.outbox().outstanding()),
                *(
                    _row(difference.plan, difference.what)
                    for difference in differences(store, None, topic=topic, verifier=verifier)
                ),
            ]
        else:
            _, results = publish_groups(store, store.known_groups(), settings)
            rows = [_row(result, result.summary) for result in results]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(rows, ("group", "version", "what"), title="Differences")
    else:
        say("The plan topic agrees with the database")


def _row(plan: "StoredPlan | StepResult", what: str) -> dict[str, Any]:
    return {"group": plan.group, "version": plan.version, "what": what}


def print_plan(plan: Mapping[str, Any], *, stderr: bool = False) -> None:
    """Print a version: its reason, balance, hash and moves."""
    origin = plan["rolled_back_from"]
    moved = "unknown" if plan["moved"] is None else plural(plan["moved"], "partition")
    lines = [
        f"{plan['group']}: version {plan['version']}, {plan['state']}, by {plan['assignor']}"
        + (f", a rollback to version {origin}" if origin else ""),
        f"  reason    {plan['reason']}",
        f"  moves     {moved}; gives an owner to {as_text(plan['placed'])}",
        f"  max lag   {_change(plan, 'lag_max', ' records')}",
        f"  topics    one consumer has up to {_change(plan, 'topic_spread', ' its even share')}",
    ]
    if plan["rack_gb_per_day_before"] is not None:
        racks = _change(plan, "rack_gb_per_day", " a day from other racks")
        if plan["rack_cost_per_day_before"] is not None:
            racks += f"; {_change(plan, 'rack_cost_per_day', ' a day')}"
        lines.append(f"  racks     {racks}")
    lines.append(f"  sha256    {plan['sha256']}")
    if plan["expires_at"]:
        lines.append(f"  expires   {as_text(plan['expires_at'])} (UTC)")
    if plan["four_eyes"]:
        pages = "; or two people on pages" if plan["four_eyes"] == "proxy" else ""
        needs = "four eyes: the approver must be neither the proposer nor a planner"
        lines.append(f"  needs     {needs}{pages}")
    say(*lines, *not_sent([plan]), err=stderr)
    if plan["moves"]:
        print_table(plan["moves"], _MOVES, title="Moves", stderr=stderr)


def _change(plan: Mapping[str, Any], name: str, unit: str) -> str:
    """Return a figure's value before the plan, and the predicted value, as text."""
    before, after = (figure(name).text(plan[f"{name}_{when}"]) for when in ("before", "predicted"))
    return f"{before}{unit}, predicted {after}"


def _proposed(
    engine: "Engine", group: str, version: int, becomes: str, *, as_json: bool
) -> Mapping[str, Any]:
    """Print a version that waits for approval, and return its row.

    Raises
    ------
    PlanStateError
        The version is not in the state `proposed`, so it cannot get the state `becomes`.
    """
    from fairlead.store.history_queries import read_plan

    plan = read_plan(engine, group, version)
    if plan["state"] != "proposed":
        raise PlanStateError(
            f"group {group}: version {version} is {plan['state']}: it cannot become {becomes}"
        )
    print_plan(plan, stderr=as_json)
    return plan

"""`fairlead plan`: sample, diagnose and plan one group in seconds, without Dagster and Spark.

Belongs here: the command and its output. Belongs elsewhere: planning
(`fairlead.workflows.planning_one_group`).
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fairlead.common.words import catch_up_time, plural
from fairlead.domain.candidate_figures import FORECAST, RACKS
from fairlead.errors import ConfigurationError, FileSystemError, GroupError, StoreUnavailableError
from fairlead.surfaces.cli.arguments import Group, Json, opened_engine, read_settings
from fairlead.surfaces.cli.output import print_json, print_table, say, say_error

if TYPE_CHECKING:
    from fairlead.domain.group_memories import GroupMemories
    from fairlead.domain.records import Findings
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.settings import Settings
    from fairlead.workflows.planning_one_group import Planned
    from fairlead.workflows.proposal import Outcome

_CANDIDATES: Final = {
    "assignor": "assignor",
    "moved": "moved",
    **dict.fromkeys(("forecast_time_lag_s", "utilisation", "lag_max", "topic_spread"), ""),
    **dict.fromkeys(RACKS, ""),
    "error": "failed",
}
_MOVES: Final = {
    "topic": "topic",
    "partition": "partition",
    "previous_member": "from",
    "member": "to",
    "weight": "lag",
    "reason": "reason",
}
#: The figures of each candidate in JSON.
_MEASURES: Final = (
    *("moved", "forecast_time_lag_s", "catch_up_s", "utilisation", "lag_max", "topic_spread"),
    *RACKS,
)
#: Columns that are left out if they are empty.
_OPTIONAL: Final = ("error", *RACKS)
#: Maximum number of moves printed.
_MOST_MOVES: Final = 50
#: Seconds that a dry run waits for the database.
_CONNECT_S: Final = 2


def plan(
    group: Group,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Store nothing; no database is needed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Sample and diagnose a group now, and propose a plan if a plan helps.

    The analysis is the same as in planning runs, from all samples so far. The decision is stored,
    except with --dry-run.
    """
    settings = read_settings()
    if dry_run:
        planned, outcome = _planned(group, settings, _remembered(group)), None
    else:
        planned, outcome = _stored(group, settings)
    document = _document(planned, outcome)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _planned(group: str, settings: "Settings", memory: "GroupMemories") -> "Planned":

    from fairlead.archive import SampleArchive
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.workflows.planning_one_group import plan_group

    archive = SampleArchive(settings.warehouse_path)
    with KafkaGateway(settings.kafka) as gateway:
        _require_known(gateway, group)
        return plan_group(
            gateway,
            archive,
            group,
            policies=settings.policies,
            memory=memory,
            now=datetime.now(UTC),
        )


def _stored(group: str, settings: "Settings") -> tuple["Planned", "Outcome"]:

    from fairlead.archive import SampleArchive
    from fairlead.store.clock import check_clock
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.proposal import carry_out

    with opened_engine() as engine:
        check_clock(engine)
        store = PlanStore(engine, settings.source)
        planned = _planned(group, settings, store.memories([group]))
        (outcome,) = carry_out(store, [planned.decision], settings.policies, datetime.now(UTC))
    try:
        archive = SampleArchive(settings.warehouse_path)
        archive.append(planned.snapshot.samples, planned.snapshot.snapshot_id)
    except FileSystemError as error:
        say_error(error, "the decision is stored, but the sample is not: ")
    return planned, outcome


def _remembered(group: str) -> "GroupMemories":
    """Return the stored results of earlier analyses of a group, such as its members' capacities.

    If the database does not answer, print this and return no results.
    """
    from fairlead.domain.group_memories import GroupMemories
    from fairlead.store.plans import PlanStore

    try:
        with opened_engine(_CONNECT_S) as engine:
            return PlanStore(engine).memories([group])
    except (ConfigurationError, StoreUnavailableError) as error:
        say_error(error, "continuing without the stored capacities of the members: ")
        return GroupMemories()


def _require_known(gateway: "KafkaGateway", group: str) -> None:
    """Refuse a group that the cluster does not have; raises GroupError."""
    from fairlead.common.nearest import hint

    known = gateway.list_groups()
    if group not in known:
        raise GroupError(f"the cluster has no consumer group {group}{hint(group, known)}")


def _document(planned: "Planned", outcome: "Outcome | None") -> dict[str, Any]:
    """Return the result of the command as a JSON document."""
    from fairlead.domain.records import PlanDraft

    decision = planned.decision if outcome is None else outcome.decision
    draft = decision if isinstance(decision, PlanDraft) else None
    return {
        "group": decision.group,
        "sampled_at": decision.snapshot_at,
        "samples": planned.samples,
        **_findings(decision.findings),
        **{name: (decision.observed or {}).get(name) for name in RACKS},
        "outcome": decision.outcome,
        "reason": decision.reason,
        "assignor": draft and draft.assignor,
        "moves": draft.moves.to_pylist() if draft else [],
        "candidates": [
            {"assignor": candidate.assignor, "error": candidate.error}
            | {name: (candidate.metrics or {}).get(name) for name in _MEASURES}
            for candidate in decision.candidates
        ],
        **_stored_plan(outcome),
    }


def _findings(findings: "Findings | None") -> dict[str, Any]:
    """Return the diagnosis and the forecast."""
    names = ("diagnosis", "evidence", *FORECAST, "consumers_wanted", "consumers_why")
    fields = {name: getattr(findings, name, None) for name in names}
    return fields | {"names": list(findings.names) if findings else []}


def _stored_plan(outcome: "Outcome | None") -> dict[str, Any]:
    """Return the stored plan and its state."""
    stored = None if outcome is None else outcome.stored.plan
    if outcome is None or stored is None:
        return {"version": None, "state": None, "approval": None}
    approval = outcome.approval
    return {
        "version": stored.version,
        "state": "approved" if approval and approval.approved else stored.state,
        "approval": approval and approval.reason,
    }


def _print(document: dict[str, Any]) -> None:

    say(
        f"{document['group']}, from {plural(document['samples'], 'sample')}: "
        + ": ".join(filter(None, (document["diagnosis"], document["evidence"])))
    )
    say(f"{document['outcome']}: {document['reason']}")
    known = document["diagnosis"] != "unknown" and document["forecast_time_lag_s"] is not None
    if known and document["catch_up_s"] != 0:
        then = {"without a new plan": document["catch_up_s"]} | {
            f"by {candidate['assignor']}": candidate["catch_up_s"]
            for candidate in document["candidates"]
            if candidate["assignor"] == document["assignor"]
        }
        forecasts = (
            f"{how}: {catch_up_time(s, document['sampled_at'])}" for how, s in then.items()
        )
        say(f"caught up {'; '.join(forecasts)}")
    if rows := document["candidates"]:
        empty = {key for key in _OPTIONAL if all(row[key] is None for row in rows)}
        columns = {key: name for key, name in _CANDIDATES.items() if key not in empty}
        print_table(rows, columns, title="Candidates of the policy's assignors")
    if moves := document["moves"]:
        more = f"; {_MOST_MOVES} of {len(moves):,}" if len(moves) > _MOST_MOVES else ""
        print_table(moves[:_MOST_MOVES], _MOVES, title=f"{document['assignor']}: moves{more}")
    if document["version"] is not None:
        approval = f" ({document['approval']})" if document["approval"] else ""
        say(f"Stored as version {document['version']}: {document['state']}{approval}")

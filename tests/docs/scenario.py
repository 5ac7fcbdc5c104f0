"""A week in the life of two groups, the same to the byte whenever it is stored.

Belongs here: what happened that week, stored by `PlanStore` and then dated. Does not: the pages
that ask about it (`pages`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import numpy as np
import psycopg
import pyarrow as pa

from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.kept_looks import Kept, digest_of
from fairlead.domain.records import Findings, MemberLoad
from fairlead.store import NoPlan, PlanDraft, PlanStore, create_store_engine
from fairlead.store.engine import transaction
from fairlead.store.group_history import keep_looks, replace_last_looks
from fairlead.store.migrate import upgrade
from fairlead.store.outbox import Outbox, PublishRequest
from fairlead.store.published_records import PublishedRecord
from fairlead.store.shared_statements import register_groups
from fairlead.wire.document import MemberShare, PlanDocument, content_hash
from tests.stored import record_adoption, record_decision

Owners = Mapping[str, Sequence[int]]

MONDAY: Final = datetime(2026, 1, 5, tzinfo=UTC)
FIRST: Final[Owners] = {"orders-1": (0, 1), "orders-2": (2, 3), "orders-3": (4, 5)}
SECOND: Final[Owners] = {"orders-1": (0,), "orders-2": (2, 3), "orders-3": (1, 4, 5)}
THIRD: Final[Owners] = {"orders-1": (0, 2), "orders-2": (3,), "orders-3": (1, 4, 5)}
BILLING: Final[Owners] = {"billing-1": (0, 1), "billing-2": ()}
BILLING_NEXT: Final[Owners] = {"billing-1": (0,), "billing-2": (1,)}


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """Return a moment of the week; day 0 is Monday."""
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


#: What was found when.
FOUND: Final = {
    ("orders", at(0, 8)): ("unknown", (), "Nobody is known to own 6 of 6 partitions.", 0.0, 0.0),
    ("orders", at(1, 9)): (
        *("unbalanced", ("orders-1",)),
        (
            "orders-1 gets 128% of what it can do and is forecast 11 min late in 30 min, while"
            " orders-3 gets 41%."
        ),
        *(660.0, 1.28),
    ),
    ("orders", at(1, 12)): (
        *("recovering", ("orders-0",)),
        "orders-0 is 250 s behind, and every partition is forecast within 60 s in 30 min.",
        *(20.0, 0.92),
    ),
    ("orders", at(2, 9)): (
        *("unbalanced", ("orders-2",)),
        (
            "orders-2 gets 115% of what it can do and is forecast 7 min late in 30 min, while"
            " orders-1 gets 62%."
        ),
        *(420.0, 1.15),
    ),
    ("billing", at(1, 9)): (
        *("healthy", ()),
        (
            "The fullest member gets 38% of what it can do; the worst partition is forecast 2 s"
            " late in 30 min."
        ),
        *(2.0, 0.38),
    ),
    ("billing", at(3, 9)): (
        *("unbalanced", ("billing-1",)),
        (
            "billing-1 gets 140% of what it can do and is forecast 14 min late in 30 min, while"
            " billing-2 gets 0%."
        ),
        *(840.0, 1.4),
    ),
}
#: In how many seconds retention takes what was not read.
LOSSES_S: Final = {("billing", at(3, 9)): 20_000.0}
#: Records a second that members were seen to do at least, or at their limit.
SPEEDS: Final = {
    "orders": {"orders-1": (95.0, True), "orders-2": (90.0, True), "orders-3": (60.0, False)},
    "billing": {"billing-1": (22.0, True)},
}


#: The status of a group's partition 0, where it is none of the usual.
WORST: Final = {("billing", at(3, 9)): "DATA_LOSS", ("orders", at(1, 9)): "STALL"}
#: Later than this is late, seconds.
OBJECTIVE_S: Final = 60.0


def findings(group: str, moment: datetime) -> Findings:
    """Return what was found of a group at a moment."""
    diagnosis, names, evidence, late_s, utilisation = FOUND[group, moment]
    late = late_s > OBJECTIVE_S
    return Findings(
        diagnosis=diagnosis,
        names=names,
        evidence=evidence,
        late_s=late_s,
        utilisation=utilisation,
        loss_s=LOSSES_S.get((group, moment)),
        caught_up_s=5400.0 if late else 0.0,
        consumers_wanted=None if diagnosis == "unknown" else len(SPEEDS[group]),
        consumers_why="What members can do is not known yet."
        if diagnosis == "unknown"
        else f"It takes {len(SPEEDS[group])}, and so many are there.",
        costs={"orders": {"0": [3.1, 3.8, 4.6]}} if late and group == "orders" else {},
        capacities={
            member: Capacity(per_s, measured, moment.timestamp())
            for member, (per_s, measured) in SPEEDS[group].items()
        },
    )


def forecast(group: str, moment: datetime) -> dict[str, float]:
    """Return how late the group was forecast to be as it was."""
    *_, late_s, utilisation = FOUND[group, moment]
    caught_up_s = 5400.0 if late_s > OBJECTIVE_S else 0.0
    return {"late_s": late_s, "utilisation": utilisation, "caught_up_s": caught_up_s}


#: group, when, who owns what, records behind by partition.
MEASURED: Final = [
    ("orders", at(0, 8), {}, (3000, 2000, 1000, 900, 500, 400)),
    ("orders", at(1, 6), FIRST, (4000, 2500, 1500, 1000, 700, 300)),
    ("orders", at(1, 9), FIRST, (9000, 6000, 2500, 2000, 1000, 500)),
    ("orders", at(1, 12), SECOND, (5000, 3500, 2500, 2000, 1000, 500)),
    ("orders", at(1, 18), SECOND, (2000, 1500, 1800, 1200, 400, 100)),
    ("orders", at(2, 9), SECOND, (3000, 1000, 2500, 2000, 600, 400)),
    ("billing", at(1, 9), BILLING, (400, 350)),
    ("billing", at(3, 9), BILLING, (8000, 500)),
]


def store_week(url: str) -> None:
    """Migrate an empty database and fill it."""
    upgrade(url)
    engine = create_store_engine(url)
    try:
        store = PlanStore(engine)
        for group, moment, owners, lags in MEASURED:
            store.record_lag(_lag(group, moment, owners, lags))
            with transaction(engine) as connection:
                look = {group: _look(group, moment, owners, lags)}
                keep_looks(connection, look)
                register_groups(connection, look)
                replace_last_looks(connection, look)
        _orders(store)
        _billing(store)
    finally:
        engine.dispose()
    _set_dates(url)


def _orders(store: PlanStore) -> None:
    record_decision(store, _draft("orders", at(0, 8), {}, FIRST, (3000, 2000, 1000, 900, 500, 400)))
    _publish(store, 1, "policy", "approved by policy: 6 without an owner get one")
    _adopt(store, 1, at(0, 8, 10), 6, 5000)
    record_decision(
        store, _draft("orders", at(1, 9), FIRST, SECOND, (9000, 6000, 2500, 2000, 1000, 500))
    )
    _publish(store, 2, "kim", "agreed with the team")
    _adopt(store, 2, at(1, 9, 25), 5, 15000)
    _adopt(store, 2, at(1, 9, 40), 6, 9000)
    record_decision(
        store,
        _no_plan("orders", at(1, 12), SECOND, (5000, 3500, 2500, 2000, 1000, 500), "cooldown"),
    )
    record_decision(
        store, _draft("orders", at(2, 9), SECOND, THIRD, (3000, 1000, 2500, 2000, 600, 400))
    )
    store.reject("orders", 3, reason="not before the release", actor="lee")


def _billing(store: PlanStore) -> None:
    record_decision(store, _no_plan("billing", at(1, 9), BILLING, (400, 350), "not worth a move"))
    record_decision(store, _draft("billing", at(3, 9), BILLING, BILLING_NEXT, (8000, 500)))


def _publish(store: PlanStore, version: int, actor: str, reason: str) -> None:
    plan = store.get("orders", version)
    store.approve("orders", version, sha256=plan.sha256, actor=actor, reason=reason)
    outbox, until = Outbox(store.engine), at(31, 0)
    with outbox.turn("fairlead.plans", 0) as turn:
        (intent,) = turn.intend([PublishRequest("orders", version, lease_until=until)])
    outbox.confirm(
        {"orders": (intent, PublishedRecord(1, until, "fairlead.plans", 0, version + 40))}
    )


def _adopt(
    store: PlanStore, version: int, moment: datetime, as_planned: int, heaviest: int
) -> None:
    plan = store.get("orders", version)
    record_adoption(
        store,
        "orders",
        version,
        observed_at=moment,
        snapshot_id=plan.snapshot_id,
        planned=6,
        as_planned=as_planned,
        achieved=store.predicted([plan])[plan.group, plan.version] | {"lag_max": heaviest},
    )


def _draft(
    group: str, moment: datetime, before: Owners, after: Owners, lags: Sequence[int]
) -> PlanDraft:
    owned = {partition: name for name, share in before.items() for partition in share}
    moves = [
        (partition, owned.get(partition), name)
        for name, share in after.items()
        for partition in share
        if owned.get(partition) != name
    ]
    observed, predicted = _metrics(before, lags), _metrics(after, lags)
    moved = sum(previous is not None for _, previous, _ in moves)
    observed |= forecast(group, moment)
    predicted |= {"moved": moved, "placed": len(moves) - moved, "kept": len(lags) - len(moves)}
    predicted |= {"late_s": 15.0, "utilisation": 0.86, "caught_up_s": 1500.0}
    found = findings(group, moment)
    arrive = {
        name: [
            sum(10.0 * (len(lags) - lag) for lag in had.get(name, ())) for had in (before, after)
        ]
        for name in after
    }
    return PlanDraft(
        group=group,
        snapshot_id=f"{moment:%Y%m%dT%H%M}",
        snapshot_at=moment,
        reason="the heaviest member gets lighter" if before else "partitions without an owner",
        observed=observed if before else None,
        candidates=(
            SnapshotCandidate("sticky-lag-aware", predicted, outcome="balanced"),
            SnapshotCandidate("sticky", observed | {"kept": len(lags)}, outcome="balanced"),
            SnapshotCandidate("lag-aware", predicted | {"moved": len(lags) - 1, "kept": 1}),
        ),
        findings=found,
        statuses=frozenset({"OK", WORST.get((group, moment), "OK")}),
        loads={
            name: MemberLoad(
                before=had,
                after=gets,
                capacity=known.records_per_s if known.measured else max(SPEEDS[group].values())[0],
                seen=known.records_per_s,
                measured=known.measured,
            )
            for name, (had, gets) in arrive.items()
            if (known := found.capacities.get(name)) is not None
        },
        assignor="sticky-lag-aware",
        predicted=predicted,
        moves=pa.table(
            {
                "topic": [group] * len(moves),
                "partition": pa.array([partition for partition, _, _ in moves], pa.int32()),
                "previous_member": pa.array([previous for _, previous, _ in moves], pa.string()),
                "member": [name for _, _, name in moves],
                "weight": [float(lags[partition]) for partition, _, _ in moves],
                "reason": [
                    f"{previous} is the heaviest" if previous else "it has no owner"
                    for _, previous, _ in moves
                ],
            }
        ),
        expires_at=None,
        partition_counts={group: len(lags)},
        members={
            name: MemberShare((group,), {group: np.array(share, np.int32)} if share else {})
            for name, share in after.items()
        },
        weights={group: np.array(lags, np.float64)},
    )


def _no_plan(
    group: str, moment: datetime, owners: Owners, lags: Sequence[int], reason: str
) -> NoPlan:
    return NoPlan(
        group=group,
        snapshot_id=f"{moment:%Y%m%dT%H%M}",
        snapshot_at=moment,
        reason=reason,
        observed=_metrics(owners, lags) | forecast(group, moment),
        findings=findings(group, moment),
    )


def _metrics(owners: Owners, lags: Sequence[int]) -> dict[str, Any]:
    loads = [sum(lags[partition] for partition in share) for share in owners.values()] or [0]
    counts = [len(share) for share in owners.values()] or [0]
    bound = max(*lags, -(-sum(lags) // len(loads)))
    return {
        "count_min": min(counts),
        "count_max": max(counts),
        "balance_score": sum(abs(a - b) for a in counts for b in counts) // 2,
        "lag_max": max(loads),
        "lag_mean": sum(loads) / len(loads),
        "lag_lower_bound": bound,
        "gap": max(loads) / bound - 1,
        "kept": len(lags),
        "moved": 0,
        "placed": 0,
        "topic_spread": max(counts) / max(-(-len(lags) // len(counts)), 1),
    }


def _lag(group: str, moment: datetime, owners: Owners, lags: Sequence[int]) -> pa.Table:
    owned = {partition: name for name, share in owners.items() for partition in share}
    count = len(lags)
    worst = WORST.get((group, moment), "OK")
    lost, status = worst == "DATA_LOSS", [worst, *["OK"] * (count - 1)]
    return pa.table(
        {
            "snapshot_id": [f"{moment:%Y%m%dT%H%M}"] * count,
            "snapshot_at": pa.array([moment] * count, pa.timestamp("us", "UTC")),
            "group": [group] * count,
            "topic": [group] * count,
            "partition": pa.array(range(count), pa.int32()),
            "member": pa.array([owned.get(partition) for partition in range(count)], pa.string()),
            "begin_offset": [2000 if lost else 0] * count,
            "end_offset": [10_000] * count,
            "committed_offset": [
                1500 if lost and not p else 10_000 - lags[p] for p in range(count)
            ],
            "lag": list(lags),
            "lost": [500 if lost and not p else 0 for p in range(count)],
            "lost_at": pa.array(
                [moment if lost and not p else None for p in range(count)],
                pa.timestamp("us", "UTC"),
            ),
            "arrival_rate": [float(10 * (count - partition)) for partition in range(count)],
            "consumption_rate": [float(20)] * count,
            "time_lag_s": [lag / 20 for lag in lags],
            "status": status,
        }
    )


def _look(group: str, moment: datetime, owners: Owners, lags: Sequence[int]) -> Kept:
    """Return what is kept of a look at that moment."""
    owned = {partition: name for name, share in owners.items() for partition in share}
    members, count = list(owners), len(lags)
    owner = [members.index(owned[number]) if number in owned else -1 for number in range(count)]
    *_, late_s, utilisation = FOUND.get((group, moment), (5.0, 0.9))
    return Kept(
        at=moment,
        digest=digest_of([group], [count], members, owner),
        late_s=late_s if members else None,
        utilisation=utilisation if members else None,
        group_type="classic",
        protocol="fairlead",
        topics=[group],
        counts=[count],
        members=members,
        owner=owner,
        lag=list(lags),
        work=[10.0 * (count - partition) for partition in range(count)],
        behind_s=[lag / 20 for lag in lags],
        capacity=[SPEEDS[group].get(name, (0.0, False))[0] for name in members],
    )


#: What the database's clock and session would have said: (group, version) to the times of its life.
LIFE: Final = {
    ("orders", 1): {
        "proposed": at(0, 8, 1),
        "approved": at(0, 8, 1),
        "sending": at(0, 8, 2),
        "published": at(0, 8, 2),
        "superseded": at(1, 9, 22),
    },
    ("orders", 2): {
        "proposed": at(1, 9, 1),
        "approved": at(1, 9, 21),
        "sending": at(1, 9, 22),
        "published": at(1, 9, 22),
    },
    ("orders", 3): {"proposed": at(2, 9, 1), "rejected": at(2, 11, 30)},
    ("billing", 1): {"proposed": at(3, 9, 1)},
}


def _set_dates(url: str) -> None:
    """Put the week's own times where the database's clock, and its user, were recorded."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")  # else nothing may change
        for place, ((group, version), times) in enumerate(LIFE.items(), start=1):
            row = connection.execute(
                "SELECT document FROM fairlead.plan WHERE group_id = %s AND version = %s",
                (group, version),
            ).fetchone()
            assert row is not None
            plan_id = UUID(int=place)
            document = replace(
                PlanDocument.from_bytes(bytes(row[0]), group=group),
                plan_id=str(plan_id),
                created_at=times["proposed"],
            ).to_bytes()
            sha256 = content_hash(document)
            connection.execute(
                "UPDATE fairlead_raw.plan SET plan_id = %s, created_at = %s, document = %s,"
                " sha256 = %s WHERE group_id = %s AND version = %s",
                (plan_id, times["proposed"], document, sha256, group, version),
            )
            for state, moment in times.items():
                connection.execute(
                    "UPDATE fairlead_raw.plan_event SET at = %s, sha256 = %s, actor ="
                    " CASE actor WHEN session_user THEN 'planner' ELSE actor END,"
                    " database_user ="
                    " CASE WHEN actor IN ('kim', 'lee') THEN actor ELSE 'planner' END"
                    " WHERE group_id = %s AND version = %s AND state = %s",
                    (moment, sha256, group, version, state),
                )
        connection.execute(
            "UPDATE fairlead_raw.decision SET decided_at = snapshot_at + interval '1 minute'"
        )

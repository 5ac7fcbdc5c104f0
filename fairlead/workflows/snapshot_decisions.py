"""Deciding on the groups of a snapshot: from the judgement's table to versions in the store.

Belongs here: gathering what decisions need from the tables of one snapshot. Does not: the judgement
(`fairlead.domain.judgement`), what a row comes to (`fairlead.domain.drafting`), storing and
approving it (`proposal`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.domain.drafting import SnapshotTables, decisions
from fairlead.domain.policy import Policy, policy_for
from fairlead.spark.warehouse import Recent, Warehouse
from fairlead.store.plans import PlanStore
from fairlead.workflows.proposal import AT_ONCE, Look, Outcome, carry_out


def decide_on(
    plans: PlanStore,
    warehouse: Warehouse,
    recent: Recent,
    policies: Sequence[Policy],
    now: datetime,
) -> tuple[list[Outcome], pa.Table]:
    """Store a decision for each group of a snapshot, approved where its policy allows.

    Returns
    -------
    outcomes, members
        One a group; and the snapshot's table of members.

    Notes
    -----
    While the database takes some decisions, the next ones are laid out.
    """
    tables = _load(warehouse, recent)
    looks = (
        Look(decision, policy_for(decision.group, policies))
        for decision in decisions(tables, policies, now)
    )
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(1) as ahead:
        following = ahead.submit(list, islice(looks, AT_ONCE))
        while snapshots := following.result():
            following = ahead.submit(list, islice(looks, AT_ONCE))
            outcomes += carry_out(plans, snapshots, now)
    return outcomes, tables.members


def _load(warehouse: Warehouse, recent: Recent) -> SnapshotTables:
    """Load what the snapshot says of the groups that are to be decided on."""
    groups = pa.array(recent.groups, pa.string())

    def load(name: str) -> pa.Table:
        rows = warehouse.load(name, recent.snapshot_id)
        return rows.filter(pc.is_in(rows["group"], groups))

    return SnapshotTables(
        recent.snapshot_id,
        recent.snapshot_at,
        groups=load("groups"),
        members=load("members"),
        candidates=load("candidates"),
    )

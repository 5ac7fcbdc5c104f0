"""Deciding on the groups of a snapshot: from the table of candidates to stored versions.

Belongs here: gathering what decisions need from the tables of one snapshot. Does not: the analysis
(`fairlead.domain.analysis`), drafting (`fairlead.domain.drafting`), storing and approving
(`proposal`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.domain.drafting import decisions
from fairlead.domain.policy import Policy, policy_for
from fairlead.spark.warehouse import Recent, Warehouse
from fairlead.store.plans import PlanStore
from fairlead.workflows.proposal import AT_ONCE, NewDecision, Outcome, carry_out


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
    outcomes, samples
        One outcome per group, and the sample of these groups.

    Notes
    -----
    The next decisions are prepared while the database stores the ones before.
    """
    samples = warehouse.samples(recent)
    candidates = warehouse.load("candidates", recent.snapshot_id)
    candidates = candidates.filter(pc.is_in(candidates["group"], samples["group"]))
    new = (
        NewDecision(decision, policy_for(decision.group, policies))
        for decision in decisions(samples, candidates, policies, now)
    )
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(1) as ahead:
        following = ahead.submit(list, islice(new, AT_ONCE))
        while snapshots := following.result():
            following = ahead.submit(list, islice(new, AT_ONCE))
            outcomes += carry_out(plans, snapshots, now)
    return outcomes, samples

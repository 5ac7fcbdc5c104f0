"""Decisions on the groups of a snapshot, from the table of candidates to stored versions.

Belongs here: reading the tables of one snapshot, and dividing its decisions into transactions.
Belongs elsewhere: the analysis (`fairlead.domain.analysis`), drafting (`fairlead.domain.drafting`),
storing and approving (`proposal`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from typing import Final

import pyarrow.compute as pc

from fairlead.domain.drafting import decisions
from fairlead.domain.policy import Policy
from fairlead.spark.warehouse import Recent, Warehouse
from fairlead.store.plans import PlanStore
from fairlead.workflows.proposal import Outcome, carry_out

#: Maximum number of decisions per transaction. With more, the transaction would lock groups for too
#: long.
AT_ONCE: Final = 500


def decide_on(
    plans: PlanStore,
    warehouse: Warehouse,
    recent: Recent,
    policies: Sequence[Policy],
    now: datetime,
) -> list[Outcome]:
    """Store a decision for each group of a snapshot, and approve plans if the policy allows it.

    The next decisions are prepared while the database stores the previous ones.
    """
    samples = warehouse.samples(recent)
    candidates = warehouse.load("candidates", recent.snapshot_id)
    candidates = candidates.filter(pc.is_in(candidates["group"], samples["group"]))
    new = iter(decisions(samples, candidates, policies, now))
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(1) as ahead:
        following = ahead.submit(list, islice(new, AT_ONCE))
        while portion := following.result():
            following = ahead.submit(list, islice(new, AT_ONCE))
            outcomes += carry_out(plans, portion, policies, now)
    return outcomes

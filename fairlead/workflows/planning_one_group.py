"""Plan one group directly from Kafka, without Spark: a sample, the analysis, a draft.

Belongs here: the steps of a Spark task (`fairlead.spark.planning`) for one group, in this process.
Belongs elsewhere: the analysis (`fairlead.domain.analysis`), and storing the decision
(`fairlead.workflows.proposal`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from fairlead.archive import SampleArchive, with_history
from fairlead.domain.candidate_rows import analyse_group
from fairlead.domain.drafting import decisions
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.history import history_needed
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.records import Decision
from fairlead.domain.samples import GroupSnapshot
from fairlead.domain.samples.questions import Group, PlanningOptions
from fairlead.errors import GroupError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.spark.planning import as_batch


@dataclass(frozen=True)
class Planned:
    """The result of planning one group, of which nothing is stored yet.

    Parameters
    ----------
    snapshot
        The sample that was just taken.
    decision
        The decision, as a planning run would store it.
    samples
        Number of samples in the analysis, including the last one.
    """

    snapshot: GroupSnapshot
    decision: Decision
    samples: int


def plan_group(
    gateway: KafkaGateway,
    archive: SampleArchive,
    group: str,
    *,
    policies: Sequence[Policy],
    memory: GroupMemories,
    now: datetime,
) -> Planned:
    """Sample a group, and decide whether it gets a plan.

    Parameters
    ----------
    gateway
        Gateway to the cluster.
    archive
        The archive with the samples of the last day; it is not changed.
    group
        A group of the cluster.
    policies
        The policies of the settings; the most specific policy for the group decides.
    memory
        Results of earlier analyses of the group, from the plan store.
    now
        Time of the plan.

    Raises
    ------
    GroupError
        The group cannot be read.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    snapshot = gateway.snapshot([group], before=archive.newest([group]))
    if error := snapshot.samples["error"][0].as_py():
        raise GroupError(f"group {group}: {error}")
    policy = policy_for(group, policies)
    known = memory.capacities.get(group, {})
    length = history_needed(remembered=bool(known))
    samples = with_history(archive, snapshot.samples, length)[group]
    rows = analyse_group(
        Group(
            samples,
            known,
            [changed.timestamp() for changed in memory.changes.get(group, ())],
            memory.costs.get(group, {}),
        ),
        PlanningOptions.of(policy, compare=True),
    )
    candidates = pa.Table.from_batches([as_batch(rows)])
    (decision,) = decisions(snapshot.samples, candidates, policies, now)
    return Planned(snapshot, decision, samples.num_rows)

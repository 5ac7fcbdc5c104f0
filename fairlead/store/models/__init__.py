"""The tables of the schema `fairlead_raw`, as `migrations/` creates them (a test compares the two).

Triggers, functions and views are SQL: `migrations/sql`.
"""

from fairlead.store.models.analysis import GroupDiagnosis, MemberCapacity
from fairlead.store.models.base import RAW, SCHEMA, Base
from fairlead.store.models.history import (
    Balance,
    GroupDay,
    LagSnapshot,
    LastAdoption,
    LastSample,
    PartitionLagRow,
    PlanAdoption,
    PlanBalance,
)
from fairlead.store.models.plan import (
    CandidatePlan,
    ConsumerGroup,
    DecisionRow,
    FourEyes,
    FreezeEvent,
    LastRecord,
    MovedPartition,
    OutboxRow,
    PageAct,
    Plan,
    PlanAttempt,
    PlanEvent,
    PlanPartition,
    PlanPruned,
    PlanRegression,
)

__all__ = [
    "RAW",
    "SCHEMA",
    "Balance",
    "Base",
    "CandidatePlan",
    "ConsumerGroup",
    "DecisionRow",
    "FourEyes",
    "FreezeEvent",
    "GroupDay",
    "GroupDiagnosis",
    "LagSnapshot",
    "LastAdoption",
    "LastRecord",
    "LastSample",
    "MemberCapacity",
    "MovedPartition",
    "OutboxRow",
    "PageAct",
    "PartitionLagRow",
    "Plan",
    "PlanAdoption",
    "PlanAttempt",
    "PlanBalance",
    "PlanEvent",
    "PlanPartition",
    "PlanPruned",
    "PlanRegression",
]

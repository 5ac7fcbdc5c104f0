"""The exceptions of Fairlead.

::

    FairleadError
    ├── ConfigurationError    settings, policies, a missing or too old Java
    ├── InvalidPlanError      a plan document is unreadable or breaks an invariant
    ├── SandboxError          the embedded Kafka, Postgres or Spark does not start, answer or stop
    ├── KafkaUnavailableError a broker does not answer in time: a retry may succeed
    ├── StoreUnavailableError Postgres does not answer in time: a retry may succeed
    │   └── StoreRefusesError  Postgres refuses a statement for now: for example, a full disk
    ├── FileSystemError       a file cannot be written: the disk is full, a permission is missing
    ├── ClocksApartError      the clocks of this machine and the database differ too much
    ├── GroupError            one consumer group cannot be read; others are not affected
    │   ├── GroupAbsentError    the group does not exist
    │   ├── GroupUnsettledError the group rebalances, or its coordinator moves: a retry may succeed
    │   └── UnstorableError     Postgres does not accept a value of the group
    ├── TopicError            a topic cannot be sampled: it is missing or empty, or access is denied
    └── PlanStateError        the plan's state does not allow the step
        ├── StalePlanError    the group has changed since the plan was made
        └── TamperedPlanError stored bytes, their hash and the approval do not agree

The assignors, which do not import this package, raise `assignors.member.InvalidProblemError`, a
ValueError, for a contradictory assignment problem.

Each message names what failed, where, and what to do.
"""


class FairleadError(Exception):
    """The base class of Fairlead's exceptions."""


class ConfigurationError(FairleadError):
    """A setting, a policy or the machine does not meet Fairlead's requirements."""


class InvalidPlanError(FairleadError):
    """A plan document is unreadable or breaks an invariant."""


class SandboxError(FairleadError):
    """The embedded Kafka, Postgres or Spark does not start, answer or stop."""


class KafkaUnavailableError(FairleadError):
    """A broker does not answer in time; the same call may succeed later."""


class StoreUnavailableError(FairleadError):
    """Postgres does not answer in time or ended the connection; the same call may succeed later."""


class StoreRefusesError(StoreUnavailableError):
    """Postgres refuses a statement for now: read-only mode, a full disk, or a lock is the cause."""


class FileSystemError(FairleadError, OSError):
    """A path cannot be written or listed: the disk is full, or a permission is missing."""


class ClocksApartError(FairleadError):
    """The clocks of this machine and the database differ too much."""


class GroupError(FairleadError):
    """One consumer group cannot be read; the others are not affected."""


class GroupAbsentError(GroupError):
    """The group does not exist (any more)."""


class GroupUnsettledError(GroupError):
    """The group rebalances, or its coordinator gives no description; a later call may succeed."""


class UnstorableError(GroupError):
    """Postgres does not accept a value of a group, such as a name that is too long."""


class TopicError(FairleadError):
    """A topic cannot be sampled: it is missing or empty, or access is denied."""


class PlanStateError(FairleadError):
    """The plan's state does not allow the requested step."""


class StalePlanError(PlanStateError):
    """Members, subscriptions or partitions have changed since the plan was made."""


class TamperedPlanError(PlanStateError):
    """A plan's stored bytes, their hash and the approved hash do not agree."""

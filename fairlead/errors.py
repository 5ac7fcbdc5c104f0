"""The exception tree: everything Fairlead raises on purpose.

::

    FairleadError
    ├── ConfigurationError    settings, policies, a missing or too old Java
    ├── InvalidPlanError      a plan document that cannot be read or breaks an invariant
    ├── SandboxError          the embedded Kafka, Postgres or Spark does not start, answer or stop
    ├── KafkaUnavailableError a broker does not answer in time: worth a retry
    ├── StoreUnavailableError Postgres does not answer in time: worth a retry
    │   └── StoreRefusesError  it answers, and refuses for now: it is read-only, its disk is full
    ├── FileSystemError       a file cannot be written: the disk is full, a right is missing
    ├── ClocksApartError      this machine's clock is not the database's: nothing is dated by it
    ├── GroupError            one consumer group cannot be read; others are not affected
    │   └── UnstorableError   what was found of it is nothing that Postgres takes
    ├── TopicError            a topic cannot be sampled: it is missing, empty, or may not be read
    └── PlanStateError        a transition the life of a plan does not have
        ├── StalePlanError    the group is no longer what the plan was made for
        └── TamperedPlanError stored bytes, their hash and the approval do not agree

The assignors, which know nothing of this package, raise `assignors.member.InvalidProblemError`, a
ValueError, for an assignment problem that contradicts itself.

A message says what is wrong, where, and what to do.
"""


class FairleadError(Exception):
    """Anything Fairlead raises on purpose."""


class ConfigurationError(FairleadError):
    """A setting, a policy or the machine itself is not what Fairlead needs."""


class InvalidPlanError(FairleadError):
    """A plan document that cannot be read or that breaks an invariant."""


class SandboxError(FairleadError):
    """The embedded Kafka, Postgres or Spark does not start, answer or stop."""


class KafkaUnavailableError(FairleadError):
    """A broker does not answer in time; the same call may succeed later."""


class StoreUnavailableError(FairleadError):
    """Postgres does not answer in time or ended the connection; the same call may succeed later."""


class StoreRefusesError(StoreUnavailableError):
    """Postgres answers and refuses for now: it is read-only, its disk is full, a lock is held."""


class FileSystemError(FairleadError, OSError):
    """A file or a directory cannot be written or listed: the disk is full, a right is missing."""


class ClocksApartError(FairleadError):
    """The machine's clock and the database's are too far apart to date anything by."""


class GroupError(FairleadError):
    """One consumer group cannot be read; the others are not affected."""


class UnstorableError(GroupError):
    """What was found of a group is nothing that Postgres takes: a name that is too long, say."""


class TopicError(FairleadError):
    """A topic cannot be sampled: it is missing, empty, or may not be read."""


class PlanStateError(FairleadError):
    """A transition that the life of a plan does not have."""


class StalePlanError(PlanStateError):
    """The group is no longer what the plan was made for: its members, subscriptions, partitions."""


class TamperedPlanError(PlanStateError):
    """The stored bytes of a plan, their hash and the hash that was approved do not agree."""

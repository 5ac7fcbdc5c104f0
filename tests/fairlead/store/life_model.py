"""A simple model of the states of plans; tests compare the database with it.

Belongs here: the operations on a group's plans, and their expected results. Belongs elsewhere:
applying them to the database (`life_database`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.domain.identity import FourEyes

#: State of a plan -> states that may follow.
STEPS: Final = {
    "proposed": {"approved", "rejected", "expired"},
    "approved": {"sending", "stale"},
    "sending": {"published", "stale", "refused"},
    "published": {"superseded", "withdrawn"},
}
PLANNERS: Final = ("planner", "other planner")
APPROVER: Final = "approver"
SUPERUSER: Final = "superuser"
OPEN: Final = ("proposed", "approved")


@dataclass(frozen=True)
class Operation:
    """An operation of a person or service on a group."""

    who: str
    group: str


@dataclass(frozen=True)
class Propose(Operation):
    """Store the decision on a snapshot: a new plan, a rollback to version `again`, or no plan.

    `expires_in` is in days, and negative if the plan has already expired.
    """

    snapshot: int
    plan: bool = True
    four_eyes: FourEyes | None = None
    expires_in: int | None = None
    again: int | None = None


@dataclass(frozen=True)
class Decide(Operation):
    """Reject a plan, or approve it with the stored hash or with a wrong one."""

    state: str
    version: int
    right_hash: bool = True


@dataclass(frozen=True)
class Publish(Operation):
    """Send the approved plan, mark it stale, or crash before the result is recorded.

    If an earlier send is unfinished, that send is finished instead.
    """

    how: str


@dataclass(frozen=True)
class Withdraw(Operation):
    """Withdraw the published plan, or crash before the withdrawal is recorded."""

    how: str


@dataclass(frozen=True)
class Expire(Operation):
    """Expire all plans that are due."""


@dataclass(frozen=True)
class Step(Operation):
    """Insert an event of a plan with SQL."""

    state: str
    version: int


@dataclass(frozen=True)
class Tamper(Operation):
    """Try to change, with SQL, values that must never change."""

    statement: str


@dataclass
class Version:
    """A version of a plan, with all its states in order."""

    proposer: str
    four_eyes: FourEyes | None
    expires_in: int | None
    again: int | None
    states: list[str] = field(default_factory=lambda: ["proposed"])

    @property
    def state(self) -> str:
        """Current state of the plan."""
        return self.states[-1]

    @property
    def void(self) -> bool:
        """Whether the plan has expired and therefore cannot be approved."""
        return self.expires_in is not None and self.expires_in < 0


@dataclass
class Group:
    """A group's versions, its unfinished send, and {snapshot: version that was stored for it}."""

    versions: list[Version] = field(default_factory=list)
    on_its_way: tuple[str, Version] | None = None
    decisions: dict[int, int | None] = field(default_factory=dict)

    def apply(self, operation: Operation) -> str:
        """Apply an operation to the model; return the result that the database must have."""
        if isinstance(operation, Step | Tamper):
            if operation.who != SUPERUSER:
                return "42501"
        elif operation.who == APPROVER and not isinstance(operation, Decide):
            return "ConfigurationError"
        effects: dict[type[Operation], Callable[[Any], str]] = {
            Propose: self._propose,
            Decide: self._decide,
            Publish: self._publish,
            Withdraw: self._withdraw,
            Expire: self._expire,
            Step: self._step,
            Tamper: lambda _: "FL002",
        }
        return effects[type(operation)](operation)

    def _in(self, *states: str) -> Sequence[Version]:
        return [plan for plan in self.versions if plan.state in states]

    def _close_open(self, plans: Sequence[Version]) -> None:
        for plan in plans:
            plan.states.append("expired" if plan.state == "proposed" else "stale")

    def _propose(self, operation: Propose) -> str:
        if operation.snapshot in self.decisions:
            return f"again {self.decisions[operation.snapshot]}"
        version = None
        if operation.plan:
            version = len(self.versions) + 1
            if operation.again is not None and not 1 <= operation.again < version:
                return "IntegrityError"
            self._close_open(self._in(*OPEN))
            self.versions.append(
                Version(operation.who, operation.four_eyes, operation.expires_in, operation.again)
            )
        self.decisions[operation.snapshot] = version
        return f"stored {version}"

    def _decide(self, operation: Decide) -> str:
        if not 1 <= operation.version <= len(self.versions):
            return "PlanStateError"
        plan = self.versions[operation.version - 1]
        if plan.state != "proposed":
            return "PlanStateError"
        if operation.state == "approved":
            if not operation.right_hash:
                return "TamperedPlanError"
            if plan.void:
                return "PlanStateError"
            if plan.four_eyes and operation.who in {plan.proposer, *PLANNERS}:
                return "PlanStateError"
        plan.states.append(operation.state)
        return operation.state

    def _publish(self, operation: Publish) -> str:
        if self.on_its_way:
            return self._settle(operation.how)
        if not (approved := self._in("approved")):
            return "nothing waits"
        if operation.how == "stale":
            approved[0].states.append("stale")
            return "stale"
        if self._in("sending"):  # happens only after an event was inserted with SQL
            return "IntegrityError"
        approved[0].states.append("sending")
        self.on_its_way = ("plan", approved[0])
        return self._settle(operation.how, done="sent")

    def _withdraw(self, operation: Withdraw) -> str:
        if not (published := self._in("published")) or self.on_its_way:
            return "PlanStateError"
        self.on_its_way = ("withdrawn", published[0])
        return self._settle(operation.how, done="sent")

    def _settle(self, how: str, done: str = "settled") -> str:
        """Record the result of the unfinished send, unless the plan's state has changed."""
        if how == "died" or self.on_its_way is None:
            return "died"
        (kind, plan), self.on_its_way = self.on_its_way, None
        if kind == "withdrawn" and plan.state == "published":
            self._close_open(self._in(*OPEN))
            plan.states.append("withdrawn")
        elif kind == "plan" and plan.state == "sending":
            if how == "sent":
                for other in self._in("published"):
                    other.states.append("superseded")
            plan.states.append("published" if how == "sent" else "stale")
        return done

    def _expire(self, _: Expire) -> str:
        due = [plan for plan in self._in(*OPEN) if plan.expires_in is not None]
        ended = [self.versions.index(plan) + 1 for plan in due]
        self._close_open(due)
        return f"ended {ended}"

    def _step(self, operation: Step) -> str:
        if not 1 <= operation.version <= len(self.versions):
            return "FL001"
        plan = self.versions[operation.version - 1]
        if operation.state not in STEPS.get(plan.state, ()):
            return "FL001"
        if operation.state == "approved" and plan.void:
            return "FL001"
        if operation.state in {"published", "sending"} and self._in(operation.state):
            return "23505"
        plan.states.append(operation.state)
        return operation.state

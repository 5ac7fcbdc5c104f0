"""Random operations on plans in the database must have the results of a simple model.

Each operation uses the login of one of two planning services, an approver or a superuser. After
each operation, all stored values of the groups are compared with the model.
"""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fairlead.wire.document import content_hash
from tests.fairlead.store.life_database import Database
from tests.fairlead.store.life_model import (
    APPROVER,
    PLANNERS,
    SUPERUSER,
    Decide,
    Expire,
    Group,
    Operation,
    Propose,
    Publish,
    Step,
    Tamper,
    Withdraw,
)
from tests.fixtures.plans import MakeDraft, StoreAs
from tests.lengths import form
from tests.logins import Login

pytestmark = pytest.mark.postgres

LIVES: Final = settings(
    max_examples=form(short=10, long=200),
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
)

ENDS: Final = ("sent", "sent", "died")
TAMPERING: Final = (
    "UPDATE fairlead_raw.plan_event SET reason = 'another' WHERE group_id = %s",
    "DELETE FROM fairlead_raw.plan_event WHERE group_id = %s",
    "DELETE FROM fairlead_raw.plan WHERE group_id = %s AND state = 'stale'",
    "UPDATE fairlead_raw.decision SET outcome = 'no change', version = NULL WHERE group_id = %s",
    "DELETE FROM fairlead_raw.moved_partition WHERE group_id = %s",
)

groups = st.sampled_from(["orders", "billing"])
planners = st.sampled_from(PLANNERS)
everybody = st.sampled_from([*PLANNERS, *PLANNERS, APPROVER])
#: Version to operate on: 0 is the newest, 1 the one before it; -1 does not exist.
versions = st.sampled_from([0, 0, 0, 0, 1, 2, -1])
proposals = st.builds(
    Propose,
    planners,
    groups,
    snapshot=st.integers(0, 40),
    plan=st.sampled_from([True, True, True, False]),
    four_eyes=st.sampled_from([None, "proxy", "database"]),
    expires_in=st.sampled_from([None, None, 1, 1, -1]),
    again=st.sampled_from([None, None, None, None, 1, 2, 9]),
)
decisions = st.builds(
    Decide,
    st.sampled_from([*PLANNERS, APPROVER, APPROVER, APPROVER]),
    groups,
    state=st.sampled_from(["approved", "approved", "approved", "rejected"]),
    version=versions,
    right_hash=st.sampled_from([True, True, True, False]),
)
publications = st.builds(Publish, everybody, groups, how=st.sampled_from([*ENDS, "stale"]))
#: Three operations, of which `Lives.next` chooses one: the decision on a proposed plan, the
#: publication of an approved plan, otherwise the proposal of a new plan.
next_steps = st.tuples(proposals, decisions, publications)
operations = st.one_of(
    proposals,
    decisions,
    publications,
    st.builds(Withdraw, everybody, groups, how=st.sampled_from(ENDS)),
    st.builds(Expire, planners, groups),
    st.builds(
        Step,
        everybody.map(lambda who: APPROVER if who == APPROVER else SUPERUSER),
        groups,
        state=st.sampled_from(["proposed", "approved", "published", "superseded", "withdrawn"]),
        version=versions,
    ),
    st.builds(
        Tamper,
        st.sampled_from([*PLANNERS, APPROVER, SUPERUSER]),
        groups,
        statement=st.sampled_from(TAMPERING),
    ),
)


class Lives(RuleBasedStateMachine):
    """Random operations on two groups: one after the other, or two at the same time."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.life = next(self.database.lives)
        self.model = {"orders": Group(), "billing": Group()}
        self.documents: dict[tuple[str, int], bytes] = {}

    def real(self, operation: Operation) -> str:
        """Apply an operation to the database; return its result."""
        return self.database.apply(operation, f"{operation.group}-{self.life}")

    @rule(operation=operations)
    def do(self, operation: Operation) -> None:
        """Apply an operation; check that database and model have the same result."""
        operation = self.named(operation, operation.group)
        assert self.real(operation) == self.model[operation.group].apply(operation)
        self.expire_elsewhere(operation)

    @rule(group=groups, steps=next_steps)
    def continue_life(self, group: str, steps: tuple[Propose, Decide, Publish]) -> None:
        """Apply the operation that comes next in the life of a group's plan."""
        self.do(self.next(group, *steps))

    @rule(group=groups, steps=next_steps, other=operations)
    def continue_life_concurrently(
        self, group: str, steps: tuple[Propose, Decide, Publish], other: Operation
    ) -> None:
        """Apply the next operation while another session applies any operation to the group."""
        self.do_at_once(group, (self.next(group, *steps), other))

    def next(
        self, group: str, proposal: Propose, decision: Decide, publication: Publish
    ) -> Operation:
        """Choose the operation that comes next in the life of a group's plan."""
        newest = self.model[group].versions[-1].state if self.model[group].versions else None
        if newest == "proposed":
            return replace(decision, group=group, version=0)
        return replace(publication if newest == "approved" else proposal, group=group)

    @rule(group=groups, pair=st.tuples(operations, operations))
    def do_at_once(self, group: str, pair: tuple[Operation, Operation]) -> None:
        """Apply two operations at once; the results must be as if one had followed the other."""
        this, other = (self.named(operation, group) for operation in pair)
        before = expected(self.model[group])
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(self.real, (this, other)))
        possible = []
        for first, second in ((this, other), (other, this)):
            model = deepcopy(self.model[group])
            answers = {id(first): model.apply(first), id(second): model.apply(second)}
            if [answers[id(this)], answers[id(other)]] == results:
                possible.append(model)
        assert possible, (this, other, results, "in neither order", before)
        self.model[group] = next(
            (model for model in possible if self.seen(group) == expected(model)), possible[0]
        )
        self.expire_elsewhere(this, other)

    def named(self, operation: Operation, group: str) -> Operation:
        """Return the operation for this group; replace a relative version by its number."""
        if isinstance(operation, Decide | Step):
            version = len(self.model[group].versions) - operation.version
            return replace(operation, group=group, version=version)
        return replace(operation, group=group)

    def expire_elsewhere(self, *done: Operation) -> None:
        """Apply `Expire` to the model's other group, because expiry affects the whole database."""
        for operation in done:
            if isinstance(operation, Expire):
                for group in self.model.keys() - {operation.group}:
                    self.model[group].apply(operation)

    @invariant()
    def agree(self) -> None:
        """Check that the database has the model's values, and that documents never change."""
        for group, model in self.model.items():
            assert self.seen(group) == expected(model)

    def seen(self, group: str) -> tuple[list[Any], dict[int, int | None]]:
        """Return a group's values from the database, in the format of `expected`."""
        held, decisions = self.database.held(f"{group}-{self.life}")
        versions = []
        for version, four_eyes, again, state, document, sha256, states, named in held:
            assert self.documents.setdefault((group, version), document) == document
            assert named
            assert content_hash(document) == sha256
            versions.append((version, four_eyes, again, state, states))
        return versions, {int(key.removeprefix("s")): value for key, value in decisions.items()}


def expected(model: Group) -> tuple[list[Any], dict[int, int | None]]:
    """Return the values of a group that the database must have."""
    versions = [
        (number, plan.four_eyes, plan.again, plan.state, plan.states)
        for number, plan in enumerate(model.versions, 1)
    ]
    return versions, model.decisions


@pytest.mark.usefixtures("long_locks")
def test_database_agrees_with_the_model(
    migrated: str, draft: MakeDraft, login: Login, store_as: StoreAs
) -> None:
    """All operations, even simultaneous ones, have the results that the model predicts."""
    urls = {who: login("fairlead_planner") for who in PLANNERS}
    urls |= {APPROVER: login("fairlead_approver"), SUPERUSER: migrated}
    database = Database({who: store_as(url) for who, url in urls.items()}, urls, draft)
    try:
        run_state_machine_as_test(
            type("TheLives", (Lives,), {"database": database}), settings=LIVES
        )
    finally:
        for connection in database.sql.values():
            connection.close()

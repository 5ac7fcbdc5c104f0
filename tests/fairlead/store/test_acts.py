"""Actions on web pages: recorded names, agreement of two people, and limited rights."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from fairlead.domain.records import StoredPlan
from fairlead.errors import ConfigurationError, PlanStateError
from fairlead.store.acts import Act, Verb, act, agreed, answer, asked, find_act, objection_to_pages
from fairlead.store.freezes import read_freezes
from fairlead.store.history_queries import read_plan
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import MakeDraft, StoreAs, record_publication
from tests.logins import Login
from tests.stored import record_plan, wanted

pytestmark = pytest.mark.postgres

Propose = Callable[..., StoredPlan]


@pytest.fixture
def proposed(planner: PlanStore, draft: MakeDraft) -> Propose:
    """Return a function that proposes a plan with the planner's login."""

    def propose(snapshot: str = "s1", **changes: Any) -> StoredPlan:
        return record_plan(planner, draft(snapshot, **changes))

    return propose


def freeze_of(group: str | None, number: int | None = None, **given: Any) -> Act:
    verb: Verb = "freeze" if number is None else "unfreeze"
    return wanted(verb, None, **{"group": group, "version": number, **given})


def test_both_names_are_recorded(web: Engine, proposed: Propose) -> None:
    """The event has the person's name and the web server's login; the action has the token's id."""
    plan = proposed()
    approval = wanted("approve", plan)
    act(web, approval)
    event = read_plan(web, "orders", 1)["events"][-1]
    recorded = [event[name] for name in ("state", "actor", "database_user", "reason")]
    assert recorded == ["approved", "kim@example.com", web.url.username, "agreed"]
    done = find_act(web, approval.id)
    assert done is not None
    assert (done.outcome, done.proof, done.actor) == ("done", "token 1", "kim@example.com")


@pytest.mark.parametrize("owned", [False, True], ids=["policy", "owner's table"])
def test_pages_do_not_approve_if_the_database_requires_four_eyes(
    web: Engine, proposed: Propose, migrated: str, *, owned: bool
) -> None:
    """If a policy or table `four_eyes` requires a second database user, pages cannot approve."""
    if owned:
        with psycopg.connect(migrated) as owner:
            owner.execute("INSERT INTO fairlead_raw.four_eyes VALUES ('ord*')")
    plan = proposed(four_eyes="proxy" if owned else "database")
    act(web, freeze_of("orders"))
    act(web, freeze_of(None))
    for group in ("orders", None):
        number = next(freeze.number for freeze in read_freezes(web) if freeze.group == group)
        with pytest.raises(PlanStateError, match="the step unfreeze needs a second database user"):
            act(web, freeze_of(group, number))
    for who in ("kim", "lee", "max"):
        with pytest.raises(PlanStateError, match="the step approve needs a second database user"):
            act(web, wanted("approve", plan, who))
    assert len(read_freezes(web)) == 2
    act(web, wanted("reject", plan))
    assert read_plan(web, "orders", 1)["state"] == "rejected"
    with pytest.raises(PlanStateError, match="the step rollback needs a second database user"):
        act(web, wanted("rollback", plan))


@pytest.mark.parametrize(("hours", "state"), [(23, "approved"), (25, "proposed")])
def test_agreement_lasts_a_day(
    web: Engine, migrated: str, proposed: Propose, hours: int, state: str
) -> None:
    """If a plan needs two people, the first person's approval counts for 24 hours."""
    plan = proposed(four_eyes="proxy")
    act(web, wanted("approve", plan, "kim"))
    with psycopg.connect(migrated) as owner:
        owner.execute(
            "UPDATE fairlead_raw.page_act SET at = at - make_interval(hours => %s)", [hours]
        )
    assert len(agreed(web, "approve", "orders", 1)) == (state == "approved")
    act(web, wanted("approve", plan, "lee"))
    assert read_plan(web, "orders", 1)["state"] == state
    if state == "proposed":
        act(web, wanted("approve", plan, "kim"))
    assert read_plan(web, "orders", 1)["state"] == "approved"


def test_texts_of_an_action_are_limited(web: Engine, proposed: Propose) -> None:
    """Long names, proofs of identity and reasons are refused, because they could fill the disk."""
    plan, bounds = proposed(), {"who": 200, "proof": 200, "reason": 2000}
    for text, most in bounds.items():
        with pytest.raises(PlanStateError, match=f"{most:,} characters at most"):
            act(web, wanted("reject", plan, **{text: "x" * (most + 1)}))
    act(web, wanted("reject", plan, **{text: "x" * most for text, most in bounds.items()}))


def test_one_person_in_several_tabs_agrees_once(web: Engine, proposed: Propose) -> None:
    """Four approvals by one person count as one; the plan still waits for another person."""
    plan = proposed(four_eyes="proxy")
    with ThreadPoolExecutor() as beside:
        forms = set(beside.map(lambda _: act(web, wanted("approve", plan, "kim")), range(4)))
    assert {(kept.id, kept.outcome) for kept in agreed(web, "approve", "orders", 1)} == {
        (form, "agreed") for form in forms
    }
    assert (len(forms), read_plan(web, "orders", 1)["state"]) == (1, "proposed")


def test_unfreezing_needs_as_many_people_as_approval(web: Engine, proposed: Propose) -> None:
    """If a group's plans need two people, the end of its freeze needs two people, too."""
    proposed(four_eyes="proxy")
    act(web, freeze_of("orders"))
    (seen,) = read_freezes(web)
    act(web, freeze_of("orders", seen.number))
    act(web, freeze_of("orders", seen.number))
    assert len(read_freezes(web)) == 1
    act(web, freeze_of("orders", seen.number, who="lee"))
    assert read_freezes(web) == []


def test_requested_rollback_is_made_once(
    web: Engine, planner: PlanStore, proposed: Propose
) -> None:
    """A rollback has the id of its request; the person who requested it counts as an approver."""
    for snapshot in ("s1", "s2"):
        plan = proposed(snapshot)
        planner.approve("orders", plan.version, sha256=plan.sha256, reason="ok")
        record_publication(planner, planner.get("orders", plan.version))
    back, other = wanted("rollback", planner.get("orders", 1)), planner.get("orders", 2)
    with pytest.raises(PlanStateError, match="is published: too late to roll back to it"):
        act(web, wanted("rollback", other))
    act(web, back)
    with pytest.raises(PlanStateError, match="has not answered an earlier request yet"):
        act(web, wanted("withdraw", other))
    assert [page_act.id for page_act in asked(planner.engine)] == [back.id]
    stored = proposed("s3", rolled_back_from=1, request_id=back.id, four_eyes="proxy")
    answer(planner.engine, back.id, "done", "version 3 is proposed")
    assert asked(planner.engine) == []
    assert planner.requested(back.id) == stored
    act(web, wanted("approve", stored, "kim@example.com"))
    assert planner.get("orders", 3).state == "proposed"
    act(web, wanted("approve", stored, "lee@example.com"))
    assert planner.get("orders", 3).state == "approved"


def test_rollback_is_to_a_published_version(web: Engine, proposed: Propose) -> None:
    """A rollback is refused if its target was never published: here, proposed or rejected."""
    plan = proposed()
    with pytest.raises(PlanStateError, match="version 1 is proposed: no consumer followed it"):
        act(web, wanted("rollback", plan))
    act(web, wanted("reject", plan))
    with pytest.raises(PlanStateError, match="version 1 is rejected: no consumer followed it"):
        act(web, wanted("rollback", plan))


def test_login_with_other_rights_may_not_act_for_people(
    login: Login, store_as: StoreAs, store: PlanStore, proposed: Propose
) -> None:
    """A login with more or fewer rights than `fairlead_web` cannot act for people."""
    plan = proposed()
    for role in ("fairlead_planner", "fairlead_approver"):
        engine = store_as(login("fairlead_web", role)).engine
        assert objection_to_pages(engine) == f"{engine.url.username} is a member of {role}"
        with pytest.raises(PlanStateError, match=f"is a member of {role}"):
            act(engine, wanted("approve", plan))
    with pytest.raises(PlanStateError, match="is a superuser"):
        act(store.engine, wanted("approve", plan))
    reader = store_as(login("fairlead_reader")).engine
    assert "is not a member of fairlead_web" in (objection_to_pages(reader) or "")
    with pytest.raises(ConfigurationError, match="fairlead_web"):
        act(reader, wanted("approve", plan))


def test_action_needs_name_proof_and_reason(web: Engine, proposed: Propose) -> None:
    """An action with an empty name or reason is refused; invisible characters count as empty."""
    plan = proposed()
    for blank in ("", " \t", "\u200b\u00a0", "\U000e0041\U000e0100"):
        for given in ({"who": blank}, {"reason": blank}):
            with pytest.raises(PlanStateError, match="needs a person, a proof and a reason"):
                act(web, wanted("approve", plan, **given))
    with pytest.raises(PlanStateError, match="the name of automatic approvals"):
        act(web, wanted("approve", plan, "Policy"))
    with pytest.raises(PlanStateError, match="group nobody is not known"):
        act(web, freeze_of("nobody"))

"""Rights of the database's roles, tested with real logins."""

from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pytest

from fairlead.errors import PlanStateError
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import (
    SNAPSHOT_AT,
    MakeDraft,
    StoreAs,
    record_publication,
    record_withdrawal,
)
from tests.logins import Login
from tests.stored import plan_history, record_adoption, record_plan

pytestmark = pytest.mark.postgres


ROLES = ("fairlead_planner", "fairlead_approver", "fairlead_web", "fairlead_reader")
INSERTED = {
    "balance",
    "candidate",
    "consumer_group",
    "decision",
    "lag_snapshot",
    "moved_partition",
    "group_sample",
    "group_sample_last",
    "last_sample",
    "partition_lag",
    "plan",
    "plan_adoption",
    "plan_event",
    "plan_attempt",
    "plan_intent",
    "plan_record",
}
REWRITTEN = {
    "group_sample_last",
    "last_sample",
    "plan_attempt",
    "plan_intent",
    "plan_record",
}
READING = {"history_days", "objection_to_pages", "plan_diff", "plan_owners", "time_share"}
CALLED = {
    "fairlead_planner": READING
    | {
        "answer_act",
        "approve_plan",
        "freeze",
        "ensure_day",
        "lock_freezes",
        "lock_group",
        "lock_groups",
        "lock_partition",
    }
    | {"needs_four_eyes", "partition_turn"}
    | {"record_capacities", "record_diagnoses", "record_regression", "reject_plan", "unfreeze"},
    "fairlead_approver": READING | {"approve_plan", "freeze", "reject_plan", "unfreeze"},
    "fairlead_web": READING | {"act_as"},
    "fairlead_reader": READING,
    "public": set(),
}
RELATIONS = """
    SELECT oid::regclass::text FROM pg_class
    WHERE relnamespace IN ('fairlead'::regnamespace, 'fairlead_raw'::regnamespace)
        AND relkind IN ('r', 'p', 'v') AND NOT relispartition
"""
EVENT = "INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason"
#: Role -> statements that it must not run. They are tried while a plan waits for approval.
REFUSED = {
    "fairlead_planner": [
        "UPDATE fairlead_raw.plan SET state = 'approved'",
        "UPDATE fairlead_raw.plan_event SET actor = 'kim'",
        "SET LOCAL fairlead.pruning = 'on'; DELETE FROM fairlead_raw.plan_event",
        "DROP TABLE fairlead_raw.plan",
        "ALTER TABLE fairlead_raw.plan_event DISABLE TRIGGER ALL",
        "CREATE TABLE fairlead.mine ()",
        (
            "CREATE TRIGGER t BEFORE INSERT ON fairlead_raw.plan"
            " EXECUTE FUNCTION fairlead_raw.plan_insert()"
        ),
        "SET session_replication_role = replica",
        "SET SESSION AUTHORIZATION postgres",
        "SET ROLE fairlead_approver",
        "GRANT fairlead_approver TO fairlead_planner",
        f"{EVENT}, at) VALUES ('orders', 1, 'approved', 'why', '1999-01-01')",
        f"{EVENT}, database_user) VALUES ('orders', 1, 'approved', 'why', 'kim')",
        "INSERT INTO fairlead_raw.plan (group_id, version, state) VALUES ('orders', 2, 'approved')",
        "INSERT INTO fairlead_raw.consumer_group (group_id, first_seen_at) VALUES ('a', now())",
    ],
    "fairlead_approver": [
        f"{EVENT}) VALUES ('orders', 1, 'approved', 'why')",
        f"{EVENT}) VALUES ('orders', 1, 'published', 'why')",
        "UPDATE fairlead_raw.plan SET state = 'approved'",
        "SET ROLE fairlead_planner",
    ],
    "fairlead_web": [
        f"{EVENT}) VALUES ('orders', 1, 'approved', 'why')",
        f"{EVENT}, actor) VALUES ('orders', 1, 'approved', 'why', 'kim')",
        "SET ROLE fairlead_planner",
        "SET ROLE fairlead_approver",
    ],
    "fairlead_reader": [
        f"{EVENT}) VALUES ('orders', 1, 'approved', 'why')",
        "SET ROLE fairlead_approver",
    ],
}


def test_login_without_a_role_cannot_connect(migrated: str, login: Login) -> None:
    """Only members of Fairlead's roles can connect to the database."""
    with psycopg.connect(migrated) as superuser:
        rights = [
            superuser.execute(
                "SELECT has_database_privilege(%s, current_database(), 'CONNECT')", [role]
            ).fetchone()
            for role in ("public", *ROLES)
        ]
    assert rights == [(False,), *[(True,)] * len(ROLES)]
    psycopg.connect(login("fairlead_reader")).close()


def user_of(url: str) -> str:
    return urlsplit(url).netloc.partition("@")[0]


def test_rights_are_exactly_these(migrated: str) -> None:
    """All roles read all tables, only planners write, and each role has its own functions."""
    with psycopg.connect(migrated) as superuser:
        relations = [name for (name,) in superuser.execute(RELATIONS)]
        functions = superuser.execute(
            "SELECT proname, oid FROM pg_proc WHERE pronamespace::regnamespace::text ~ '^fairlead'"
        ).fetchall()

        def held(role: str, right: str) -> set[str]:
            query = (
                "SELECT relation FROM unnest(%s::text[]) relation"
                " WHERE has_table_privilege(%s, relation, %s)"
            )
            if right in {"SELECT", "INSERT", "UPDATE", "REFERENCES"}:
                query = query.replace("has_table", "has_any_column")
            found = superuser.execute(query.encode(), [relations, role, right])
            return {name.removeprefix("fairlead_raw.") for (name,) in found}

        everything = {name.removeprefix("fairlead_raw.") for name in relations}
        for role in ROLES:
            assert held(role, "SELECT") == everything
            assert held(role, "INSERT") == (INSERTED if role == "fairlead_planner" else set())
            planner = role == "fairlead_planner"
            assert held(role, "UPDATE") == (REWRITTEN if planner else set())
            assert held(role, "DELETE") == (
                REWRITTEN - {"group_sample_last", "last_sample", "plan_record"}
                if planner
                else set()
            )
            for right in ("TRUNCATE", "REFERENCES", "TRIGGER"):
                assert held(role, right) == set(), (role, right)
        for role, called in CALLED.items():
            assert called == {
                name
                for name, oid in functions
                if superuser.execute(
                    "SELECT has_function_privilege(%s, %s::oid, 'EXECUTE')", [role, oid]
                ).fetchone()
                == (True,)
            }, role


#: Statements that no role may run, although they need no right to a table.
GREEDY = [
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock_shared(1, 2)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
]


@pytest.mark.parametrize("role", ROLES)
def test_forbidden_statements_are_refused(
    planner: PlanStore, draft: MakeDraft, login: Login, role: str
) -> None:
    """Roles cannot rewrite, delete or forge rows, disable triggers, or take another role."""
    record_plan(planner, draft())
    with psycopg.connect(login(role), autocommit=True) as person:
        answers = {}
        for statement in (refused := REFUSED[role] + GREEDY):
            try:
                with person.transaction(force_rollback=True):
                    person.execute(statement.encode())
            except psycopg.Error as error:
                answers[statement] = error.sqlstate
        assert answers == dict.fromkeys(refused, "42501")


def test_functions_of_a_user_do_not_replace_guards(
    planner: PlanStore, draft: MakeDraft, migrated: str, login: Login
) -> None:
    """A user's function `max` that hides the built-in cannot cause gaps in version numbers."""
    record_plan(planner, draft())
    url = login("fairlead_planner")
    with psycopg.connect(migrated) as superuser:
        superuser.execute(f"GRANT CREATE ON SCHEMA public TO {user_of(url)}".encode())
    with psycopg.connect(url) as person:
        person.execute("SET search_path = public, pg_catalog")
        person.execute(
            "CREATE AGGREGATE public.max(integer)"
            " (SFUNC = int4larger, STYPE = integer, INITCOND = '41')"
        )
        with pytest.raises(psycopg.Error, match="the next version is 2") as error:
            person.execute(
                "INSERT INTO fairlead_raw.plan (group_id, version, plan_id, assignor, reason,"
                " snapshot_id, snapshot_at, created_at, document, sha256)"
                " VALUES ('orders', 42, gen_random_uuid(), 'a', 'why', 's', now(), now(), '',"
                " encode(sha256(''), 'hex'))"
            )
        assert error.value.sqlstate == "FL001"
        person.rollback()
    with psycopg.connect(migrated) as superuser:
        superuser.execute(f"REVOKE CREATE ON SCHEMA public FROM {user_of(url)}".encode())


def test_planner_has_all_rights_for_planning(planner: PlanStore, draft: MakeDraft) -> None:
    """The planner can store lag on a new day, take plans through all steps, and record adoption."""
    lag = pa.table(
        {
            "snapshot_id": ["s1"],
            "snapshot_at": pa.array([SNAPSHOT_AT], pa.timestamp("us", tz="UTC")),
            "group": ["orders"],
            "topic": ["t0"],
            "partition": pa.array([0], pa.int32()),
            "lag": pa.array([7], pa.int64()),
            "status": ["OK"],
        }
    )
    assert planner.record_lag(lag) == 1
    for snapshot in ("s1", "s2"):
        plan = record_plan(planner, draft(snapshot))
        planner.approve("orders", plan.version, sha256=plan.sha256, reason="few", actor="policy")
        record_publication(planner, planner.get("orders", plan.version))
    record_adoption(planner, "orders", 2, observed_at=SNAPSHOT_AT, planned=3, as_planned=3)
    record_withdrawal(planner, "orders")
    assert [(row["state"], row["decided_by"]) for row in plan_history(planner, "orders")] == [
        ("superseded", "policy"),
        ("withdrawn", "policy"),
    ]


def test_decision_has_the_login_of_its_approver(
    planner: PlanStore, draft: MakeDraft, login: Login, store_as: StoreAs
) -> None:
    """Approvals and rejections record the login, even if another actor or role is set."""
    url = login("fairlead_approver")
    approver = store_as(url)
    plan = record_plan(planner, draft("s1"))
    approver.approve("orders", 1, sha256=plan.sha256, reason="fine", actor="somebody")
    record_plan(planner, draft("s2"))
    with psycopg.connect(url) as person:
        person.execute("SET ROLE fairlead_approver")
        person.execute("SELECT fairlead.reject_plan('orders', 2, 'no', actor => 'somebody')")
    assert [(row["state"], row["decided_by"]) for row in plan_history(planner, "orders")] == [
        ("stale", user_of(url)),
        ("rejected", user_of(url)),
    ]


@pytest.mark.parametrize(
    "roles", [("fairlead_planner",), ("fairlead_planner", "fairlead_approver")]
)
def test_four_eyes_need_an_approver_who_is_no_planner(
    planner: PlanStore, draft: MakeDraft, login: Login, store_as: StoreAs, roles: tuple[str, ...]
) -> None:
    """A planner cannot approve another planner's plan, even if the planner is also an approver."""
    plan = record_plan(planner, draft(four_eyes="database"))
    other = store_as(login(*roles))
    with pytest.raises(PlanStateError, match=r"version 1 needs four eyes: .* is a member of"):
        other.approve("orders", 1, sha256=plan.sha256, reason="fine", actor="kim")
    assert planner.get("orders", 1).state == "proposed"


def test_four_eyes_exclude_the_proposer(
    store: PlanStore, planner: PlanStore, draft: MakeDraft, migrated: str
) -> None:
    """No user can approve a plan that they proposed, even by SQL or as a superuser."""
    plan = record_plan(planner, draft(group="a", four_eyes="database"))
    with pytest.raises(PlanStateError, match="proposed it and cannot approve it"):
        planner.approve("a", 1, sha256=plan.sha256, reason="fine", actor="kim")
    record_plan(store, draft(group="b", four_eyes="database"))
    with psycopg.connect(migrated, autocommit=True) as superuser:
        for role in ("NONE", "fairlead_approver"):
            superuser.execute(f"SET ROLE {role}".encode())
            with pytest.raises(psycopg.Error, match="proposed it") as error:
                superuser.execute("SELECT fairlead.approve_plan('b', 1, 'fine')")
            assert error.value.sqlstate == "FL004"
        superuser.execute("RESET ROLE")
        with pytest.raises(psycopg.Error, match="proposed it"):
            superuser.execute(f"{EVENT}, actor) VALUES ('b', 1, 'approved', 'why', 'kim')".encode())


def test_planner_cannot_disable_four_eyes(
    planner: PlanStore, draft: MakeDraft, migrated: str
) -> None:
    """Planners cannot approve their plans of groups that match a pattern in table `four_eyes`."""
    matching: dict[str, str | None] = dict.fromkeys(("orders", "ord*", "*", "o?ders"), "database")
    patterns = matching | dict.fromkeys(("order", "order.", "billing-*"))
    for version, (groups, four_eyes) in enumerate(patterns.items(), 1):
        with psycopg.connect(migrated) as owner:
            owner.execute("DELETE FROM fairlead_raw.four_eyes")
            owner.execute("INSERT INTO fairlead_raw.four_eyes VALUES (%s)", [groups])
        plan = record_plan(planner, draft(f"s{version}", four_eyes=None))
        assert planner.get("orders", version).four_eyes == four_eyes, groups
        if four_eyes:
            with pytest.raises(PlanStateError, match="needs four eyes"):
                planner.approve("orders", version, sha256=plan.sha256, reason="mine", actor="kim")

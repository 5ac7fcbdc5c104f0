-- Rights of the roles.
--   fairlead_planner   writes snapshots, decisions, plans and events, but may not change or delete these
--   fairlead_approver  reads; approves, rejects, freezes and unfreezes by the functions of these names
--   fairlead_reader    reads
--   fairlead_web       reads, and calls act_as for people on pages; its members must have no other role
-- Only the owner of the schema migrates and prunes.

GRANT USAGE ON SCHEMA fairlead, fairlead_raw
    TO fairlead_planner, fairlead_approver, fairlead_reader, fairlead_web;
GRANT SELECT ON ALL TABLES IN SCHEMA fairlead, fairlead_raw
    TO fairlead_planner, fairlead_approver, fairlead_reader, fairlead_web;

-- Rights are given by column, because the planner must not set states, times and database users.
GRANT INSERT (group_id) ON fairlead_raw.consumer_group TO fairlead_planner;
GRANT INSERT (group_id, version, plan_id, assignor, reason, snapshot_id, snapshot_at, created_at,
              expires_at, document, sha256, four_eyes, shadow, rolled_back_from, analysed,
              request_id)
    ON fairlead_raw.plan TO fairlead_planner;
GRANT INSERT (group_id, version, state, actor, reason, sha256, topic, partition, record_offset)
    ON fairlead_raw.plan_event TO fairlead_planner;
GRANT INSERT (group_id, snapshot_id, snapshot_at, outcome, reason, version, settings)
    ON fairlead_raw.decision TO fairlead_planner;
GRANT INSERT ON fairlead_raw.moved_partition, fairlead_raw.candidate, fairlead_raw.balance,
                fairlead_raw.plan_adoption, fairlead_raw.lag_snapshot, fairlead_raw.partition_lag,
                fairlead_raw.group_sample
    TO fairlead_planner;
GRANT INSERT, UPDATE ON fairlead_raw.plan_record, fairlead_raw.last_sample,
                        fairlead_raw.group_sample_last
    TO fairlead_planner;
GRANT INSERT, UPDATE, DELETE ON fairlead_raw.plan_intent, fairlead_raw.plan_attempt TO fairlead_planner;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA fairlead, fairlead_raw FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    fairlead_raw.lock_group, fairlead_raw.lock_groups, fairlead_raw.lock_partition,
    fairlead_raw.lock_freezes,
    fairlead_raw.partition_turn, fairlead_raw.needs_four_eyes, fairlead_raw.ensure_day,
    fairlead_raw.record_capacities, fairlead_raw.record_diagnoses, fairlead_raw.record_regression,
    fairlead_raw.answer_act
    TO fairlead_planner;
GRANT EXECUTE ON FUNCTION fairlead.approve_plan, fairlead.reject_plan, fairlead.freeze, fairlead.unfreeze
    TO fairlead_planner, fairlead_approver;
GRANT EXECUTE ON FUNCTION fairlead.act_as TO fairlead_web;
GRANT EXECUTE ON FUNCTION
    fairlead_raw.time_share, fairlead.objection_to_pages, fairlead.plan_owners, fairlead.plan_diff, fairlead.history_days
    TO fairlead_planner, fairlead_approver, fairlead_reader, fairlead_web;

-- By default every login may connect to a database. Connecting to this one needs one of the roles, or a grant.
DO $$
DECLARE
    owned boolean := (
        SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()
    );
BEGIN
    IF NOT owned THEN
        RAISE NOTICE '% does not own the database %: let its owner revoke CONNECT from PUBLIC',
            current_user, current_database();
        RETURN;
    END IF;
    EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format(
        'GRANT CONNECT ON DATABASE %I'
        ' TO fairlead_planner, fairlead_approver, fairlead_reader, fairlead_web',
        current_database()
    );
END $$;

-- By default every login can use advisory locks and large objects. With advisory locks it could fill the server's
-- only table of locks, which blocks all other locks and connections; with large objects it could fill the disk.
DO $$
DECLARE
    one regprocedure;
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE NOTICE '% is not a superuser: a superuser must revoke the rights in docs/trust.md', current_user;
        RETURN;
    END IF;
    FOR one IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace
            AND proname ~ '^(pg_(try_)?advisory_|lo_|loread$|lowrite$)'
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
    END LOOP;
END $$;

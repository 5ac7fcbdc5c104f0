-- Who may do what. The roles belong to the cluster and cannot log in; people and services are made
-- members of them: GRANT fairlead_approver TO kim;
--   fairlead_planner   writes snapshots, decisions, plans and events; rewrites and deletes nothing
--   fairlead_approver  reads, and approves or rejects by the functions of these names
--   fairlead_reader    reads
-- Migrating and pruning stay with the owner of the schema.

DO $$
DECLARE
    role text;
    missing text[] := ARRAY(
        SELECT wanted
        FROM unnest(ARRAY['fairlead_planner', 'fairlead_approver', 'fairlead_reader']) wanted
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted)
    );
BEGIN
    FOREACH role IN ARRAY missing LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;  -- another database of the cluster was migrated meanwhile
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION '% may not create roles; let an administrator run: %',
                    current_user,
                    (SELECT string_agg(format('CREATE ROLE %I NOLOGIN;', name), ' ')
                     FROM unnest(missing) name)
                    USING ERRCODE = 'FL005';
        END;
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA fairlead TO fairlead_planner, fairlead_approver, fairlead_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA fairlead
    TO fairlead_planner, fairlead_approver, fairlead_reader;

-- By column: state, times and the database's users are not the planner's to say.
GRANT INSERT (group_id) ON fairlead.consumer_group TO fairlead_planner;
GRANT INSERT (group_id, version, plan_id, assignor, reason, snapshot_id, snapshot_at, created_at,
              expires_at, document, sha256, four_eyes, rolled_back_from)
    ON fairlead.plan TO fairlead_planner;
GRANT INSERT (group_id, version, state, actor, reason, sha256, topic, partition, record_offset)
    ON fairlead.plan_event TO fairlead_planner;
GRANT INSERT (group_id, snapshot_id, snapshot_at, outcome, reason, version)
    ON fairlead.decision TO fairlead_planner;
GRANT INSERT ON fairlead.plan_move, fairlead.candidate, fairlead.balance, fairlead.plan_adoption,
                fairlead.lag_snapshot, fairlead.partition_lag
    TO fairlead_planner;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA fairlead FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fairlead.lock_group, fairlead.ensure_lag_day TO fairlead_planner;
GRANT EXECUTE ON FUNCTION fairlead.approve_plan, fairlead.reject_plan
    TO fairlead_planner, fairlead_approver;
GRANT EXECUTE ON FUNCTION fairlead.plan_owners, fairlead.plan_diff, fairlead.lag_days
    TO fairlead_planner, fairlead_approver, fairlead_reader;

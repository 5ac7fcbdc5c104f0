-- What 0008_raw.sql does, backwards. The schema stays, empty: its owner may not be able to create one.

DROP VIEW fairlead.plan, fairlead.plan_event, fairlead.plan_record, fairlead.decision,
          fairlead.candidate, fairlead.member_capacity;

ALTER VIEW fairlead.adoption RENAME COLUMN lag_max_achieved TO heaviest_achieved;
ALTER VIEW fairlead.adoption RENAME COLUMN lag_max_predicted TO heaviest_predicted;
ALTER VIEW fairlead.plan_history RENAME COLUMN lag_max_achieved TO heaviest_achieved;
ALTER VIEW fairlead.plan_history RENAME COLUMN lag_max_predicted TO heaviest_predicted;
ALTER VIEW fairlead.plan_history RENAME COLUMN lag_max_before TO heaviest_before;

ALTER TABLE fairlead_raw.moved_partition
    RENAME CONSTRAINT moved_partition_moves_check TO plan_move_moves_check;
ALTER TABLE fairlead_raw.moved_partition
    RENAME CONSTRAINT moved_partition_plan_fkey TO plan_move_plan_fkey;
ALTER TABLE fairlead_raw.moved_partition RENAME CONSTRAINT moved_partition_pkey TO plan_move_pkey;
ALTER TABLE fairlead_raw.moved_partition RENAME TO plan_move;

DO $$
DECLARE
    moved record;
BEGIN
    FOR moved IN
        SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'fairlead_raw'::regnamespace AND relkind IN ('r', 'p')
    LOOP
        EXECUTE format('ALTER TABLE fairlead_raw.%I SET SCHEMA fairlead', moved.name);
    END LOOP;
    FOR moved IN
        SELECT proname AS name FROM pg_proc WHERE pronamespace = 'fairlead_raw'::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION fairlead_raw.%I SET SCHEMA fairlead', moved.name);
    END LOOP;
    FOR moved IN
        SELECT pg_get_functiondef(oid) AS definition FROM pg_proc
        WHERE pronamespace = 'fairlead'::regnamespace
    LOOP
        EXECUTE regexp_replace(moved.definition, '\mfairlead_raw\M', 'fairlead', 'g');
    END LOOP;
END $$;

REVOKE USAGE ON SCHEMA fairlead_raw FROM fairlead_planner, fairlead_approver, fairlead_reader;
COMMENT ON SCHEMA fairlead IS NULL;
COMMENT ON SCHEMA fairlead_raw IS NULL;

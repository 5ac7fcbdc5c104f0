-- `fairlead` keeps what people read and call; tables, and functions that the software alone calls, move
-- to `fairlead_raw`. Nothing is copied: rights, triggers, keys and rows stay with what moves.

DO $$
BEGIN
    IF to_regnamespace('fairlead_raw') IS NULL THEN
        CREATE SCHEMA fairlead_raw;
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION '% may not create schemas; let an administrator run: %', current_user,
            format('CREATE SCHEMA fairlead_raw AUTHORIZATION %I;', current_user)
            USING ERRCODE = 'FL005';
END $$;
COMMENT ON SCHEMA fairlead IS 'What people read and call: views and functions.';
COMMENT ON SCHEMA fairlead_raw IS
    'Tables, and what writes and guards them; the views of the schema fairlead show them.';
GRANT USAGE ON SCHEMA fairlead_raw TO fairlead_planner, fairlead_approver, fairlead_reader;


DO $$
DECLARE
    called text := 'approve_plan|reject_plan|plan_diff|plan_owners|lag_days|prune_lag';
    moved record;
BEGIN
    FOR moved IN  -- a day of lag is a table like any other, and does not follow its parent
        SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'fairlead'::regnamespace AND relkind IN ('r', 'p')
            AND relname <> 'alembic_version'
    LOOP
        EXECUTE format('ALTER TABLE fairlead.%I SET SCHEMA fairlead_raw', moved.name);
    END LOOP;
    FOR moved IN
        SELECT proname AS name FROM pg_proc
        WHERE pronamespace = 'fairlead'::regnamespace AND proname <> ALL (string_to_array(called, '|'))
    LOOP
        EXECUTE format('ALTER FUNCTION fairlead.%I SET SCHEMA fairlead_raw', moved.name);
    END LOOP;
    -- Views and triggers know what they read by its number, functions by its name.
    FOR moved IN
        SELECT pg_get_functiondef(oid) AS definition FROM pg_proc
        WHERE pronamespace IN ('fairlead'::regnamespace, 'fairlead_raw'::regnamespace)
    LOOP
        EXECUTE replace(
            regexp_replace(
                moved.definition, format('\mfairlead\.(?!(%s)\M)', called), 'fairlead_raw.', 'g'
            ),
            $name$'fairlead'::regnamespace$name$,
            $name$'fairlead_raw'::regnamespace$name$
        );
    END LOOP;
END $$;

-- The view plan_moves shows it: two names that differ by more than an s.
ALTER TABLE fairlead_raw.plan_move RENAME TO moved_partition;
ALTER TABLE fairlead_raw.moved_partition RENAME CONSTRAINT plan_move_pkey TO moved_partition_pkey;
ALTER TABLE fairlead_raw.moved_partition
    RENAME CONSTRAINT plan_move_plan_fkey TO moved_partition_plan_fkey;
ALTER TABLE fairlead_raw.moved_partition
    RENAME CONSTRAINT plan_move_moves_check TO moved_partition_moves_check;


-- What the heaviest member has to work off has one name, that of an assignment's metrics.
ALTER VIEW fairlead.plan_history RENAME COLUMN heaviest_before TO lag_max_before;
ALTER VIEW fairlead.plan_history RENAME COLUMN heaviest_predicted TO lag_max_predicted;
ALTER VIEW fairlead.plan_history RENAME COLUMN heaviest_achieved TO lag_max_achieved;
ALTER VIEW fairlead.adoption RENAME COLUMN heaviest_predicted TO lag_max_predicted;
ALTER VIEW fairlead.adoption RENAME COLUMN heaviest_achieved TO lag_max_achieved;


-- Tables that people ask as they are.
CREATE VIEW fairlead.plan AS SELECT * FROM fairlead_raw.plan;
CREATE VIEW fairlead.plan_event AS SELECT * FROM fairlead_raw.plan_event;
CREATE VIEW fairlead.plan_record AS SELECT * FROM fairlead_raw.plan_record;
CREATE VIEW fairlead.decision AS SELECT * FROM fairlead_raw.decision;
CREATE VIEW fairlead.candidate AS SELECT * FROM fairlead_raw.candidate;
CREATE VIEW fairlead.member_capacity AS SELECT * FROM fairlead_raw.member_capacity;

GRANT SELECT ON fairlead.plan, fairlead.plan_event, fairlead.plan_record, fairlead.decision,
                fairlead.candidate, fairlead.member_capacity
    TO fairlead_planner, fairlead_approver, fairlead_reader;

-- They say of themselves what their tables do.
DO $$
DECLARE
    name text;
    shown record;
BEGIN
    FOR name IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'fairlead'::regnamespace AND relkind = 'v'
            AND to_regclass(format('fairlead_raw.%I', relname)) IS NOT NULL
    LOOP
        EXECUTE format('COMMENT ON VIEW fairlead.%I IS %L', name,
            obj_description(format('fairlead_raw.%I', name)::regclass, 'pg_class'));
        FOR shown IN
            SELECT attname, col_description(attrelid, attnum) AS comment FROM pg_attribute
            WHERE attrelid = format('fairlead_raw.%I', name)::regclass
                AND attnum > 0 AND NOT attisdropped
        LOOP
            EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
                name, shown.attname, shown.comment);
        END LOOP;
    END LOOP;
END $$;

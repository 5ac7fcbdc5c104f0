-- Objects that an administrator may have to create: the roles, which belong to the cluster, and the schema of
-- the tables. If the user may not create these, the error contains the statements for an administrator:
--   FL005  a role or a schema is missing, and the user may not create it
-- The roles cannot log in; people and services become members: GRANT fairlead_approver TO kim;

DO $$
DECLARE
    role text;
    missing text[] := ARRAY(
        SELECT wanted
        FROM unnest(ARRAY['fairlead_planner', 'fairlead_approver', 'fairlead_reader', 'fairlead_web']) wanted
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted)
    );
BEGIN
    FOREACH role IN ARRAY missing LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;  -- the migration of another database has created it meanwhile
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION '% may not create roles; let an administrator run: %',
                    current_user,
                    (SELECT string_agg(format('CREATE ROLE %I NOLOGIN;', name), ' ')
                     FROM unnest(missing) name)
                    USING ERRCODE = 'FL005';
        END;
    END LOOP;
END $$;

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
COMMENT ON SCHEMA fairlead IS 'Views and functions for people.';
COMMENT ON SCHEMA fairlead_raw IS
    'Tables, with functions that write and guard them; the views of the schema fairlead show them.';

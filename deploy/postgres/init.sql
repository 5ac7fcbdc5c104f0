-- Databases and logins, when the volume is new. Each service has the rights it needs: the owner
-- migrates, the planner writes, the reader shows.

\getenv dagster DAGSTER_PASSWORD
\getenv owner OWNER_PASSWORD
\getenv planner PLANNER_PASSWORD
\getenv reader READER_PASSWORD
\getenv approver APPROVER_PASSWORD

CREATE USER dagster PASSWORD :'dagster';
CREATE DATABASE dagster OWNER dagster;

-- The schema grants to these; to create them takes more than its owner may.
CREATE ROLE fairlead_planner NOLOGIN;
CREATE ROLE fairlead_approver NOLOGIN;
CREATE ROLE fairlead_reader NOLOGIN;
CREATE ROLE fairlead_web NOLOGIN;

CREATE USER owner PASSWORD :'owner';
CREATE USER planner PASSWORD :'planner' IN ROLE fairlead_planner;
CREATE USER approver PASSWORD :'approver' IN ROLE fairlead_approver CONNECTION LIMIT 20;
CREATE USER reader PASSWORD :'reader' IN ROLE fairlead_reader CONNECTION LIMIT 20;
CREATE DATABASE fairlead OWNER owner;

-- Without a right to any table, a login could still fill the server's one lock table with advisory
-- locks, and its disk with large objects. The owner may lock: its migrations take turns by a lock.
\connect fairlead
DO $$
DECLARE
    one regprocedure;
BEGIN
    FOR one IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace
            AND proname ~ '^(pg_(try_)?advisory_|lo_|loread$|lowrite$)'
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO owner', one);
    END LOOP;
END $$;

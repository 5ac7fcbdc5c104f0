-- Creates databases and logins when the volume is new. Each login has only the rights that its service
-- needs: the owner migrates, the planner writes, the reader reads for pages and metrics.

\getenv dagster DAGSTER_PASSWORD
\getenv owner OWNER_PASSWORD
\getenv planner PLANNER_PASSWORD
\getenv reader READER_PASSWORD
\getenv approver APPROVER_PASSWORD

CREATE USER dagster PASSWORD :'dagster';
CREATE DATABASE dagster OWNER dagster;

-- The migration of the schema grants rights to these roles, but the schema's owner may not create roles.
CREATE ROLE fairlead_planner NOLOGIN;
CREATE ROLE fairlead_approver NOLOGIN;
CREATE ROLE fairlead_reader NOLOGIN;
CREATE ROLE fairlead_web NOLOGIN;

CREATE USER owner PASSWORD :'owner';
CREATE USER planner PASSWORD :'planner' IN ROLE fairlead_planner;
CREATE USER approver PASSWORD :'approver' IN ROLE fairlead_approver CONNECTION LIMIT 20;
CREATE USER reader PASSWORD :'reader' IN ROLE fairlead_reader CONNECTION LIMIT 20;
CREATE DATABASE fairlead OWNER owner;

-- Even without a right to any table, a login could fill the server's only table of locks with advisory
-- locks, and the disk with large objects. The owner keeps these rights, since migrations take turns with
-- an advisory lock.
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

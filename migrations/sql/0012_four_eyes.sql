-- Whether a plan needs another pair of eyes is not the planner's word alone: of groups that stand in
-- this table every plan does. Its rows are the owner's of the schema; the planner may add to it by
-- its policies, and take nothing away.

CREATE FUNCTION fairlead_raw.needs_four_eyes(group_id text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM fairlead_raw.four_eyes
        WHERE needs_four_eyes.group_id ~ (
            '^' || replace(replace(
                regexp_replace(four_eyes.groups, '([].+^$(){}|[\\])', '\\\1', 'g'), '*', '.*'
            ), '?', '.') || '$'
        )
    )
$$;
COMMENT ON FUNCTION fairlead_raw.needs_four_eyes IS
    'Whether the owner of the schema asks for another pair of eyes for the plans of a group.';
REVOKE EXECUTE ON FUNCTION fairlead_raw.needs_four_eyes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fairlead_raw.needs_four_eyes TO fairlead_planner;


CREATE OR REPLACE FUNCTION fairlead_raw.plan_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    next integer;
BEGIN
    PERFORM fairlead_raw.lock_group(NEW.group_id);
    SELECT coalesce(max(version), 0) + 1 INTO next FROM fairlead_raw.plan WHERE group_id = NEW.group_id;
    IF NEW.version <> next OR NEW.state <> 'proposed' THEN
        RAISE EXCEPTION 'group %: version % as % cannot be stored: the next is version %, proposed',
            NEW.group_id, NEW.version, NEW.state, next USING ERRCODE = 'FL001';
    END IF;
    NEW.four_eyes := NEW.four_eyes OR fairlead_raw.needs_four_eyes(NEW.group_id);
    RETURN NEW;
END $$;


-- Who decided is whom the database saw. In whose name a service says that it acts stays in the event.
DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW fairlead.plan_history AS' || replace(
        pg_get_viewdef('fairlead.plan_history'::regclass),
        'COALESCE(approved.actor, rejected.actor)',
        'COALESCE(approved.database_user, rejected.database_user)'
    );
END $$;
COMMENT ON COLUMN fairlead.plan_history.decided_by IS
    'Who approved or rejected it, as the database knows; plan_event.actor is in whose name.';

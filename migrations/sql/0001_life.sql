-- The life of a plan, as the database enforces it. Errors carry SQLSTATEs of their own:
--   FL001  a transition the life does not have, or a plan that does not exist
--   FL002  an attempt to change what is written once
--   FL003  the hash an approval names is not the plan's

CREATE FUNCTION fairlead.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%.% is written once: no %', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'FL002';
END $$;
COMMENT ON FUNCTION fairlead.refuse_change IS 'Keeps a table append-only.';

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead.plan_event
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead.plan_move
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead.decision
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead.candidate
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON fairlead.plan
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead.refuse_change();


-- Whoever writes to the plans of a group holds the lock on the group's row: versions have no gaps
-- and transitions do not interleave. NO KEY: rows that merely refer to the group do not wait.
CREATE FUNCTION fairlead.lock_group(wanted text) RETURNS void LANGUAGE sql AS $$
    SELECT FROM fairlead.consumer_group WHERE group_id = wanted FOR NO KEY UPDATE
$$;
COMMENT ON FUNCTION fairlead.lock_group IS 'Locks a group until the transaction ends.';


CREATE FUNCTION fairlead.plan_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    next integer;
BEGIN
    PERFORM fairlead.lock_group(NEW.group_id);
    SELECT coalesce(max(version), 0) + 1 INTO next FROM fairlead.plan WHERE group_id = NEW.group_id;
    IF NEW.version <> next OR NEW.state <> 'proposed' THEN
        RAISE EXCEPTION 'group %: version % as % cannot be stored: the next is version %, proposed',
            NEW.group_id, NEW.version, NEW.state, next USING ERRCODE = 'FL001';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION fairlead.plan_insert IS 'Versions have no gaps; plans start as proposed.';

CREATE TRIGGER next_version BEFORE INSERT ON fairlead.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead.plan_insert();


CREATE FUNCTION fairlead.plan_propose() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fairlead.plan_event (group_id, version, state, reason, sha256)
    VALUES (NEW.group_id, NEW.version, NEW.state, NEW.reason, NEW.sha256);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead.plan_propose IS 'Every plan has its event proposed.';

CREATE TRIGGER propose AFTER INSERT ON fairlead.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead.plan_propose();


CREATE FUNCTION fairlead.plan_update() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    allowed fairlead.plan := OLD;
BEGIN
    allowed.state := NEW.state;
    IF pg_trigger_depth() < 2 OR NEW IS DISTINCT FROM allowed THEN
        RAISE EXCEPTION 'group %: version % is written once; its state changes by a plan_event',
            OLD.group_id, OLD.version USING ERRCODE = 'FL002';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION fairlead.plan_update IS 'A plan''s state changes by a plan_event only.';

CREATE TRIGGER written_once BEFORE UPDATE ON fairlead.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead.plan_update();


CREATE FUNCTION fairlead.plan_event_apply() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    plan record;
BEGIN
    NEW.at := clock_timestamp();
    NEW.database_user := session_user;
    NEW.actor := coalesce(NEW.actor, session_user);
    IF NEW.state = 'proposed' AND pg_trigger_depth() > 1 THEN  -- by plan_propose
        RETURN NEW;
    END IF;
    PERFORM fairlead.lock_group(NEW.group_id);
    SELECT state, sha256 INTO plan FROM fairlead.plan
        WHERE group_id = NEW.group_id AND version = NEW.version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'group % has no version %', NEW.group_id, NEW.version
            USING ERRCODE = 'FL001';
    END IF;
    IF (plan.state, NEW.state) NOT IN (
        ('proposed', 'approved'), ('proposed', 'rejected'), ('proposed', 'expired'),
        ('approved', 'published'), ('approved', 'stale'),
        ('published', 'superseded'), ('published', 'retired')
    ) THEN
        RAISE EXCEPTION 'group %: version % is %: it cannot become %',
            NEW.group_id, NEW.version, plan.state, NEW.state USING ERRCODE = 'FL001';
    END IF;
    NEW.sha256 := coalesce(NEW.sha256, plan.sha256);
    IF NEW.sha256 <> plan.sha256 THEN
        RAISE EXCEPTION 'group %: version % has the hash %, not %',
            NEW.group_id, NEW.version, plan.sha256, NEW.sha256 USING ERRCODE = 'FL003';
    END IF;
    UPDATE fairlead.plan SET state = NEW.state
        WHERE group_id = NEW.group_id AND version = NEW.version;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION fairlead.plan_event_apply IS 'The transitions of a plan''s life.';

CREATE TRIGGER apply BEFORE INSERT ON fairlead.plan_event
    FOR EACH ROW EXECUTE FUNCTION fairlead.plan_event_apply();


-- For people: SELECT * FROM fairlead.approve_plan('orders', 7, 'quiet hour, few moves');
CREATE FUNCTION fairlead.approve_plan(group_id text, version integer, reason text)
RETURNS fairlead.plan_event LANGUAGE sql AS $$
    INSERT INTO fairlead.plan_event (group_id, version, state, reason)
    VALUES (approve_plan.group_id, approve_plan.version, 'approved', approve_plan.reason)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.approve_plan IS
    'Approves a proposed plan, as the session''s user, with the hash that is stored.';

CREATE FUNCTION fairlead.reject_plan(group_id text, version integer, reason text)
RETURNS fairlead.plan_event LANGUAGE sql AS $$
    INSERT INTO fairlead.plan_event (group_id, version, state, reason)
    VALUES (reject_plan.group_id, reject_plan.version, 'rejected', reject_plan.reason)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.reject_plan IS 'Rejects a proposed plan, as the session''s user.';

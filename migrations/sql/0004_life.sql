-- What a step takes besides being one of the life's: a reason in words, for whoever asks later; and
-- an approval is of a plan that has not expired, since publication would refuse it.

CREATE OR REPLACE FUNCTION fairlead.plan_event_apply() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plan record;
BEGIN
    NEW.at := clock_timestamp();
    NEW.database_user := session_user;
    -- Who may write events, as a service does, may speak for others; the others for themselves.
    IF coalesce(btrim(NEW.actor), '') = ''
        OR NOT has_column_privilege(session_user, 'fairlead.plan_event', 'actor', 'INSERT')
    THEN
        NEW.actor := session_user;
    END IF;
    IF NEW.state = 'proposed' AND pg_trigger_depth() > 1 THEN  -- by plan_propose
        RETURN NEW;
    END IF;
    PERFORM fairlead.lock_group(NEW.group_id);
    SELECT state, sha256, four_eyes, expires_at INTO plan FROM fairlead.plan
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
    IF coalesce(btrim(NEW.reason), '') = '' THEN
        RAISE EXCEPTION 'group %: version % cannot become % without a reason',
            NEW.group_id, NEW.version, NEW.state USING ERRCODE = 'FL001';
    END IF;
    IF NEW.state = 'approved' AND plan.expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'group %: version % expired at %: it cannot become approved',
            NEW.group_id, NEW.version, plan.expires_at USING ERRCODE = 'FL001';
    END IF;
    IF NEW.state = 'approved' AND plan.four_eyes THEN
        PERFORM fairlead.check_four_eyes(NEW.group_id, NEW.version);
    END IF;
    -- Read under the lock, and never earlier than the step before: a plan's events are in order.
    NEW.at := greatest(clock_timestamp(), (
        SELECT max(at) FROM fairlead.plan_event
        WHERE group_id = NEW.group_id AND version = NEW.version
    ));
    UPDATE fairlead.plan SET state = NEW.state
        WHERE group_id = NEW.group_id AND version = NEW.version;
    RETURN NEW;
END $$;


-- Whoever writes runs these, with their own search path: what they call must not depend on it.
ALTER FUNCTION fairlead.plan_insert SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION fairlead.plan_propose SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION fairlead.plan_update SET search_path = pg_catalog, pg_temp;

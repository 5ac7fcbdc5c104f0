-- An approved plan is published in two steps, each committed: sending, before anything is sent, and
-- published, once the plan topic has it. What dies between the two leaves a plan that says so.

CREATE OR REPLACE FUNCTION fairlead_raw.plan_event_apply() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plan record;
BEGIN
    NEW.at := clock_timestamp();
    NEW.database_user := session_user;
    -- Who may write events, as a service does, may speak for others; the others for themselves.
    IF coalesce(btrim(NEW.actor), '') = ''
        OR NOT has_column_privilege(session_user, 'fairlead_raw.plan_event', 'actor', 'INSERT')
    THEN
        NEW.actor := session_user;
        -- Who decides by hand and then leaves the transaction open, at lunch say, is cut off.
        PERFORM set_config('idle_in_transaction_session_timeout', '60s', true);
    END IF;
    IF NEW.state = 'proposed' AND pg_trigger_depth() > 1 THEN  -- by plan_propose
        RETURN NEW;
    END IF;
    PERFORM fairlead_raw.lock_group(NEW.group_id);
    SELECT state, sha256, four_eyes, expires_at INTO plan FROM fairlead_raw.plan
        WHERE group_id = NEW.group_id AND version = NEW.version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'group % has no version %', NEW.group_id, NEW.version
            USING ERRCODE = 'FL001';
    END IF;
    IF (plan.state, NEW.state) NOT IN (
        ('proposed', 'approved'), ('proposed', 'rejected'), ('proposed', 'expired'),
        ('approved', 'sending'), ('approved', 'stale'),
        ('sending', 'published'), ('sending', 'stale'), ('sending', 'refused'),
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
        PERFORM fairlead_raw.check_four_eyes(NEW.group_id, NEW.version);
    END IF;
    -- Read under the lock, and never earlier than the step before: a plan's events are in order.
    NEW.at := greatest(clock_timestamp(), (
        SELECT max(at) FROM fairlead_raw.plan_event
        WHERE group_id = NEW.group_id AND version = NEW.version
    ));
    UPDATE fairlead_raw.plan SET state = NEW.state
        WHERE group_id = NEW.group_id AND version = NEW.version;
    RETURN NEW;
END $$;


-- Whoever sends to a partition of the plan topic holds its row from before the broker is told to
-- fence earlier senders until the intents are committed. Nobody but the planner may touch the row.
CREATE FUNCTION fairlead_raw.lock_partition(topic text, partition integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mine bigint;
BEGIN
    INSERT INTO fairlead_raw.plan_partition (topic, partition)
    VALUES (lock_partition.topic, lock_partition.partition) ON CONFLICT DO NOTHING;
    UPDATE fairlead_raw.plan_partition held
    SET taken_at = clock_timestamp(), taken_by = session_user, turn = held.turn + 1
    WHERE held.topic = lock_partition.topic AND held.partition = lock_partition.partition
    RETURNING held.turn INTO mine;
    RETURN mine;
END $$;
COMMENT ON FUNCTION fairlead_raw.lock_partition IS
    'Locks a partition of the plan topic until the transaction ends; returns whose turn it is.';

-- What a sender says of records that are not in the topic is true as long as nobody else has had a turn:
-- another one may have sent them since. Nobody begins one until the transaction ends.
CREATE FUNCTION fairlead_raw.partition_turn(topic text, partition integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT held.turn FROM fairlead_raw.plan_partition held
    WHERE held.topic = partition_turn.topic AND held.partition = partition_turn.partition FOR SHARE
$$;
COMMENT ON FUNCTION fairlead_raw.partition_turn IS
    'Whose turn at a partition of the plan topic was the last; it stays so until the transaction ends.';
REVOKE EXECUTE ON FUNCTION fairlead_raw.lock_partition, fairlead_raw.partition_turn FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fairlead_raw.lock_partition, fairlead_raw.partition_turn TO fairlead_planner;

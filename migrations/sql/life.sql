-- A plan's life: what may be stored, which state may follow which, and who decides.

CREATE FUNCTION fairlead_raw.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('fairlead.pruning', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '%.% is written once: no %', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'FL002';
END $$;
COMMENT ON FUNCTION fairlead_raw.refuse_change IS 'Keeps a table append-only.';

CREATE FUNCTION fairlead_raw.lock_group(wanted text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT FROM fairlead_raw.consumer_group WHERE group_id = wanted FOR NO KEY UPDATE
$$;
COMMENT ON FUNCTION fairlead_raw.lock_group IS 'Locks a group until the transaction ends.';

CREATE FUNCTION fairlead_raw.lock_groups(wanted text[], patience interval) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + patience;
    before text := current_setting('lock_timeout');
    held text[] := '{}';
    missing text;
BEGIN
    FOR missing IN
        SELECT group_id FROM fairlead_raw.consumer_group WHERE group_id = ANY (wanted)
        ORDER BY group_id FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        held := held || missing;
    END LOOP;
    FOR missing IN
        SELECT group_id FROM fairlead_raw.consumer_group
        WHERE group_id = ANY (wanted) AND group_id <> ALL (held) ORDER BY group_id
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', greatest(1, ceil(
                1000 * extract(epoch FROM deadline - clock_timestamp())))::text, true);
            PERFORM fairlead_raw.lock_group(missing);
            held := held || missing;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN
                NULL;
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', before, true);
    RETURN QUERY SELECT unnest(held);
END $$;
COMMENT ON FUNCTION fairlead_raw.lock_groups IS
    'Locks groups until the transaction ends, and returns those that could be locked in time.';

-- Anybody who may log in can hold any advisory lock. Whoever takes turns here locks a row or a table
-- in a mode that takes more rights than to read and to append: nobody but the planner and the owner of
-- the schema can hold them up.
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

CREATE FUNCTION fairlead_raw.partition_turn(topic text, partition integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT held.turn FROM fairlead_raw.plan_partition held
    WHERE held.topic = partition_turn.topic AND held.partition = partition_turn.partition FOR SHARE
$$;
COMMENT ON FUNCTION fairlead_raw.partition_turn IS
    'Whose turn at a partition of the plan topic was the last; it stays so until the transaction ends.';

-- Whether a plan needs another pair of eyes is not the planner's word alone: of groups that stand in
-- this table every plan does. Its rows are the owner's of the schema.
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

-- SECURITY DEFINER functions run as the owner of the schema; session_user is who called.
CREATE FUNCTION fairlead_raw.check_four_eyes(group_id text, version integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    objection text;
    proposer text := (
        SELECT event.database_user FROM fairlead_raw.plan_event event
        WHERE event.group_id = check_four_eyes.group_id
            AND event.version = check_four_eyes.version AND event.state = 'proposed'
    );
BEGIN
    IF session_user = proposer THEN
        objection := 'proposed it';
    ELSIF pg_has_role(session_user, 'fairlead_planner', 'MEMBER')
        AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)  -- in every role
    THEN
        objection := 'is a member of fairlead_planner';
    ELSIF NOT pg_has_role(session_user, 'fairlead_approver', 'MEMBER') THEN
        objection := 'is no member of fairlead_approver';
    ELSE
        RETURN;
    END IF;
    RAISE EXCEPTION 'group %: version % needs four eyes: % % and cannot approve it',
        group_id, version, session_user, objection USING ERRCODE = 'FL004';
END $$;
COMMENT ON FUNCTION fairlead_raw.check_four_eyes IS
    'Refuses the session''s user as approver: who proposed the plan, a planner, or no approver.';

CREATE FUNCTION fairlead_raw.plan_insert() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
COMMENT ON FUNCTION fairlead_raw.plan_insert IS 'Versions have no gaps; plans start as proposed.';

CREATE FUNCTION fairlead_raw.plan_propose() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason, sha256)
    VALUES (NEW.group_id, NEW.version, NEW.state, NEW.reason, NEW.sha256);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead_raw.plan_propose IS 'Every plan has its event proposed.';

CREATE FUNCTION fairlead_raw.plan_update() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    allowed fairlead_raw.plan := OLD;
BEGIN
    allowed.state := NEW.state;
    IF pg_trigger_depth() < 2 OR NEW IS DISTINCT FROM allowed THEN
        RAISE EXCEPTION 'group %: version % is written once; its state changes by a plan_event',
            OLD.group_id, OLD.version USING ERRCODE = 'FL002';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION fairlead_raw.plan_update IS 'A plan''s state changes by a plan_event only.';

CREATE FUNCTION fairlead_raw.plan_event_apply() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
COMMENT ON FUNCTION fairlead_raw.plan_event_apply IS 'The transitions of a plan''s life.';

CREATE FUNCTION fairlead.approve_plan(
    group_id text, version integer, reason text, sha256 text DEFAULT NULL, actor text DEFAULT
    NULL
) RETURNS fairlead_raw.plan_event
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout TO '30s' AS $$
    INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason, sha256, actor)
    VALUES (approve_plan.group_id, approve_plan.version, 'approved', approve_plan.reason,
            approve_plan.sha256, approve_plan.actor)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.approve_plan IS
    'Approves a proposed plan, as the session''s user. sha256: of the document that you have seen; null: of the one that is stored. actor: whom a service acts for.';

CREATE FUNCTION fairlead.reject_plan(
    group_id text, version integer, reason text, actor text DEFAULT NULL
) RETURNS fairlead_raw.plan_event
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout TO '30s' AS $$
    INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason, actor)
    VALUES (reject_plan.group_id, reject_plan.version, 'rejected', reject_plan.reason,
            reject_plan.actor)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.reject_plan IS
    'Rejects a proposed plan, as the session''s user. actor: whom a service acts for.';

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON fairlead_raw.candidate
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON fairlead_raw.decision
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON fairlead_raw.moved_partition
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON fairlead_raw.plan
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER next_version BEFORE INSERT ON fairlead_raw.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_insert();
CREATE TRIGGER propose AFTER INSERT ON fairlead_raw.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_propose();
CREATE TRIGGER written_once BEFORE UPDATE ON fairlead_raw.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_update();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON fairlead_raw.plan_event
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER apply BEFORE INSERT ON fairlead_raw.plan_event
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_event_apply();

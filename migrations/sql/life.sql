-- The life of a plan: the database enforces its states and steps. Errors have their own SQLSTATEs:
--   FL001  a transition that does not exist, or a plan that does not exist
--   FL002  an attempt to change an append-only row
--   FL003  an approval names another hash than the plan's
--   FL004  a plan needs four eyes, and the approver is not a second person
-- Functions that write for users who may not write themselves run as the schema's owner. In them,
-- session_user is still the caller's login, even after SET ROLE. The other functions run as the caller.
-- Every function sets its own search path, so that the caller's path cannot make it call other functions.


-- Keeps a table append-only: only prune_rows deletes rows. Other roles lack the right to change rows; the owner of
-- the schema has this right, so this trigger prevents the owner's mistakes.
CREATE FUNCTION fairlead_raw.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('fairlead.pruning', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'rows of %.% are never changed: % is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'FL002';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.plan_event
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.moved_partition
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.decision
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.candidate
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON fairlead_raw.plan
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();


-- Locks the row of a group. Each transaction that writes to a group's plans does this first, so that
-- versions have no gaps, and transitions do not interleave. Because of NO KEY, inserts of rows that refer to
-- the group do not wait for the lock.
CREATE FUNCTION fairlead_raw.lock_group(wanted text) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT FROM fairlead_raw.consumer_group WHERE group_id = wanted FOR NO KEY UPDATE
$$;

-- Locks the groups of a batch, and returns those that it has locked. It waits at most `patience` in total for
-- groups that other transactions have locked, then leaves these out. Therefore a transaction that stays open
-- delays only its own groups.
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


-- Returns whether a pattern in the table four_eyes requires four eyes for the plans of a group. The owner of
-- the schema writes this table. The planner's policies may require four eyes for more groups, not for fewer.
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

-- Returns why the session's user cannot be the second person for any plan; null if there is no objection.
CREATE FUNCTION fairlead_raw.objection_to_approver() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN pg_has_role(session_user, 'fairlead_planner', 'MEMBER')
            AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = session_user)  -- a superuser is in every role
            THEN 'is a member of fairlead_planner'
        WHEN NOT pg_has_role(session_user, 'fairlead_approver', 'MEMBER')
            THEN 'is not a member of fairlead_approver'
    END
$$;

-- The web server itself names the person for whom it acts. Therefore its login must have no other role.
CREATE FUNCTION fairlead.objection_to_pages() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN (SELECT rolsuper FROM pg_roles WHERE rolname = session_user) THEN 'is a superuser'
        WHEN NOT pg_has_role(session_user, 'fairlead_web', 'MEMBER') THEN 'is not a member of fairlead_web'
        WHEN pg_has_role(session_user, 'fairlead_planner', 'MEMBER') THEN 'is a member of fairlead_planner'
        WHEN pg_has_role(session_user, 'fairlead_approver', 'MEMBER')
            THEN 'is a member of fairlead_approver'
        WHEN pg_has_role(
            session_user, (SELECT nspowner FROM pg_namespace WHERE nspname = 'fairlead_raw'), 'MEMBER'
        ) THEN 'owns the schema'
    END
$$;
COMMENT ON FUNCTION fairlead.objection_to_pages IS
    'Why the session''s user may not act for people on web pages; null if there is no objection.';

-- Returns whether the session's user is a service, which acts for a person that it names. The planner may write
-- events directly, the web server's login only through act_as.
CREATE FUNCTION fairlead_raw.speaks_for_others() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT has_column_privilege(session_user, 'fairlead_raw.plan_event', 'actor', 'INSERT')
        OR fairlead.objection_to_pages() IS NULL
$$;

-- Refuses an approval by the plan's proposer, by a planner, and by a user who is not an approver.
CREATE FUNCTION fairlead_raw.check_four_eyes(group_id text, version integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    objection text := fairlead_raw.objection_to_approver();
    -- The web server's login can only call this through act_as, which has checked that two people agree.
    by_page boolean := fairlead.objection_to_pages() IS NULL AND 'proxy' = (
        SELECT plan.four_eyes FROM fairlead_raw.plan
        WHERE plan.group_id = check_four_eyes.group_id AND plan.version = check_four_eyes.version
    );
    proposer text := (
        SELECT event.database_user FROM fairlead_raw.plan_event event
        WHERE event.group_id = check_four_eyes.group_id
            AND event.version = check_four_eyes.version AND event.state = 'proposed'
    );
BEGIN
    IF session_user = proposer THEN
        objection := 'proposed it';
    ELSIF objection IS NULL OR by_page THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'group %: version % needs four eyes: % % and cannot approve it',
        group_id, version, session_user, objection USING ERRCODE = 'FL004';
END $$;


-- Refuses a new plan unless its version is the group's next and its state is proposed.
CREATE FUNCTION fairlead_raw.plan_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    next integer;
BEGIN
    PERFORM fairlead_raw.lock_group(NEW.group_id);
    SELECT coalesce(max(version), 0) + 1 INTO next FROM fairlead_raw.plan WHERE group_id = NEW.group_id;
    IF NEW.version <> next OR NEW.state <> 'proposed' THEN
        RAISE EXCEPTION 'group %: version % in state % cannot be stored: the next version is %, in state proposed',
            NEW.group_id, NEW.version, NEW.state, next USING ERRCODE = 'FL001';
    END IF;
    IF fairlead_raw.needs_four_eyes(NEW.group_id) THEN
        NEW.four_eyes := 'database';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER next_version BEFORE INSERT ON fairlead_raw.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_insert();


-- Writes the event `proposed` of a new plan.
CREATE FUNCTION fairlead_raw.plan_propose() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason, sha256)
    VALUES (NEW.group_id, NEW.version, NEW.state, NEW.reason, NEW.sha256);
    RETURN NULL;
END $$;

CREATE TRIGGER propose AFTER INSERT ON fairlead_raw.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_propose();


-- Refuses changes of a plan. Only its state may change, and only by inserting a plan_event.
CREATE FUNCTION fairlead_raw.plan_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    allowed fairlead_raw.plan := OLD;
BEGIN
    allowed.state := NEW.state;
    IF pg_trigger_depth() < 2 OR NEW IS DISTINCT FROM allowed THEN
        RAISE EXCEPTION 'group %: version % is never changed; only a plan_event changes its state',
            OLD.group_id, OLD.version USING ERRCODE = 'FL002';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER written_once BEFORE UPDATE ON fairlead_raw.plan
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_update();


-- Returns whether a text has a visible character: neither a blank of any width nor a control character.
CREATE FUNCTION fairlead_raw.is_visible(content text) RETURNS boolean LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(content, '') ~ '[^\s\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]'
$$;

-- Refuses a reason that is too long.
CREATE FUNCTION fairlead_raw.check_length(what text, reason text) RETURNS void LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF length(reason) > 2000 THEN
        RAISE EXCEPTION '%: a reason has 2,000 characters at most', what USING ERRCODE = 'FL001';
    END IF;
END $$;

-- Checks a step of a plan, and changes the plan's state. A step needs a reason in words. An expired plan cannot
-- be approved, because publication would refuse it.
-- Publication commits two steps: `sending` before the record is sent, `published` once the plan topic has the
-- record. After a crash in between, the plan is still `sending`.
CREATE FUNCTION fairlead_raw.plan_event_apply() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plan record;
BEGIN
    NEW.at := clock_timestamp();
    NEW.transaction_id := pg_current_xact_id()::text::bigint;
    NEW.database_user := session_user;
    -- Only services act for other people.
    IF coalesce(btrim(NEW.actor), '') = '' OR NOT fairlead_raw.speaks_for_others()
    THEN
        NEW.actor := session_user;
        -- End the session of a person who leaves the transaction open.
        PERFORM set_config('idle_in_transaction_session_timeout', '60s', true);
        PERFORM fairlead_raw.check_length(
            format('group %s: version %s', NEW.group_id, NEW.version), NEW.reason);
        IF NEW.state = 'approved' THEN
            RAISE NOTICE 'once this is committed, the sensor approved_plans publishes it within 30 s';
        END IF;
    END IF;
    IF NEW.state = 'proposed' AND pg_trigger_depth() > 1 THEN  -- inserted by the trigger plan_propose
        RETURN NEW;
    END IF;
    PERFORM fairlead_raw.lock_group(NEW.group_id);
    SELECT state, sha256, four_eyes, expires_at, shadow INTO plan FROM fairlead_raw.plan
        WHERE group_id = NEW.group_id AND version = NEW.version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'group % has no version %', NEW.group_id, NEW.version
            USING ERRCODE = 'FL001';
    END IF;
    IF (plan.state, NEW.state) NOT IN (
        ('proposed', 'approved'), ('proposed', 'rejected'), ('proposed', 'expired'),
        ('approved', 'sending'), ('approved', 'stale'),
        ('sending', 'published'), ('sending', 'stale'), ('sending', 'refused'),
        ('published', 'superseded'), ('published', 'withdrawn')
    ) THEN
        RAISE EXCEPTION 'group %: version % is %: it cannot become %',
            NEW.group_id, NEW.version, plan.state, NEW.state USING ERRCODE = 'FL001';
    END IF;
    NEW.sha256 := coalesce(NEW.sha256, plan.sha256);
    IF NEW.sha256 <> plan.sha256 THEN
        RAISE EXCEPTION 'group %: version % has the hash %, not %',
            NEW.group_id, NEW.version, plan.sha256, NEW.sha256 USING ERRCODE = 'FL003';
    END IF;
    IF NOT fairlead_raw.is_visible(NEW.reason) THEN
        RAISE EXCEPTION 'group %: version % cannot become % without a reason',
            NEW.group_id, NEW.version, NEW.state USING ERRCODE = 'FL001';
    END IF;
    IF NEW.state = 'approved' AND plan.expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'group %: version % expired at %: it cannot become approved',
            NEW.group_id, NEW.version, plan.expires_at USING ERRCODE = 'FL001';
    END IF;
    IF NEW.state = 'approved' AND plan.shadow THEN
        RAISE EXCEPTION 'group %: version % is in shadow mode: its policy publishes nothing until shadow is removed',
            NEW.group_id, NEW.version USING ERRCODE = 'FL001';
    END IF;
    IF NEW.state = 'approved' AND plan.four_eyes IS NOT NULL THEN
        PERFORM fairlead_raw.check_four_eyes(NEW.group_id, NEW.version);
    END IF;
    -- Read the time while holding the lock, and use at least the time of the last step, so that a plan's events
    -- are in order.
    NEW.at := greatest(clock_timestamp(), (
        SELECT max(at) FROM fairlead_raw.plan_event
        WHERE group_id = NEW.group_id AND version = NEW.version
    ));
    UPDATE fairlead_raw.plan SET state = NEW.state
        WHERE group_id = NEW.group_id AND version = NEW.version;
    RETURN NEW;
END $$;

CREATE TRIGGER apply BEFORE INSERT ON fairlead_raw.plan_event
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_event_apply();


-- Every approval calls this function: in SQL, by the command, by the job, on pages and by policies.
-- For people: SELECT * FROM fairlead.approve_plan('orders', 7, 'quiet hour, few moves');
-- It waits at most half a minute for other transactions.
CREATE FUNCTION fairlead.approve_plan(
    group_id text, version integer, reason text,
    sha256 text DEFAULT NULL, actor text DEFAULT NULL
) RETURNS fairlead_raw.plan_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '30s' AS $$
    INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason, sha256, actor)
    VALUES (approve_plan.group_id, approve_plan.version, 'approved', approve_plan.reason,
            approve_plan.sha256, approve_plan.actor)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.approve_plan IS
    'Approves a proposed plan, as the session''s user. sha256 is the hash of the document that '
    'you have seen; if null, it is not compared. actor is the person for whom a service acts.';

CREATE FUNCTION fairlead.reject_plan(
    group_id text, version integer, reason text, actor text DEFAULT NULL
) RETURNS fairlead_raw.plan_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '30s' AS $$
    INSERT INTO fairlead_raw.plan_event (group_id, version, state, reason, actor)
    VALUES (reject_plan.group_id, reject_plan.version, 'rejected', reject_plan.reason,
            reject_plan.actor)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.reject_plan IS
    'Rejects a proposed plan, as the session''s user. actor is the person for whom a service acts.';


-- Locks the row of a partition of the plan topic, and returns how often the row has been locked: the number of this
-- turn. A publisher calls this function, then fences earlier publishers, then commits its outbox entries. Only the
-- planner may call it.
CREATE FUNCTION fairlead_raw.lock_partition(topic text, partition integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mine bigint;
BEGIN
    INSERT INTO fairlead_raw.plan_partition (topic, partition)
    VALUES (lock_partition.topic, lock_partition.partition) ON CONFLICT DO NOTHING;
    UPDATE fairlead_raw.plan_partition held SET turn = held.turn + 1
    WHERE held.topic = lock_partition.topic AND held.partition = lock_partition.partition
    RETURNING held.turn INTO mine;
    RETURN mine;
END $$;

-- Returns the number of the last turn, and prevents new turns until the transaction ends. A publisher may store
-- that a record was not sent only if the last turn is its own. Otherwise another publisher may have sent the
-- record in a later turn.
CREATE FUNCTION fairlead_raw.partition_turn(topic text, partition integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT held.turn FROM fairlead_raw.plan_partition held
    WHERE held.topic = partition_turn.topic AND held.partition = partition_turn.partition FOR SHARE
$$;


-- The assignment of a version, and the differences between two versions, read from the stored documents.
CREATE FUNCTION fairlead.plan_owners(group_id text, version integer)
RETURNS TABLE (topic text, partition integer, member text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp ROWS 100000 AS $$
DECLARE
    members json;
BEGIN
    SELECT convert_from(plan.document, 'UTF8')::json -> 'members' INTO members
    FROM fairlead_raw.plan
    WHERE plan.group_id = plan_owners.group_id AND plan.version = plan_owners.version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'group % has no version %', group_id, version USING ERRCODE = 'FL001';
    END IF;
    RETURN QUERY  -- a set of partitions is a string of ranges: 0-3,7
        SELECT owned.name, number, share.name
        FROM json_each(members) AS share (name, content),
             json_each_text(share.content -> 'partitions') AS owned (name, ranges),
             string_to_table(owned.ranges, ',') AS piece,
             generate_series(
                 split_part(piece, '-', 1)::integer, split_part(piece, '-', -1)::integer
             ) AS number;
END $$;
COMMENT ON FUNCTION fairlead.plan_owners IS
    'The owner of each partition in a version of a group''s plan; partitions without an owner are absent.';

-- For people: SELECT * FROM fairlead.plan_diff('orders', 6, 7);
CREATE FUNCTION fairlead.plan_diff(group_id text, v1 integer, v2 integer)
RETURNS TABLE (topic text, partition integer, member_before text, member_after text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT topic, partition, old.member, new.member
    FROM fairlead.plan_owners(plan_diff.group_id, v1) old
    FULL JOIN fairlead.plan_owners(plan_diff.group_id, v2) new USING (topic, partition)
    WHERE old.member IS DISTINCT FROM new.member
    ORDER BY topic, partition
$$;
COMMENT ON FUNCTION fairlead.plan_diff IS
    'The partitions whose owner differs between two versions; null if a version gives the partition no owner.';

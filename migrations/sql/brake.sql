-- The brake: as long as it holds, for a group or for all, no new version is sent. What was already on its
-- way arrives, what is published is told again, and a rollback goes through.
--   FL005  the transaction would not see a brake that was put on since it began
--   FL006  the brake holds what was about to be sent

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.brake_event
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();

CREATE VIEW fairlead.brakes AS
SELECT group_id, at AS since, reason, actor, database_user, number
FROM (
    SELECT DISTINCT ON (group_id) * FROM fairlead_raw.brake_event ORDER BY group_id, number DESC
) newest
WHERE braked;
COMMENT ON VIEW fairlead.brakes IS 'The brakes that hold now.';
COMMENT ON COLUMN fairlead.brakes.since IS 'When the brake was put on last.';


-- Who is about to send a new version holds this lock, and whoever brakes all groups waits for it: the brakes
-- that are read under it hold until the end. Leases are told again without it.
CREATE FUNCTION fairlead_raw.lock_brakes(patience interval) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', ceil(1000 * extract(epoch FROM patience))::text, true);
    LOCK TABLE fairlead_raw.brake_event IN ROW SHARE MODE;
    PERFORM set_config('lock_timeout', before, true);
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected THEN
        RETURN false;
END $$;
COMMENT ON FUNCTION fairlead_raw.lock_brakes IS
    'Keeps brakes of all groups from being put on or released until the transaction ends; false: somebody '
    'is at it for longer than that.';

-- Runs in the transaction that records what is about to be sent. A brake that was committed before is seen:
-- that of the group, since the group's row is locked; that of all, since it locks the brakes.
CREATE FUNCTION fairlead_raw.plan_intent_brake() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    brake record;
BEGIN
    PERFORM fairlead_raw.lock_group(NEW.group_id);
    IF NEW.kind <> 'plan' OR EXISTS (
        SELECT FROM fairlead_raw.plan
        WHERE group_id = NEW.group_id AND version = NEW.version AND rolled_back_from IS NOT NULL
    ) THEN
        RETURN NEW;
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'group %: version % is not sent: a transaction that is % does not see brakes since it '
            'began: use READ COMMITTED', NEW.group_id, NEW.version, current_setting('transaction_isolation')
            USING ERRCODE = 'FL005';
    END IF;
    LOCK TABLE fairlead_raw.brake_event IN ROW SHARE MODE;
    SELECT * INTO brake FROM fairlead.brakes
        WHERE group_id IS NULL OR group_id = NEW.group_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'group %: version % is not sent: % put the brake on at %: %',
            NEW.group_id, NEW.version, brake.actor, brake.since, brake.reason USING ERRCODE = 'FL006';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION fairlead_raw.plan_intent_brake IS 'No new version is sent while a brake holds.';

CREATE TRIGGER brake BEFORE INSERT ON fairlead_raw.plan_intent
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_intent_brake();


CREATE FUNCTION fairlead_raw.set_brake(wanted text, braked boolean, reason text, actor text)
RETURNS fairlead_raw.brake_event LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    what text := coalesce('group ' || wanted, 'all groups');
    objection text := fairlead_raw.objection_to_approver();
    written fairlead_raw.brake_event;
BEGIN
    -- Others wait for this: who leaves the transaction open is cut off.
    PERFORM set_config('idle_in_transaction_session_timeout', '60s', true);
    IF NOT fairlead_raw.says_something(reason) THEN
        RAISE EXCEPTION '%: the brake takes a reason', what USING ERRCODE = 'FL001';
    END IF;
    PERFORM fairlead_raw.check_length(what, reason);
    IF wanted IS NULL THEN
        LOCK TABLE fairlead_raw.brake_event IN EXCLUSIVE MODE;
    ELSE
        PERFORM fairlead_raw.lock_group(wanted);
        IF NOT EXISTS (SELECT FROM fairlead_raw.consumer_group WHERE group_id = wanted) THEN
            RAISE EXCEPTION '% is not known: no look has found it', what USING ERRCODE = 'FL001';
        END IF;
    END IF;
    IF NOT braked THEN
        IF NOT EXISTS (SELECT FROM fairlead.brakes WHERE group_id IS NOT DISTINCT FROM wanted) THEN
            RAISE EXCEPTION '%: no brake holds', what USING ERRCODE = 'FL001';
        END IF;
        -- The web server comes here by act_as alone, which has counted two people.
        IF objection IS NOT NULL AND fairlead_raw.four_eyes_of(wanted) IS NOT NULL
            AND NOT (fairlead_raw.four_eyes_of(wanted) = 'proxy' AND fairlead.objection_to_pages() IS NULL)
        THEN
            RAISE EXCEPTION '%: the release needs four eyes, as plans do: % % and cannot release',
                what, session_user, objection USING ERRCODE = 'FL004';
        END IF;
        -- What the brake held is sent now, and not when it would have been tried again.
        DELETE FROM fairlead_raw.plan_attempt WHERE wanted IS NULL OR group_id = wanted;
    END IF;
    IF coalesce(btrim(actor), '') = '' OR NOT fairlead_raw.speaks_for_others() THEN
        actor := session_user;
    END IF;
    INSERT INTO fairlead_raw.brake_event (group_id, braked, at, reason, actor, database_user)
    VALUES (wanted, set_brake.braked, clock_timestamp(), set_brake.reason, set_brake.actor, session_user)
    RETURNING * INTO written;
    RETURN written;
END $$;
COMMENT ON FUNCTION fairlead_raw.set_brake IS 'Puts the brake on, or releases it.';

-- To release is to let go out what was approved: it takes no less than the approval did.
CREATE FUNCTION fairlead_raw.four_eyes_of(wanted text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT min(CASE WHEN fairlead_raw.needs_four_eyes(known.group_id) THEN 'database'
               ELSE newest.four_eyes END COLLATE "C")  -- database before proxy
    FROM fairlead_raw.consumer_group known
    LEFT JOIN LATERAL (
        SELECT four_eyes FROM fairlead_raw.plan
        WHERE plan.group_id = known.group_id ORDER BY version DESC LIMIT 1
    ) newest ON true
    WHERE wanted IS NULL OR known.group_id = wanted
$$;
COMMENT ON FUNCTION fairlead_raw.four_eyes_of IS
    'What the newest plan of a group, or of any group, needs for another pair of eyes; null: nothing.';


-- For people: SELECT * FROM fairlead.brake('orders', 'the team deploys until noon'); it waits until a sender
-- that hangs has been cut off, after a minute, and nothing new is sent meanwhile.
CREATE FUNCTION fairlead.brake(group_id text, reason text, actor text DEFAULT NULL)
RETURNS fairlead_raw.brake_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '75s' AS $$
    SELECT * FROM fairlead_raw.set_brake(brake.group_id, true, brake.reason, brake.actor)
$$;
COMMENT ON FUNCTION fairlead.brake IS
    'Lets no new version of a group''s plan be sent until it is released; group_id null: of no group. '
    'actor: whom a service acts for.';

CREATE FUNCTION fairlead.release(group_id text, reason text, actor text DEFAULT NULL)
RETURNS fairlead_raw.brake_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '30s' AS $$
    SELECT * FROM fairlead_raw.set_brake(release.group_id, false, release.reason, release.actor)
$$;
COMMENT ON FUNCTION fairlead.release IS
    'Releases the brake of a group, or, group_id null, that of all groups; where plans need four eyes, '
    'so does this. actor: whom a service acts for.';

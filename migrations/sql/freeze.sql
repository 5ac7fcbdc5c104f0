-- A freeze of a group, or of all groups, stops new versions. Records that are already being sent still arrive,
-- leases of published plans are renewed, and rollbacks are sent.
--   FL005  the transaction's isolation level hides freezes that began after the transaction
--   FL006  the group is frozen

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.freeze_event
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();

CREATE VIEW fairlead.freezes AS
SELECT group_id, at AS since, reason, actor, database_user, number
FROM (
    SELECT DISTINCT ON (group_id) * FROM fairlead_raw.freeze_event ORDER BY group_id, number DESC
) newest
WHERE frozen;
COMMENT ON VIEW fairlead.freezes IS 'The groups that are frozen now. If group_id is null, all groups are frozen.';
COMMENT ON COLUMN fairlead.freezes.since IS 'When the group was last frozen.';


-- A publisher of a new version holds this lock, and a freeze of all groups waits for the lock. So no such freeze
-- begins between the publisher's check and its commit. Renewing a lease does not need the lock.
-- Returns false if the lock was not free in time.
CREATE FUNCTION fairlead_raw.lock_freezes(patience interval) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', ceil(1000 * extract(epoch FROM patience))::text, true);
    LOCK TABLE fairlead_raw.freeze_event IN ROW SHARE MODE;
    PERFORM set_config('lock_timeout', before, true);
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected THEN
        RETURN false;
END $$;

-- Refuses to send new versions for a frozen group, in the transaction that records an outbox entry. This
-- transaction sees every freeze committed earlier: of the group, because it locks the group's row; of all groups,
-- because it locks the table of freezes.
CREATE FUNCTION fairlead_raw.plan_intent_freeze() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held record;
BEGIN
    PERFORM fairlead_raw.lock_group(NEW.group_id);
    IF NEW.kind <> 'plan' OR EXISTS (
        SELECT FROM fairlead_raw.plan
        WHERE group_id = NEW.group_id AND version = NEW.version AND rolled_back_from IS NOT NULL
    ) THEN
        RETURN NEW;
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'group %: version % is not sent: a transaction that is % does not see freezes that '
            'were made after it began. Use READ COMMITTED',
            NEW.group_id, NEW.version, current_setting('transaction_isolation')
            USING ERRCODE = 'FL005';
    END IF;
    LOCK TABLE fairlead_raw.freeze_event IN ROW SHARE MODE;
    SELECT * INTO held FROM fairlead.freezes
        WHERE group_id IS NULL OR group_id = NEW.group_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'group %: version % is not sent: frozen by % since %: %',
            NEW.group_id, NEW.version, held.actor, held.since, held.reason USING ERRCODE = 'FL006';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER frozen BEFORE INSERT ON fairlead_raw.plan_intent
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.plan_intent_freeze();


-- Freezes or unfreezes a group, or all groups.
CREATE FUNCTION fairlead_raw.set_freeze(wanted text, frozen boolean, reason text, actor text)
RETURNS fairlead_raw.freeze_event LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    what text := coalesce('group ' || wanted, 'all groups');
    objection text := fairlead_raw.objection_to_approver();
    written fairlead_raw.freeze_event;
BEGIN
    -- If a person leaves the transaction open, end the session, because other sessions wait for it.
    PERFORM set_config('idle_in_transaction_session_timeout', '60s', true);
    IF NOT fairlead_raw.is_visible(reason) THEN
        RAISE EXCEPTION '%: a reason is required', what USING ERRCODE = 'FL001';
    END IF;
    PERFORM fairlead_raw.check_length(what, reason);
    IF wanted IS NULL THEN
        LOCK TABLE fairlead_raw.freeze_event IN EXCLUSIVE MODE;
    ELSE
        PERFORM fairlead_raw.lock_group(wanted);
        IF NOT EXISTS (SELECT FROM fairlead_raw.consumer_group WHERE group_id = wanted) THEN
            RAISE EXCEPTION '% is not known: no sample has it', what USING ERRCODE = 'FL001';
        END IF;
    END IF;
    IF NOT frozen THEN
        IF NOT EXISTS (SELECT FROM fairlead.freezes WHERE group_id IS NOT DISTINCT FROM wanted) THEN
            RAISE EXCEPTION '%: not frozen', what USING ERRCODE = 'FL001';
        END IF;
        -- The web server's login can only call this through act_as, which has checked that two people agree.
        IF objection IS NOT NULL AND fairlead_raw.four_eyes_of(wanted) IS NOT NULL
            AND NOT (fairlead_raw.four_eyes_of(wanted) = 'proxy' AND fairlead.objection_to_pages() IS NULL)
        THEN
            RAISE EXCEPTION '%: unfreezing needs four eyes, as plans do: % % and cannot unfreeze',
                what, session_user, objection USING ERRCODE = 'FL004';
        END IF;
        -- Without stored attempts, the planner does not wait: it sends the plans that were held back at once.
        DELETE FROM fairlead_raw.plan_attempt WHERE wanted IS NULL OR group_id = wanted;
    END IF;
    IF coalesce(btrim(actor), '') = '' OR NOT fairlead_raw.speaks_for_others() THEN
        actor := session_user;
    END IF;
    INSERT INTO fairlead_raw.freeze_event (group_id, frozen, at, reason, actor, database_user)
    VALUES (wanted, set_freeze.frozen, clock_timestamp(), set_freeze.reason, set_freeze.actor, session_user)
    RETURNING * INTO written;
    RETURN written;
END $$;

-- Returns the four-eyes rule of a group's newest plan; if no group is given, the strictest rule of all groups;
-- null if there is no rule. Unfreezing sends approved plans, so it needs as many people as an approval.
CREATE FUNCTION fairlead_raw.four_eyes_of(wanted text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT min(CASE WHEN fairlead_raw.needs_four_eyes(known.group_id) THEN 'database'
               ELSE newest.four_eyes END COLLATE "C")  -- 'database' sorts before 'proxy'
    FROM fairlead_raw.consumer_group known
    LEFT JOIN LATERAL (
        SELECT four_eyes FROM fairlead_raw.plan
        WHERE plan.group_id = known.group_id ORDER BY version DESC LIMIT 1
    ) newest ON true
    WHERE wanted IS NULL OR known.group_id = wanted
$$;


-- For people: SELECT * FROM fairlead.freeze('orders', 'the team deploys until noon');
-- If a publisher hangs, this waits up to a minute until the publisher's session has ended. No new version is
-- sent meanwhile.
CREATE FUNCTION fairlead.freeze(group_id text, reason text, actor text DEFAULT NULL)
RETURNS fairlead_raw.freeze_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '75s' AS $$
    SELECT * FROM fairlead_raw.set_freeze($1, true, $2, $3)
$$;
COMMENT ON FUNCTION fairlead.freeze IS
    'Freezes a group or, if group_id is null, all groups: no new versions of plans are sent, '
    'except rollbacks. actor is the person for whom a service acts.';

CREATE FUNCTION fairlead.unfreeze(group_id text, reason text, actor text DEFAULT NULL)
RETURNS fairlead_raw.freeze_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '30s' AS $$
    SELECT * FROM fairlead_raw.set_freeze($1, false, $2, $3)
$$;
COMMENT ON FUNCTION fairlead.unfreeze IS
    'Unfreezes a group or, if group_id is null, ends the freeze of all groups. Needs four eyes if plans do. '
    'actor is the person for whom a service acts.';

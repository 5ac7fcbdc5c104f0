-- The life of a plan where not everybody may do everything. One more SQLSTATE:
--   FL004  an approval by somebody who is no second pair of eyes, of a plan that needs one
-- Functions that write for those who may not themselves run as the schema's owner. The person is
-- session_user in them too, which neither SET ROLE nor the owner's rights change.

ALTER FUNCTION fairlead.lock_group SECURITY DEFINER SET search_path = pg_catalog, pg_temp;


CREATE FUNCTION fairlead.check_four_eyes(group_id text, version integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    objection text;
    proposer text := (
        SELECT event.database_user FROM fairlead.plan_event event
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
COMMENT ON FUNCTION fairlead.check_four_eyes IS
    'Refuses the session''s user as approver: who proposed the plan, a planner, or no approver.';


CREATE OR REPLACE FUNCTION fairlead.plan_event_apply() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plan record;
BEGIN
    NEW.at := clock_timestamp();
    NEW.database_user := session_user;
    -- Who may write events, as a service does, may speak for others; the others for themselves.
    IF NEW.actor IS NULL
        OR NOT has_column_privilege(session_user, 'fairlead.plan_event', 'actor', 'INSERT')
    THEN
        NEW.actor := session_user;
    END IF;
    IF NEW.state = 'proposed' AND pg_trigger_depth() > 1 THEN  -- by plan_propose
        RETURN NEW;
    END IF;
    PERFORM fairlead.lock_group(NEW.group_id);
    SELECT state, sha256, four_eyes INTO plan FROM fairlead.plan
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


DROP FUNCTION fairlead.approve_plan, fairlead.reject_plan;

-- For people: SELECT * FROM fairlead.approve_plan('orders', 7, 'quiet hour, few moves');
CREATE FUNCTION fairlead.approve_plan(
    group_id text, version integer, reason text,
    sha256 text DEFAULT NULL, actor text DEFAULT NULL
) RETURNS fairlead.plan_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO fairlead.plan_event (group_id, version, state, reason, sha256, actor)
    VALUES (approve_plan.group_id, approve_plan.version, 'approved', approve_plan.reason,
            approve_plan.sha256, approve_plan.actor)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.approve_plan IS
    'Approves a proposed plan, as the session''s user. sha256: of the document that you have seen; '
    'null: of the one that is stored. actor: whom a service acts for.';

CREATE FUNCTION fairlead.reject_plan(
    group_id text, version integer, reason text, actor text DEFAULT NULL
) RETURNS fairlead.plan_event LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO fairlead.plan_event (group_id, version, state, reason, actor)
    VALUES (reject_plan.group_id, reject_plan.version, 'rejected', reject_plan.reason,
            reject_plan.actor)
    RETURNING *
$$;
COMMENT ON FUNCTION fairlead.reject_plan IS
    'Rejects a proposed plan, as the session''s user. actor: whom a service acts for.';

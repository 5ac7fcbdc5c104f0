-- Web actions: steps that people request on pages. The web server passes the person's name, and how the name was
-- proven. The server's login is neither planner nor approver: it may write only through fairlead.act_as.

CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON fairlead_raw.page_act
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();

-- Returns the number of people who have requested the same action within a day; after a day, a request no longer
-- counts. A request for a rollback counts as a request to approve this rollback.
CREATE FUNCTION fairlead_raw.people_for(asked fairlead_raw.page_act) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(DISTINCT lower(actor)) FROM (
        SELECT actor FROM fairlead_raw.page_act
        WHERE at > asked.at - interval '1 day' AND act = asked.act AND group_id IS NOT DISTINCT FROM asked.group_id
            AND version IS NOT DISTINCT FROM asked.version
            AND sha256 IS NOT DISTINCT FROM asked.sha256 AND outcome <> 'refused'
        UNION ALL
        SELECT requested.actor FROM fairlead_raw.page_act requested
        JOIN fairlead_raw.plan ON plan.request_id = requested.id
        WHERE requested.at > asked.at - interval '1 day' AND asked.act = 'approve' AND plan.group_id = asked.group_id
            AND plan.version = asked.version
    ) people
$$;


-- Carries out what a person requests on a page, or stores the request. Like fairlead.freeze, a freeze waits until
-- the session of a hanging publisher has ended.
CREATE FUNCTION fairlead.act_as(
    actor text, proof text, id uuid, act text,
    group_id text, version integer, sha256 text, reason text
) RETURNS fairlead_raw.page_act LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '75s' AS $$
DECLARE
    objection text := fairlead.objection_to_pages();
    what text := coalesce('group ' || act_as.group_id, 'all groups');
    seen fairlead_raw.plan;
    needs text;
    done fairlead_raw.page_act;
BEGIN
    IF objection IS NOT NULL THEN
        RAISE EXCEPTION 'pages cannot act: the web server''s login % %', session_user, objection
            USING ERRCODE = 'FL004';
    END IF;
    PERFORM set_config('idle_in_transaction_session_timeout', '60s', true);
    IF NOT (fairlead_raw.is_visible(actor) AND fairlead_raw.is_visible(proof)
            AND fairlead_raw.is_visible(reason)) THEN
        RAISE EXCEPTION '%: the step % needs a person, a proof and a reason', what, act USING ERRCODE = 'FL001';
    END IF;
    IF greatest(length(actor), length(proof)) > 200 THEN
        RAISE EXCEPTION '%: a person and a proof have 200 characters at most', what USING ERRCODE = 'FL001';
    END IF;
    IF lower(actor) = 'policy' THEN
        RAISE EXCEPTION '%: "policy" is the name of automatic approvals, not of a person', what
            USING ERRCODE = 'FL001';
    END IF;
    PERFORM fairlead_raw.check_length(what, reason);
    IF act_as.group_id IS NULL AND act NOT IN ('freeze', 'unfreeze') THEN
        RAISE EXCEPTION 'the step % needs a group', act USING ERRCODE = 'FL001';
    END IF;
    -- Take a lock, so that two people who request the same at the same time are both counted.
    IF act_as.group_id IS NULL THEN
        LOCK TABLE fairlead_raw.freeze_event IN EXCLUSIVE MODE;
    ELSE
        PERFORM fairlead_raw.lock_group(act_as.group_id);
        IF NOT EXISTS (SELECT FROM fairlead_raw.consumer_group known WHERE known.group_id = act_as.group_id)
        THEN
            RAISE EXCEPTION '% is not known: no sample has it', what USING ERRCODE = 'FL001';
        END IF;
    END IF;
    IF act = 'unfreeze' AND version IS DISTINCT FROM (
        SELECT number FROM fairlead.freezes held WHERE held.group_id IS NOT DISTINCT FROM act_as.group_id)
    THEN
        RAISE EXCEPTION '%: frozen or unfrozen after this page was opened: open the page again', what
            USING ERRCODE = 'FL001';
    ELSIF act NOT IN ('freeze', 'unfreeze') THEN
        SELECT * INTO seen FROM fairlead_raw.plan
            WHERE plan.group_id = act_as.group_id AND plan.version = act_as.version;
        IF NOT FOUND THEN
            RAISE EXCEPTION '% has no version %', what, version USING ERRCODE = 'FL001';
        ELSIF seen.sha256 IS DISTINCT FROM act_as.sha256 THEN
            RAISE EXCEPTION '%: version % has the hash %, not %', what, version, seen.sha256, act_as.sha256
                USING ERRCODE = 'FL003';
        ELSIF act = 'withdraw' AND seen.state <> 'published' OR act = 'rollback' AND seen.state = 'published'
            OR act IN ('approve', 'reject') AND seen.state <> 'proposed'
        THEN
            RAISE EXCEPTION '%: version % is %: too late to % it', what, version, seen.state,
                    replace(act, 'rollback', 'roll back to')
                USING ERRCODE = 'FL001';
        END IF;
    END IF;
    needs := CASE
        WHEN act IN ('reject', 'freeze') THEN NULL
        WHEN act = 'approve' THEN seen.four_eyes
        ELSE fairlead_raw.four_eyes_of(act_as.group_id)
    END;
    IF needs = 'database' THEN
        RAISE EXCEPTION '%: the step % needs a second database user: take it in SQL or at the command line', what, act
            USING ERRCODE = 'FL004';
    END IF;
    -- Rollbacks are sent even to frozen groups. Without this check, a version that was never followed could be
    -- sent as a rollback.
    IF act = 'rollback' AND seen.state NOT IN ('superseded', 'withdrawn') THEN
        RAISE EXCEPTION '%: version % is %: no consumer followed it, so it cannot be rolled back to',
            what, version, seen.state USING ERRCODE = 'FL001';
    END IF;
    IF act IN ('rollback', 'withdraw') AND EXISTS (
        SELECT FROM fairlead_raw.page_act asked
        WHERE asked.group_id = act_as.group_id AND asked.outcome = 'asked'
    ) THEN
        RAISE EXCEPTION '%: the planner has not answered an earlier request yet', what
            USING ERRCODE = 'FL001';
    END IF;
    -- If the same person has already agreed, for example in another tab, return that agreement.
    IF needs = 'proxy' AND act <> 'rollback' THEN
        SELECT * INTO done FROM fairlead_raw.page_act agreed
            WHERE agreed.outcome = 'agreed' AND agreed.at > clock_timestamp() - interval '1 day'
                AND agreed.id <> act_as.id AND lower(agreed.actor) = lower(act_as.actor)
                AND ROW(agreed.act, agreed.group_id, agreed.version, agreed.sha256)
                    IS NOT DISTINCT FROM ROW(act_as.act, act_as.group_id, act_as.version, act_as.sha256)
            LIMIT 1;
        IF FOUND THEN
            RETURN done;
        END IF;
    END IF;
    INSERT INTO fairlead_raw.page_act AS written
        (id, at, actor, proof, act, group_id, version, sha256, reason, database_user, outcome)
    VALUES (act_as.id, clock_timestamp(), act_as.actor, act_as.proof, act_as.act, act_as.group_id,
            act_as.version, act_as.sha256, act_as.reason, session_user,
            CASE WHEN act_as.act IN ('rollback', 'withdraw') THEN 'asked' ELSE 'done' END)
    ON CONFLICT DO NOTHING RETURNING * INTO done;
    IF NOT FOUND THEN
        RAISE EXCEPTION '%: this form was already sent', what USING ERRCODE = 'FL001';
    END IF;
    IF needs = 'proxy' AND act <> 'rollback' AND fairlead_raw.people_for(done) < 2 THEN
        UPDATE fairlead_raw.page_act kept SET outcome = 'agreed' WHERE kept.id = done.id RETURNING * INTO done;
    ELSIF act = 'approve' THEN
        PERFORM fairlead.approve_plan(done.group_id, done.version, done.reason, done.sha256, done.actor);
    ELSIF act = 'reject' THEN
        PERFORM fairlead.reject_plan(done.group_id, done.version, done.reason, done.actor);
    ELSIF act IN ('freeze', 'unfreeze') THEN
        PERFORM fairlead_raw.set_freeze(done.group_id, act = 'freeze', done.reason, done.actor);
    END IF;
    RETURN done;
END $$;
COMMENT ON FUNCTION fairlead.act_as IS
    'Acts for a person on a web page: approve, reject, rollback, withdraw, freeze or unfreeze. Only the web server '
    'may call it. id is the id of the form, which counts once. version is the plan''s version or, to unfreeze, the '
    'number of the freeze event. Returns the stored act or, if the person has agreed to the same within a day, the '
    'act with which they agreed.';

-- Stores the planner's answer to an action that needs Kafka, which the planner carries out.
CREATE FUNCTION fairlead_raw.answer_act(id uuid, outcome text, answer text) RETURNS void LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE fairlead_raw.page_act asked
    SET outcome = answer_act.outcome, answer = answer_act.answer, answered_at = clock_timestamp()
    WHERE asked.id = answer_act.id AND asked.outcome = 'asked'
$$;

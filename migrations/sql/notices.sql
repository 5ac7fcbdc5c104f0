-- Notices: what people are told of by the webhook. They follow from what is written, whoever writes it; each
-- has an id that follows from the event, and so is there once. The planner sends them, and says what came of it.

CREATE FUNCTION fairlead_raw.add_notice(
    event text, group_id text, version integer, key text, at timestamptz, actor text, said text,
    wait interval DEFAULT '0'
) RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO fairlead_raw.notice (id, event, group_id, version, at, actor, said, next_at)
    VALUES ('msg_' || left(encode(sha256(convert_to(
                jsonb_build_array(event, group_id, version, key)::text, 'UTF8')), 'hex'), 32),
            event, group_id, version, at, actor, said, now() + wait)
    ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION fairlead_raw.add_notice IS 'Adds what people are to be told of, once for each event.';


-- What is true no more when it could be sent is not told; brakes and what became of plans are told as they were.
CREATE FUNCTION fairlead_raw.notice_holds(told fairlead_raw.notice) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE told.event
        WHEN 'plan.waits' THEN EXISTS (
            SELECT FROM fairlead_raw.plan
            WHERE plan.group_id = told.group_id AND plan.version = told.version AND plan.state = 'proposed')
        WHEN 'group.overloaded' THEN EXISTS (
            SELECT FROM fairlead_raw.group_diagnosis known
            WHERE known.group_id = told.group_id AND known.until IS NULL AND known.diagnosis = 'overloaded')
        WHEN 'group.loses_records' THEN EXISTS (
            SELECT FROM fairlead_raw.group_diagnosis known
            WHERE known.group_id = told.group_id AND known.until IS NULL AND known.loss_s IS NOT NULL)
        ELSE true
    END
$$;
COMMENT ON FUNCTION fairlead_raw.notice_holds IS 'Whether a notice still is true.';

-- A policy approves in the transaction after the proposal: what waits is told a little later, if it does still.
CREATE FUNCTION fairlead_raw.notice_of_plan() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    plan record;
BEGIN
    SELECT plan_id, observed_only INTO plan FROM fairlead_raw.plan known
        WHERE known.group_id = NEW.group_id AND known.version = NEW.version;
    IF NEW.state = 'proposed' AND NOT plan.observed_only THEN
        PERFORM fairlead_raw.add_notice('plan.waits', NEW.group_id, NEW.version, plan.plan_id::text, NEW.at,
            NULL, NEW.reason, '30 seconds');
    ELSIF NEW.state <> 'proposed' AND EXISTS (
        SELECT FROM fairlead_raw.made_worse worse
        WHERE worse.group_id = NEW.group_id AND worse.version = NEW.version
    ) THEN
        PERFORM fairlead_raw.add_notice('plan.taken_back', NEW.group_id, NEW.version, plan.plan_id::text,
            NEW.at, NEW.actor, NEW.reason);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead_raw.notice_of_plan IS
    'Tells of plans that wait for a person, and of those that made it worse and are followed no more.';

CREATE TRIGGER notice AFTER INSERT ON fairlead_raw.plan_event
    FOR EACH ROW WHEN (NEW.state IN ('proposed', 'superseded', 'retired'))
    EXECUTE FUNCTION fairlead_raw.notice_of_plan();


CREATE FUNCTION fairlead_raw.notice_of_made_worse() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM fairlead_raw.add_notice('plan.made_worse', NEW.group_id, NEW.version, NEW.at::text, NEW.at, NULL,
        NEW.evidence || CASE WHEN NEW.automatic THEN '; it is taken back'
                        ELSE '; whether to take it back waits for a person' END);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead_raw.notice_of_made_worse IS 'Tells of plans that made it worse.';

CREATE TRIGGER notice AFTER INSERT ON fairlead_raw.made_worse
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.notice_of_made_worse();


CREATE FUNCTION fairlead_raw.notice_of_brake() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM fairlead_raw.add_notice(CASE WHEN NEW.braked THEN 'brake.held' ELSE 'brake.released' END,
        NEW.group_id, NULL, concat_ws(' ', NEW.number, NEW.at), NEW.at, NEW.actor, NEW.reason);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead_raw.notice_of_brake IS 'Tells of brakes that are put on and released.';

CREATE TRIGGER notice AFTER INSERT ON fairlead_raw.brake_event
    FOR EACH ROW EXECUTE FUNCTION fairlead_raw.notice_of_brake();


-- A look judges thousands of groups every minute: the function runs where something begins. What goes on in
-- the next row of the group's, with other names say, or comes and goes within six hours, is told once. Of a
-- loss people are told from four hours before it on, as by the alert FairleadGroupLosesRecordsSoon.
CREATE FUNCTION fairlead_raw.notice_of_diagnosis() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before fairlead_raw.group_diagnosis;
    began text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT * INTO before FROM fairlead_raw.group_diagnosis known
            WHERE known.group_id = NEW.group_id AND known.until = NEW.since;
    ELSE
        before := OLD;
    END IF;
    FOREACH began IN ARRAY array_remove(ARRAY[
        CASE WHEN NEW.diagnosis = 'overloaded' AND before.diagnosis IS DISTINCT FROM 'overloaded'
            THEN 'group.overloaded' END,
        CASE WHEN NEW.loss_s < 4 * 3600 AND NOT coalesce(before.loss_s < 4 * 3600, false)
            THEN 'group.loses_records' END
    ], NULL) LOOP
        IF NOT EXISTS (
            SELECT FROM fairlead_raw.notice known
            WHERE known.group_id = NEW.group_id AND known.event = began
                AND known.at > NEW.last_seen - interval '6 hours'
        ) THEN
            PERFORM fairlead_raw.add_notice(
                began, NEW.group_id, NULL, NEW.last_seen::text, NEW.last_seen, NULL, NEW.evidence);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead_raw.notice_of_diagnosis IS
    'Tells of groups that became overloaded, or are about to lose records.';

CREATE TRIGGER notice_of_new AFTER INSERT ON fairlead_raw.group_diagnosis
    FOR EACH ROW WHEN (NEW.diagnosis = 'overloaded' OR NEW.loss_s < 4 * 3600)
    EXECUTE FUNCTION fairlead_raw.notice_of_diagnosis();
CREATE TRIGGER notice_of_loss AFTER UPDATE OF loss_s ON fairlead_raw.group_diagnosis
    FOR EACH ROW WHEN (NEW.loss_s < 4 * 3600 AND NOT coalesce(OLD.loss_s < 4 * 3600, false))
    EXECUTE FUNCTION fairlead_raw.notice_of_diagnosis();

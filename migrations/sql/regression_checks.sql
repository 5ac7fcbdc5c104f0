-- Regressions: published versions that made their groups worse, in the planner's analysis. Each is stored once,
-- with its evidence and the end of the back-off. A rollback or a withdrawal follows.

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.regression
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();

CREATE VIEW fairlead.regression AS SELECT * FROM fairlead_raw.regression;

CREATE VIEW fairlead.back_off AS
SELECT DISTINCT ON (group_id) group_id, version, at AS since, back_off_until, evidence,
       (SELECT count(*) FROM fairlead_raw.regression one
        WHERE one.group_id = newest.group_id AND one.at > newest.at - interval '30 days') AS times
FROM fairlead_raw.regression newest
WHERE back_off_until > now()
ORDER BY group_id, version DESC;
COMMENT ON VIEW fairlead.back_off IS 'Groups that get no plan with moves, because their last plan was a regression.';
COMMENT ON COLUMN fairlead.back_off.version IS 'The version with the regression.';
COMMENT ON COLUMN fairlead.back_off.since IS 'When the verdict was stored.';
COMMENT ON COLUMN fairlead.back_off.times IS 'Number of regressions of the group in the thirty days before.';


-- Stores that the published version caused a regression, and the version to return to. Each further regression of
-- the group within thirty days doubles the back-off. If the group needs four eyes, a person has to decide.
-- Returns null if the version is not published, is a rollback, or has a regression already. A group returns only
-- to the version that was published before.
CREATE FUNCTION fairlead_raw.record_regression(
    group_id text, version integer, evidence text, automatic boolean
) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    times integer;
    back_to integer;
    eyes text;
BEGIN
    PERFORM fairlead_raw.lock_group(record_regression.group_id);
    IF NOT fairlead_raw.is_visible(evidence) THEN
        RAISE EXCEPTION 'group %: nothing shows that version % caused a regression', group_id, version
            USING ERRCODE = 'FL001';
    END IF;
    SELECT plan.four_eyes INTO eyes FROM fairlead_raw.plan
        WHERE plan.group_id = record_regression.group_id AND plan.version = record_regression.version
            AND plan.state = 'published' AND plan.rolled_back_from IS NULL;
    IF NOT FOUND OR EXISTS (
        SELECT FROM fairlead_raw.regression known
        WHERE known.group_id = record_regression.group_id AND known.version = record_regression.version
    ) THEN
        RETURN NULL;
    END IF;
    -- The version that was published before; null if that version was withdrawn.
    SELECT CASE plan.state WHEN 'superseded' THEN plan.version END INTO back_to FROM fairlead_raw.plan
        WHERE plan.group_id = record_regression.group_id AND plan.version < record_regression.version
            AND plan.state IN ('superseded', 'withdrawn')
        ORDER BY plan.version DESC LIMIT 1;
    SELECT count(*) INTO times FROM fairlead_raw.regression known
        WHERE known.group_id = record_regression.group_id AND known.at > now() - interval '30 days';
    INSERT INTO fairlead_raw.regression
        (group_id, version, at, evidence, automatic, back_to, back_off_until)
    VALUES (record_regression.group_id, record_regression.version, clock_timestamp(),
            record_regression.evidence,
            automatic AND eyes IS NULL AND NOT fairlead_raw.needs_four_eyes(record_regression.group_id),
            back_to,
            clock_timestamp() + least(interval '30 minutes' * 2 ^ times, interval '7 days'));
    RETURN record_regression.version;
END $$;

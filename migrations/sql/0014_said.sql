-- The views of 0013_days.sql are what they were, to whom they were.

GRANT SELECT ON fairlead.candidate, fairlead.plan_history, fairlead.balance_history
    TO fairlead_planner, fairlead_approver, fairlead_reader;

DO $$
DECLARE
    shown record;
BEGIN
    FOR shown IN SELECT * FROM pg_temp.said WHERE comment IS NOT NULL LOOP
        IF shown.attname IS NULL THEN
            EXECUTE format('COMMENT ON VIEW fairlead.%I IS %L', shown.relname, shown.comment);
        ELSE
            EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
                shown.relname, shown.attname, shown.comment);
        END IF;
    END LOOP;
    DROP TABLE pg_temp.said;
END $$;

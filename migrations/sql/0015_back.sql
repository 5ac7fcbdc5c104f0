-- What 0015_racks.sql does, backwards, but for the function and the views, which are made again of what
-- 0013_days.sql says. What is said of the views' columns is said again.

CREATE TEMPORARY TABLE said ON COMMIT DROP AS
SELECT relname, attname, col_description(attrelid, attnum) AS comment
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE attrelid IN ('fairlead.candidate'::regclass, 'fairlead.plan_history'::regclass,
                   'fairlead.balance_history'::regclass)
    AND attnum > 0 AND attname !~ '^rack_'
UNION ALL
SELECT relname, NULL, obj_description(oid, 'pg_class') FROM pg_class
WHERE oid IN ('fairlead.candidate'::regclass, 'fairlead.plan_history'::regclass,
              'fairlead.balance_history'::regclass);

DROP VIEW fairlead.candidate, fairlead.plan_history, fairlead.balance_history;
ALTER TABLE fairlead_raw.balance DROP COLUMN rack_gb_per_day, DROP COLUMN rack_cost_per_day;
ALTER TABLE fairlead_raw.candidate DROP COLUMN rack_gb_per_day, DROP COLUMN rack_cost_per_day;
ALTER TABLE fairlead_raw.plan_balance DROP COLUMN rack_gb_per_day, DROP COLUMN rack_cost_per_day;
